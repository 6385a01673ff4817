// Draws a timeline. Only what is visible is drawn, so that a hundred thousand transactions scroll as
// smoothly as ten.
import { AXIS } from "./viewport.js";

const BAR = 17;
const ARROW_LIMIT = 60;
const COLOURS = ["paper", "panel", "ink", "faint", "rule", "accent", "bar", "bad", "open", "open-paper", "wr", "ww", "rw", "time", "co"];
/** Which colour arrows of a kind have. */
const KINDS = { wr: "wr", ww: "ww", rw: "rw", "real-time": "time", co: "co" };

/** The colours of the page as they are now, light or dark. */
export function coloursOf(place) {
  const probe = document.createElement("i");
  place.append(probe);
  const found = COLOURS.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}

/** A canvas that is as sharp as the screen, and its pen. */
export function penOf(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** Calls when the page becomes light or dark. */
export function onRecolour(act) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act);
  matchMedia("print").addEventListener("change", act);
  window.addEventListener("themechange", act);
}

/** Paints what a timeline shows: `timeline` says which rows, and what is pointed out or chosen. */
export class Painter {
  constructor(canvas, timeline) {
    this.canvas = canvas;
    this.timeline = timeline;
    this.history = timeline.history;
    this.view = timeline.view;
    onRecolour(() => {
      this.colours = null;
      this.draw();
    });
  }

  draw() {
    if (!this.view.width) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { view, timeline } = this;
    const pen = penOf(this.canvas, view.width, view.height);
    this.colours ??= coloursOf(this.canvas.parentElement);
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, view.width, view.height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.paintBands(pen);
    const [first, last] = view.rows(timeline.sessions.length);
    for (let row = first; row < last; row++) this.paintRow(pen, row);
    this.paintArgument(pen);
    this.paintSources(pen, timeline.hovered ?? timeline.selected);
    this.paintNames(pen, first, last);
    this.paintAxis(pen);
  }

  /** What went wrong around the transactions: a band for as long as it lasted. */
  paintBands(pen) {
    const { view, timeline } = this;
    for (const { from, until } of timeline.bands) {
      const left = Math.max(view.x(from), view.gutter);
      const right = Math.min(Math.max(view.x(until), left + 2), view.width);
      if (right <= view.gutter || left >= view.width) continue;
      pen.fillStyle = this.colours["open-paper"];
      pen.fillRect(left, 0, right - left, view.height);
      pen.fillStyle = this.colours.open;
      pen.fillRect(left, AXIS, 1, view.height);
    }
  }

  paintRow(pen, row) {
    const { history, timeline, view } = this;
    const { first, end } = history.sessions[timeline.sessions[row]];
    const top = view.y(row) + (view.rowHeight - BAR) / 2;
    pen.strokeStyle = this.colours.rule;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(view.gutter, view.y(row) + view.rowHeight - 0.5);
    pen.lineTo(view.width, view.y(row) + view.rowHeight - 0.5);
    pen.stroke();
    for (let txn = history.firstAfter(first, end, view.from); txn < end; ) {
      const left = Math.max(view.x(history.from[txn]), view.gutter - 2);
      if (left > view.width) break;
      const right = Math.min(Math.max(view.x(history.until[txn]), left + 1), view.width + 2);
      this.paintBar(pen, txn, left, right, top);
      // Whatever ends within the same pixel would not be seen.
      const next = right - left < 2 ? history.firstAfter(txn + 1, end, view.time(right + 0.5)) : txn + 1;
      txn = Math.max(timeline.nextMarked(txn, next), txn + 1);
    }
  }

