// The history, and the questions that the page asks of it.
import { unpacked, readAnomalies, readEvents, readFrame, readOps } from "./unpack.js";

const OUTCOMES = ["committed", "aborted", "unknown"];

export class History {
  constructor(frame) {
    Object.assign(this, frame);
    this.keys = [];
    /** The numbers by which addresses know keys. */
    this.keyIds = [];
    this.texts = [];
    this.facts = new Map();
    this.ops = new Array(frame.count);
    this.sessionOf = new Int32Array(frame.count);
    this.sessions.forEach((session, at) => this.sessionOf.fill(at, session.first, session.end));
    this.isTimed = this.clock !== "none";
    this.setTimes();
    /** For each key, who wrote which value; grows as operations come in. */
    this.writers = [];
  }

  /** Reads the transactions from a part of the page, and then the operations, a block at a time. */
  static async load(part) {
    const frame = part.querySelector(".history-frame");
    const history = new History(readFrame(await unpacked(frame.textContent)));
    const anomalies = part.querySelector(".history-anomalies");
    history.anomalies = readAnomalies(await unpacked(anomalies.textContent));
    const events = part.querySelector(".history-events");
    history.bands = events ? readEvents(await unpacked(events.textContent)) : [];
    history.bands.forEach((band) => (band.until = Math.min(band.until, history.end)));
    history.done = (async () => {
      for (const block of part.querySelectorAll(".history-ops")) {
        readOps(await unpacked(block.textContent), history);
      }
    })();
    return history;
  }

  /** Bars need two ends: times where there are any, elsewhere a place that nobody else has. */
  setTimes() {
    this.from = new Float64Array(this.count);
    this.until = new Float64Array(this.count);
    let last = 1;
    for (let txn = 0; txn < this.count; txn++) {
      this.from[txn] = this.isTimed ? this.start[txn] : this.places[txn];
      this.until[txn] = this.isTimed ? this.finish[txn] : this.places[txn] + 0.9;
      if (this.until[txn] > last) last = this.until[txn];
      if (this.from[txn] > last) last = this.from[txn];
    }
    this.end = last;
    for (let txn = 0; txn < this.count; txn++) {
      if (Number.isNaN(this.from[txn])) this.from[txn] = this.before(txn);
      if (Number.isNaN(this.until[txn])) this.until[txn] = this.after(txn);
    }
  }

  /** Where a bar without a beginning begins: at the end of the one before. */
  before(txn) {
    const first = this.sessions[this.sessionOf[txn]].first;
    return txn > first ? this.until[txn - 1] : 0;
  }

  after(txn) {
    const end = this.sessions[this.sessionOf[txn]].end;
    const next = txn + 1 < end ? this.from[txn + 1] : this.end;
    return Number.isNaN(next) ? this.end : Math.max(next, this.from[txn]);
  }

  /** The transaction of a number in the history, if it is in this file. */
  at(id) {
    if (!this.ids) return id < this.count ? id : null;
    this.positions ??= new Map(Array.from(this.ids, (other, txn) => [other, txn]));
    return this.positions.get(id) ?? null;
  }

  /** Its number in the history. */
  idOf(txn) {
    return this.ids ? this.ids[txn] : txn;
  }

  outcome(txn) {
    return OUTCOMES[this.flags[txn] & 3];
  }

  sessionName(txn) {
    return this.sessions[this.sessionOf[txn]].name;
  }

  /** A moment, as people write it. */
  moment(time) {
    if (Number.isNaN(time)) return "?";
    if (this.clock !== "nanoseconds") return String(time);
    if (this.end >= 1e9) return `${(time / 1e9).toFixed(6)} s`;
    if (this.end >= 1e6) return `${(time / 1e6).toFixed(3)} ms`;
    return this.end >= 1e4 ? `${(time / 1e3).toFixed(1)} µs` : `${Number(time.toFixed(1))} ns`;
  }

  /** How long a transaction took. */
  lasted(txn) {
    const ns = this.finish[txn] - this.start[txn];
    if (this.clock !== "nanoseconds" || Number.isNaN(ns)) return "";
    const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return ` (${Number((ns / size).toPrecision(3))} ${unit})`;
  }

