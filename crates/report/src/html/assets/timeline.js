// Sessions as rows, transactions as bars over time, to be gone through by mouse and keys.
import { AXIS, Viewport } from "./viewport.js";
import { Painter } from "./painter.js";
import { Strip } from "./strip.js";

/** How wide a sheet of paper is, in pixels. */
const PAPER = 700;
const TIMED = "Drag to move, Ctrl and wheel to zoom, arrow keys to go from one to the next.";
const UNTIMED =
  "This history has no times. The order fits the sessions and, as far as possible, what was read.";

export class Timeline {
  /**
   * `sessions`: which rows to show, by number; `anomalies`: those to go through; `range`: from when
   * to when; `links`: told of what is pointed at and chosen; `isWhole`: whether there is a strip.
   */
  constructor(place, history, { label, sessions, anomalies, range, height, links, isWhole }) {
    this.history = history;
    this.sessions = sessions;
    this.rowOf = new Map(sessions.map((session, row) => [session, row]));
    this.anomalies = [...anomalies].sort((a, b) => this.beginning(a) - this.beginning(b));
    this.marked = new Set(anomalies.flatMap(({ txns }) => txns));
    this.inOrder = Float64Array.from(this.marked).sort();
    this.anomaly = isWhole ? null : (anomalies[0] ?? null);
    this.links = links;
    this.bands = links.bands;
    this.selected = null;
    this.hovered = null;
    this.view = new Viewport([0, history.end], isWhole ? 26 : 44, range);
    // Bands have names.
    if (this.bands.length > 0) this.view.above = 18;
    this.home = [this.view.from, this.view.until];
    this.build(place, label, height, isWhole);
    this.painter = new Painter(this.canvas, this);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    this.resize();
    links.addTimeline(this);
  }

  beginning({ txns }) {
    return Math.min(...txns.map((txn) => this.history.from[txn]));
  }