  paintBar(pen, txn, left, right, top) {
    const { marked, selected, hovered } = this.timeline;
    const outcome = this.history.outcome(txn);
    const width = right - left;
    const main = marked.has(txn) ? this.colours.bad : this.colours.bar;
    pen.fillStyle = outcome === "committed" ? main : this.colours.paper;
    pen.strokeStyle = outcome === "unknown" ? this.colours.open : main;
    pen.setLineDash(outcome === "unknown" ? [3, 2] : []);
    pen.fillRect(left, top, width, BAR);
    if (outcome !== "committed" && width > 2) pen.strokeRect(left + 0.5, top + 0.5, width - 1, BAR - 1);
    else if (outcome !== "committed") pen.strokeRect(left, top, 0.5, BAR);
    pen.setLineDash([]);
    if (txn === selected || txn === hovered) {
      pen.strokeStyle = this.colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(left - 1.5, top - 1.5, Math.max(width, 2) + 3, BAR + 3);
      pen.lineWidth = 1;
    }
    this.paintText(pen, txn, left, width, top);
  }

  /** The name of a transaction in its bar, and as many of its operations as there is room for. */
  paintText(pen, txn, left, width, top) {
    const name = this.history.names[txn];
    if (width < 12 + Math.min(name.length, 12) * 6) return;
    const room = width - 10;
    let text = name;
    let used = pen.measureText(text).width;
    if (used > room) return;
    for (const op of this.history.ops[txn] ?? []) {
      const more = `  ${op.text}`;
      used += pen.measureText(more).width;
      if (used > room) {
        if (text !== name && pen.measureText(`${text} …`).width <= room) text += " …";
        break;
      }
      text += more;
    }
    const isFilled = this.history.outcome(txn) === "committed";
    pen.fillStyle = isFilled ? this.colours.paper : this.colours.ink;
    pen.fillText(text, left + 5, top + BAR / 2 + 0.5);
  }

  /** The arrows of the anomaly that is shown. What a session says is seen in its row. */
  paintArgument(pen) {
    const edges = (this.timeline.anomaly?.edges ?? []).filter(({ kind }) => kind !== "session");
    // Every end has a place of its own on its bar: two arrows never look like one.
    const ends = new Map();
    edges.forEach(({ from, to }, at) => {
      ends.set(from, [...(ends.get(from) ?? []), 2 * at]);
      ends.set(to, [...(ends.get(to) ?? []), 2 * at + 1]);
    });
    const share = (txn, end) => (ends.get(txn).indexOf(end) + 1) / (ends.get(txn).length + 1);
    edges.forEach(({ from, to, kind }, at) => {
      const shares = [share(from, 2 * at), share(to, 2 * at + 1)];
      this.arrow(pen, from, to, shares, this.colours[KINDS[kind] ?? "faint"], kind);
    });
  }

  /** From the writers that a transaction read from. */
  paintSources(pen, txn) {
    if (txn === null) return;
    const seen = new Set();
    for (const { writer } of this.history.sources(txn).slice(0, ARROW_LIMIT)) {
      if (seen.has(writer)) continue;
      seen.add(writer);
      this.arrow(pen, writer, txn, [0.7, 0.3], this.colours.accent);
    }
  }

