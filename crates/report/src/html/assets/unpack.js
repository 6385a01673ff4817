// Reads the history that the page holds. The other side is `embed.rs`.

/** Numbers and texts, one after the other. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    let number = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      number += (byte & 0x7f) * scale;
      if (byte < 0x80) return number;
      scale *= 128;
    }
  }

  signed() {
    return unzigzag(this.number());
  }

  text() {
    return this.letters(this.number());
  }

  /** An integer or a text. */
  either() {
    const head = this.number();
    return head % 2 === 0 ? unzigzag(head / 2) : this.letters((head - 1) / 2);
  }

  letters(length) {
    const text = decoder.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

const decoder = new TextDecoder();

function unzigzag(number) {
  return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
}

/** From letters to a reader of what they stand for. */
export async function unpacked(letters) {
  const packed = Uint8Array.from(atob(letters.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Reader(new Uint8Array(await new Response(stream).arrayBuffer()));
}

const CLOCKS = ["none", "nanoseconds", "events"];

/** What is known of every transaction but its operations. */
export function readFrame(reader) {
  const clock = CLOCKS[reader.number()];
  const count = reader.number();
  const sessions = [];
  for (let at = 0, left = reader.number(), first = 0; at < left; at++) {
    const name = reader.text();
    const size = reader.number();
    sessions.push({ name, first, end: first + size });
    first += size;
  }
  const flags = Uint8Array.from({ length: count }, () => reader.number());
  const start = new Float64Array(count).fill(NaN);
  const finish = new Float64Array(count).fill(NaN);
  let time = 0;
  for (let txn = 0; txn < count; txn++) {
    if ((flags[txn] & 4) === 0) start[txn] = time += reader.signed();
    if ((flags[txn] & 8) === 0) finish[txn] = time += reader.signed();
  }
  const places = clock === "none" ? new Float64Array(count) : null;
  for (let txn = 0, place = 0; places && txn < count; txn++) places[txn] = place += reader.signed();
  const names = [];
  let number = 0;
  for (let txn = 0; txn < count; txn++) {
    const name = reader.either();
    if (typeof name === "number") number += name;
    names.push(typeof name === "number" ? `T${number}` : name);
  }
  const lines = new Float64Array(count);
  let line = 0;
  for (let txn = 0; txn < count; txn++) lines[txn] = line += reader.signed();
  // All transactions are here, or only some.
  const ids = reader.number() === 1 ? new Float64Array(count) : null;
  for (let txn = 0, id = 0; ids && txn < count; txn++) ids[txn] = id += reader.number();
  const witness = reader.text();
  const order = new Int32Array(reader.number());
  for (let at = 0, txn = 0; at < order.length; at++) order[at] = txn += reader.signed();
  return { clock, count, sessions, flags, start, finish, places, names, lines, ids, witness, order };
}

/** A text that is written out where it first occurs, and a number after that. */
function readInterned(reader, texts) {
  const at = reader.number();
  if (at === texts.length) texts.push(reader.text());
  return texts[at];
}

/** The anomalies: their kinds, their transactions, and the arrows between these. */
export function readAnomalies(reader) {
  const texts = [];
  const anomalies = [];
  for (let left = reader.number(), number = 1; left > 0; left--, number++) {
    const kind = readInterned(reader, texts);
    const txns = [];
    for (let more = reader.number(); more > 0; more--) txns.push(reader.number());
    const edges = [];
    for (let more = reader.number(); more > 0; more--) {
      const [from, to] = [reader.number(), reader.number()];
      edges.push({ from, to, kind: readInterned(reader, texts) });
    }
    anomalies.push({ number, kind, txns, edges });
  }
  return anomalies;
}

/** What befell the run: from when to when, and what it was. */
export function readEvents(reader) {
  const events = [];
  for (let left = reader.number(); left > 0; left--) {
    const [from, until] = [reader.number(), reader.number()];
    events.push({ from, until: until === 0 ? Infinity : until, label: reader.text() });
  }
  return events;
}

/** Adds what a block holds to a history: operations, and facts beside them. */
export function readOps(reader, history) {
  const { keys, keyIds, texts, ops, facts } = history;
  let txn = 0;
  for (let left = reader.number(); left > 0; left--) {
    txn += reader.signed();
    const list = [];
    for (let more = reader.number(); more > 0; more--) {
      const sql = reader.number() === 1 ? readInterned(reader, texts) : undefined;
      const op = readOp(reader, keys, keyIds);
      if (sql !== undefined) op.sql = sql;
      list.push(op);
    }
    ops[txn] = list;
    const known = [];
    for (let more = reader.number(); more > 0; more--) known.push([readInterned(reader, texts), readInterned(reader, texts)]);
    if (known.length > 0) facts.set(txn, known);
    history.enter(txn);
  }
}

function readKey(reader, keys, keyIds) {
  const key = reader.number();
  if (key === keys.length) {
    keyIds.push(reader.number());
    keys.push(reader.text());
  }
  return key;
}

/** An operation. Most are never looked at, so its text is made when it is. */
class Op {
  constructor(kind, key, name) {
    this.kind = kind;
    this.key = key;
    this.name = name;
  }

  get text() {
    switch (this.kind) {
      case 0:
      case 6:
        return `r ${this.name}=?`;
      case 1:
        return `r ${this.name}=${this.read}`;
      case 2:
        return `w ${this.name}=${this.written}`;
      case 3:
        return `append ${this.name} ${this.written}`;
      case 4:
        return `r ${this.name}=[${this.length > this.list.length ? "… " : ""}${this.list.join(" ")}]`;
      case 5:
        return `delete ${this.name}`;
      default:
        return this.said;
    }
  }
}

function readOp(reader, keys, keyIds) {
  const kind = reader.number();
  if (kind === 7) return readOther(reader, keys, keyIds);
  const key = readKey(reader, keys, keyIds);
  const op = new Op(kind, key, keys[key]);
  if (kind === 1) op.read = reader.either();
  else if (kind === 2 || kind === 3) op.written = reader.either();
  else if (kind === 4) readList(reader, op);
  else if (kind === 5) op.written = "nil";
  return op;
}

/** A list, of which the page may hold only the last elements. */
function readList(reader, op) {
  op.length = reader.number();
  op.list = [];
  for (let left = Math.min(op.length, 12); left > 0; left--) op.list.push(reader.either());
  if (op.list.length > 0) op.read = op.list[op.list.length - 1];
}

function readOther(reader, keys, keyIds) {
  const key = reader.number() === 1 ? readKey(reader, keys, keyIds) : undefined;
  const op = new Op(7, key, keys[key]);
  if (reader.number() === 1) op.written = reader.either();
  op.said = reader.text();
  return op;
}
