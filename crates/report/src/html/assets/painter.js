// Draws a timeline. Only what is visible is drawn, so that a hundred thousand transactions scroll as
// smoothly as ten.
import { AXIS, GUTTER, ROW } from "./viewport.js";

const BAR = 14;
const ARROW_LIMIT = 60;
const COLOURS = ["paper", "panel", "ink", "faint", "rule", "accent", "bar", "bad", "open"];

/** The colours of the page as they are now, light or dark. */
function coloursOf(place) {
  const probe = document.createElement("i");
  place.append(probe);
  const found = COLOURS.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}

/** Paints what a timeline shows: `timeline` says which rows, and what is pointed out or chosen. */
export class Painter {
  constructor(canvas, timeline) {
    this.canvas = canvas;
    this.timeline = timeline;
    this.history = timeline.history;
    this.view = timeline.view;
    const recolour = () => {
      this.colours = null;
      this.draw();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    window.addEventListener("themechange", recolour);
  }

  resize() {
    const { canvas, view } = this;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = view.width * ratio;
    canvas.height = view.height * ratio;
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    this.draw();
  }

  draw() {
    if (!this.view.width) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { view, timeline } = this;
    const ratio = window.devicePixelRatio || 1;
    const pen = this.canvas.getContext("2d");
    this.colours ??= coloursOf(this.canvas.parentElement);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, view.width, view.height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const [first, last] = view.rows(timeline.sessions.length);
    for (let row = first; row < last; row++) this.paintRow(pen, row);
    this.paintArrows(pen, timeline.hovered ?? timeline.selected);
    this.paintNames(pen, first, last);
    this.paintAxis(pen);
  }

  paintRow(pen, row) {
    const { history, timeline, view } = this;
    const { first, end } = history.sessions[timeline.sessions[row]];
    const top = view.y(row) + (ROW - BAR) / 2;
    pen.strokeStyle = this.colours.rule;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(GUTTER, view.y(row) + ROW - 0.5);
    pen.lineTo(view.width, view.y(row) + ROW - 0.5);
    pen.stroke();
    for (let txn = history.firstAfter(first, end, view.from); txn < end; ) {
      const left = Math.max(view.x(history.from[txn]), GUTTER - 2);
      if (left > view.width) break;
      const right = Math.min(Math.max(view.x(history.until[txn]), left + 1), view.width + 2);
      this.paintBar(pen, txn, left, right, top);
      // Whatever ends within the same pixel would not be seen.
      const next = right - left < 2 ? history.firstAfter(txn + 1, end, view.time(right + 0.5)) : txn + 1;
      txn = Math.max(this.nextMarked(txn, next), txn + 1);
    }
  }

  /** Transactions that are pointed out are never skipped. */
  nextMarked(txn, next) {
    if (next <= txn + 1) return next;
    let found = next;
    for (const marked of this.timeline.marked) if (marked > txn && marked < found) found = marked;
    return found;
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
    const name = this.history.names[txn];
    if (width > 12 + name.length * 6.5) {
      pen.fillStyle = outcome === "committed" ? this.colours.paper : this.colours.ink;
      pen.fillText(name, left + 5, top + BAR / 2 + 0.5);
    }
  }

  /** From the writers that a transaction read from. */
  paintArrows(pen, txn) {
    if (txn === null) return;
    const { history, timeline, view } = this;
    const middle = (at) => (view.x(history.from[at]) + view.x(history.until[at])) / 2;
    const rowOf = (at) => view.y(timeline.sessions.indexOf(history.sessionOf[at])) + ROW / 2;
    const seen = new Set();
    pen.strokeStyle = pen.fillStyle = this.colours.accent;
    pen.lineWidth = 1.5;
    for (const { writer } of history.sources(txn).slice(0, ARROW_LIMIT)) {
      if (seen.has(writer) || !timeline.sessions.includes(history.sessionOf[writer])) continue;
      seen.add(writer);
      const [x1, y1, x2, y2] = [middle(writer), rowOf(writer), middle(txn), rowOf(txn)];
      const bend = y1 === y2 ? -ROW : 0;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.quadraticCurveTo((x1 + x2) / 2, (y1 + y2) / 2 + bend, x2, y2);
      pen.stroke();
      pen.beginPath();
      pen.arc(x2, y2, 3.5, 0, 7);
      pen.fill();
    }
  }

  paintNames(pen, first, last) {
    const { history, timeline, view } = this;
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, GUTTER - 2, view.height);
    pen.fillStyle = this.colours.ink;
    for (let row = first; row < last; row++) {
      const name = history.sessions[timeline.sessions[row]].name;
      pen.fillText(name.length > 15 ? `${name.slice(0, 14)}…` : name, 6, view.y(row) + ROW / 2, GUTTER - 12);
    }
  }

  paintAxis(pen) {
    const { history, view } = this;
    pen.fillStyle = this.colours.panel;
    pen.fillRect(0, 0, view.width, AXIS);
    pen.fillStyle = this.colours.faint;
    pen.fillText("session", 6, AXIS / 2);
    // Positions are whole numbers.
    const step = view.step(history.isTimed ? 0 : 1);
    for (let time = Math.ceil(view.from / step) * step; time <= view.until; time += step) {
      const x = view.x(time);
      pen.fillRect(x, AXIS - 5, 1, 5);
      const text = history.isTimed ? history.moment(Number(time.toPrecision(12))) : `#${Math.round(time) + 1}`;
      if (x + 70 < view.width) pen.fillText(text, x + 3, AXIS / 2);
    }
  }
}