  /** From a share of the first bar to a share of the second, between the rows as long as it can. */
  arrow(pen, from, to, shares, colour, label) {
    const { history, timeline, view } = this;
    const rows = [from, to].map((txn) => timeline.rowOf.get(history.sessionOf[txn]));
    if (rows.includes(undefined)) return;
    const at = (txn, share) => {
      const [left, right] = [view.x(history.from[txn]), view.x(history.until[txn])];
      return left + (right - left) * share;
    };
    const [x1, x2] = [at(from, shares[0]), at(to, shares[1])];
    const down = Math.sign(rows[1] - rows[0]);
    const edge = (row, way) => view.y(row) + view.rowHeight / 2 + (way * BAR) / 2;
    // Within a row it goes over the bars between.
    const [leave, arrive] = down === 0 ? [-1, -1] : [down, -down];
    const [y1, y2] = [edge(rows[0], leave), edge(rows[1], arrive)];
    // Arrows between the same bars, to and fro, run at different heights.
    const share = x1 < x2 ? 0.45 : 0.9;
    const reach = down === 0 ? view.rowHeight / 2 : Math.max(Math.abs(y2 - y1) * share, 8);
    const [a, b] = [y1 + leave * reach, y2 + arrive * reach];
    const path = new Path2D();
    path.moveTo(x1, y1);
    path.bezierCurveTo(x1, a, x2, b, x2, y2 + arrive * 5);
    // A rim keeps it apart from the bars that it crosses.
    for (const [style, width] of [[this.colours.paper, 4.5], [colour, 1.8]]) {
      pen.strokeStyle = style;
      pen.lineWidth = width;
      pen.stroke(path);
    }
    pen.fillStyle = colour;
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - 4.5, y2 + arrive * 8);
    pen.lineTo(x2 + 4.5, y2 + arrive * 8);
    pen.fill();
    pen.lineWidth = 1;
    // Beside a steep arrow, upon a flat one.
    const beside = Math.abs(x2 - x1) < 40 ? pen.measureText(label ?? "").width / 2 + 8 : 0;
    if (label) this.tag(pen, label, (x1 + x2) / 2 + beside, (y1 + y2 + 3 * (a + b)) / 8, colour);
  }

  tag(pen, label, x, y, colour) {
    const width = pen.measureText(label).width + 6;
    pen.fillStyle = this.colours.paper;
    pen.fillRect(x - width / 2, y - 7, width, 14);
    pen.fillStyle = colour;
    pen.fillText(label, x - width / 2 + 3, y + 0.5);
  }

  paintNames(pen, first, last) {
    const { history, timeline, view } = this;
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, view.gutter - 2, view.height);
    pen.fillStyle = this.colours.ink;
    const room = view.gutter - 12;
    for (let row = first; row < last; row++) {
      const name = history.sessions[timeline.sessions[row]].name;
      pen.fillText(shortened(name, Math.floor(room / 6.5)), 6, view.y(row) + view.rowHeight / 2, room);
    }
  }

  paintAxis(pen) {
    const { history, view } = this;
    pen.fillStyle = this.colours.panel;
    pen.fillRect(0, 0, view.width, AXIS);
    pen.fillStyle = this.colours.faint;
    pen.fillText("session", 6, AXIS / 2);
    // Places in an order are whole numbers.
    const step = view.step(history.isTimed ? 0 : 1);
    for (let time = Math.ceil(view.from / step) * step; time <= view.until; time += step) {
      const x = view.x(time);
      const text = history.isTimed ? history.moment(Number(time.toPrecision(12))) : `${ordinal(Math.round(time) + 1)}`;
      if (!history.isTimed && time < 0) continue;
      pen.fillRect(x, AXIS - 5, 1, 5);
      if (x + 70 < view.width) pen.fillText(text, x + 3, AXIS / 2);
    }
    this.paintBandNames(pen);
  }

  /** What the bands are, as far as there is room for names. */
  paintBandNames(pen) {
    const { view, timeline } = this;
    let free = view.gutter;
    for (const { from, until, label } of timeline.bands) {
      const width = pen.measureText(label).width + 6;
      const left = Math.max(view.x(from), view.gutter) + 2;
      if (left < free || view.x(until) < view.gutter || left + width > view.width) continue;
      this.tag(pen, label, left + width / 2, AXIS + 7, this.colours.open);
      free = left + width + 4;
    }
  }
}

/** A place in an order: 1st, 2nd, 3rd. */
function ordinal(number) {
  const last = number % 10;
  const isTeen = Math.floor(number / 10) % 10 === 1;
  const ending = isTeen ? "th" : (["th", "st", "nd", "rd"][last] ?? "th");
  return `${number.toLocaleString("en")}${ending}`;
}

/** Of a long text the middle is left out. */
export function shortened(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor((most * 2) / 5);
  return `${text.slice(0, most - end - 1)}…${text.slice(text.length - end)}`;
}