  /** The first transaction of a part of a session that ends after a time. */
  firstAfter(first, end, time) {
    while (first < end) {
      const middle = (first + end) >> 1;
      if (this.until[middle] <= time) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  /** A transaction in a sentence. */
  words(txn) {
    const ops = this.ops[txn];
    const sources = this.sources(txn).map(({ writer, op }) => `${op.text} from ${this.names[writer]}`);
    const what = ops ? ops.map((op) => op.text).join(", ") : "its operations are not in this file";
    const when = this.isTimed
      ? `, ${this.moment(this.start[txn])} to ${this.moment(this.finish[txn])}`
      : "";
    const read = sources.length > 0 ? `. Reads from others: ${sources.slice(0, 6).join(", ")}` : "";
    const head = `${this.names[txn]}, session ${this.sessionName(txn)}, ${this.outcome(txn)}${when}`;
    return `${head}: ${what || "no operations"}${read}.`;
  }

  /** Takes note of what a transaction wrote. */
  enter(txn) {
    for (const op of this.ops[txn]) {
      if (op.key === undefined || op.written === undefined) continue;
      const writers = (this.writers[op.key] ??= new Map());
      if (this.outcome(txn) !== "aborted" || !writers.has(op.written)) writers.set(op.written, txn);
    }
  }

  /** Who wrote what an operation read, if that is in this file. */
  writerOf(op) {
    return op.key === undefined || op.read === undefined ? undefined : this.writers[op.key]?.get(op.read);
  }

  /** The operations on a key that wrote it, and those that read it. */
  uses(key) {
    const [writes, reads] = [[], []];
    for (let txn = 0; txn < this.count; txn++) {
      for (const op of this.ops[txn] ?? []) {
        if (op.key !== key) continue;
        if (op.written !== undefined) writes.push({ txn, op });
        else if (op.read !== undefined) reads.push({ txn, op });
      }
    }
    return { writes, reads };
  }

  /** Whom a transaction read from: the writers, each with the operation that saw it. */
  sources(txn) {
    const found = [];
    for (const op of this.ops[txn] ?? []) {
      const writer = this.writerOf(op);
      if (writer !== undefined && writer !== txn) found.push({ writer, op });
    }
    return found;
  }

  /** The versions of a key in order, how that order is known, and who read each. */
  versions(key) {
    const { writes, reads } = this.uses(key);
    const readers = new Map();
    for (const { txn, op } of reads) {
      if (!readers.has(op.read)) readers.set(op.read, []);
      readers.get(op.read).push(txn);
    }
    const { rank, words } = this.rank(key, reads);
    const ordered = writes
      .filter(({ txn }) => this.outcome(txn) !== "aborted")
      .sort((a, b) => rank(a) - rank(b) || a.txn - b.txn)
      .concat(writes.filter(({ txn }) => this.outcome(txn) === "aborted"));
    return {
      words,
      rows: ordered.map(({ txn, op }) => ({ txn, op, readers: readers.get(op.written) ?? [] })),
    };
  }

  /** What versions of a key are ordered by, the best that there is. */
  rank(key, reads) {
    const longest = reads.reduce((best, { op }) => (op.length > (best?.length ?? 0) ? op : best), null);
    if (longest && longest.length === longest.list.length) {
      const at = new Map(longest.list.map((element, position) => [element, position]));
      const rank = ({ op }) => at.get(op.written) ?? at.size;
      return { rank, words: "in the order in which the longest read shows them" };
    }
    if (this.order.length > 0) {
      this.ranks ??= this.ranksOf(this.order);
      const words = `in the order of commits that shows that ${this.witness} is satisfied`;
      return { rank: ({ txn }) => this.ranks[txn], words };
    }
    if (this.isTimed) {
      const words = "in the order in which their transactions finished, as clients saw it";
      return { rank: ({ txn }) => this.until[txn], words };
    }
    return { rank: ({ txn }) => txn, words: "session by session: nothing tells their true order" };
  }

  ranksOf(order) {
    const ranks = new Float64Array(this.count).fill(Infinity);
    order.forEach((txn, at) => (ranks[txn] = at));
    return ranks;
  }
}