  build(place, label, height, isWhole) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const buttons = [
      ["+", "Zoom in", () => this.zoom(0.5)],
      ["−", "Zoom out", () => this.zoom(2)],
      isWhole ? ["All", "Show all of it", () => this.show(...this.view.whole)] : ["Reset", "Reset to the anomaly", () => this.show(...this.home)],
    ];
    if (isWhole && this.anomalies.length > 0) {
      buttons.push(["‹", "Previous anomaly", () => this.go(-1)], ["›", "Next anomaly", () => this.go(1)]);
    }
    for (const [text, title, act] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", title);
      button.title = title;
      button.addEventListener("click", act);
      tools.append(button);
    }
    this.hint = document.createElement("span");
    this.hint.className = "hint";
    this.hint.textContent = this.history.isTimed ? TIMED : UNTIMED;
    tools.append(this.hint);
    const full = this.sessions.length * this.view.rowHeight + AXIS + this.view.above + 8;
    this.scroller = document.createElement("div");
    this.scroller.className = "timeline";
    this.scroller.style.height = `${Math.min(full, height)}px`;
    const room = document.createElement("div");
    room.style.height = `${full}px`;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `${label}. Arrow keys go from transaction to transaction, Enter shows one.`);
    this.told = document.createElement("p");
    this.told.className = "told";
    this.told.setAttribute("aria-live", "polite");
    this.told.textContent = "Point at a bar to see what it read and from whom; click for details.";
    room.append(this.canvas);
    this.scroller.append(room);
    place.append(tools);
    if (isWhole) this.strip = new Strip(place, this);
    place.append(this.scroller, this.told);
  }

  listen() {
    const { canvas } = this;
    this.scroller.addEventListener("scroll", () => this.scroll());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("focus", () => this.selected === null && this.select(this.firstVisible()));
    // Paper is narrower than most screens.
    matchMedia("print").addEventListener("change", () => this.resize());
    window.addEventListener("beforeprint", () => this.resize(PAPER));
    window.addEventListener("afterprint", () => this.resize());
  }

  resize(paper) {
    const isPrinted = matchMedia("print").matches;
    const width = paper ?? (isPrinted ? Math.min(PAPER, this.scroller.clientWidth) : this.scroller.clientWidth);
    if (!width) return;
    this.view.resize(width, this.scroller.clientHeight);
    this.strip?.resize(width);
    // What is printed is printed at once.
    if (paper !== undefined || isPrinted) this.painter.paint();
    else this.painter.draw();
  }

  scroll() {
    this.view.top = this.scroller.scrollTop;
    this.painter.draw();
  }

  draw() {
    this.painter.draw();
    this.strip?.paint();
  }

  show(from, until) {
    this.view.show(from, until);
    this.draw();
  }

  zoom(factor, around) {
    this.view.zoom(factor, around);
    this.draw();
  }

  pan(share) {
    this.view.pan(share);
    this.draw();
  }

  /** To the next anomaly in time, or to the one before. */
  go(by) {
    const count = this.anomalies.length;
    this.at = this.at === undefined ? (by > 0 ? 0 : count - 1) : (this.at + by + count) % count;
    this.showAnomaly(this.anomalies[this.at]);
  }

  /** An anomaly with its arrows, and a little time on either side. */
  showAnomaly(anomaly) {
    const { history } = this;
    this.anomaly = anomaly;
    this.at = this.anomalies.indexOf(anomaly);
    if (anomaly.txns.length === 0) return;
    const from = this.beginning(anomaly);
    const until = Math.max(...anomaly.txns.map((txn) => history.until[txn]));
    const around = (until - from) * 0.25 || 1;
    this.show(from - around, until + around);
    const rows = anomaly.txns.map((txn) => this.rowOf.get(history.sessionOf[txn]));
    const middle = ((Math.min(...rows) + Math.max(...rows)) / 2) * this.view.rowHeight;
    this.scroller.scrollTop = middle - this.view.height / 2;
    this.links.describe(this.hint, anomaly, this.at, this.anomalies.length);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.view.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / (this.view.width - this.view.gutter));
    }
  }

  grab(event) {
    this.held = { x: event.offsetX, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.held) return this.point(this.hit(event.offsetX, event.offsetY));
    const by = this.held.x - event.offsetX;
    if (Math.abs(by) > 3 || this.held.moved) {
      this.held = { x: event.offsetX, moved: true };
      this.pan(by / (this.view.width - this.view.gutter));
    }
  }

  drop(event) {
    const clicked = this.held && !this.held.moved;
    this.held = null;
    const txn = clicked ? this.hit(event.offsetX, event.offsetY) : null;
    if (txn === null) return;
    this.select(txn);
    this.links.open({ txn }, this.canvas, this.rect(txn));
  }

  /** Where a bar is on the screen. */
  rect(txn) {
    const { history, view } = this;
    const { left, top } = this.canvas.getBoundingClientRect();
    const x = Math.max(view.x(history.from[txn]), view.gutter);
    const y = view.y(this.rowOf.get(history.sessionOf[txn]));
    return { left: left + x, top: top + y, bottom: top + y + view.rowHeight };
  }

  /** The transaction at a place. Thin bars are met nearby as well. */
  hit(x, y) {
    const { history, view } = this;
    const row = view.row(y);
    if (row < 0 || row >= this.sessions.length || x < view.gutter) return null;
    const { first, end } = history.sessions[this.sessions[row]];
    const at = history.firstAfter(first, end, view.time(x));
    let best = null;
    let least = 4;
    for (const txn of [at - 1, at, at + 1]) {
      if (txn < first || txn >= end) continue;
      const left = view.x(history.from[txn]);
      const right = Math.max(view.x(history.until[txn]), left + 2);
      const distance = x < left ? left - x : Math.max(0, x - right);
      if (distance < least) [best, least] = [txn, distance];
    }
    return best;
  }

  /** Transactions that are pointed out are never skipped: the first of them before `next`. */
  nextMarked(txn, next) {
    if (next <= txn + 1) return next;
    let [low, high] = [0, this.inOrder.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.inOrder[middle] <= txn) low = middle + 1;
      else high = middle;
    }
    return low < this.inOrder.length ? Math.min(next, this.inOrder[low]) : next;
  }

  firstVisible() {
    const [row] = this.view.rows(this.sessions.length);
    const { first, end } = this.history.sessions[this.sessions[row]];
    const at = Math.min(this.history.firstAfter(first, end, this.view.from), end - 1);
    return at >= first ? at : null;
  }

  /** Somebody points at a bar here. */
  point(txn) {
    if (txn === this.hovered) return;
    this.canvas.style.cursor = txn === null ? "grab" : "pointer";
    if (txn !== null) this.told.textContent = this.history.words(txn);
    this.links.hover(txn);
  }

  /** A transaction is pointed at somewhere. */
  hover(txn) {
    if (txn === this.hovered) return;
    this.hovered = txn;
    this.painter.draw();
  }

  select(txn) {
    if (txn === null || txn === undefined) return;
    this.selected = txn;
    this.told.textContent = this.history.words(txn);
    this.painter.draw();
  }

  /** Chooses a transaction and brings it into view. */
  reveal(txn) {
    const { history, view } = this;
    const row = this.rowOf.get(history.sessionOf[txn]);
    if (row === undefined) return;
    const [from, until] = [history.from[txn], history.until[txn]];
    const length = Math.max(until - from, history.end / 1e6);
    const isSmall = length / (view.until - view.from) < 0.01;
    if (from < view.from || until > view.until || isSmall) {
      const around = Math.min(length * 12, view.whole[1] - view.whole[0]);
      this.show(from - around, until + around);
    }
    const top = row * this.view.rowHeight;
    if (top < view.top || top > view.top + view.height - AXIS - view.rowHeight) {
      this.scroller.scrollTop = top - view.height / 2;
    }
    this.select(txn);
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in steps) this.step(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Home") this.show(...this.view.whole);
    else if (event.key === "Enter" && this.selected !== null) this.links.open({ txn: this.selected }, this.canvas, this.rect(this.selected));
    else return;
    event.preventDefault();
  }

  step(along, down) {
    const { sessions, sessionOf, from, until } = this.history;
    const at = this.selected ?? this.firstVisible();
    if (at === null) return;
    const row = this.rowOf.get(sessionOf[at]) + down;
    const session = sessions[this.sessions[row]];
    if (!session || session.first === session.end) return;
    const middle = (from[at] + until[at]) / 2;
    const next = down === 0 ? at + along : this.history.firstAfter(session.first, session.end, middle);
    this.reveal(Math.min(Math.max(next, session.first), session.end - 1));
  }
}
