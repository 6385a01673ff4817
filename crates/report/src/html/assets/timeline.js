// Sessions as rows, transactions as bars over time, to be gone through by mouse and keys.
import { AXIS, GUTTER, ROW, Viewport } from "./viewport.js";
import { Painter } from "./painter.js";

export class Timeline {
  /**
   * `sessions`: which rows to show, by number; `marked`: transactions to point out; `range`: from
   * when to when; `onSelect`: told of the transaction that was chosen.
   */
  constructor(place, history, { label, sessions, marked, range, height, onSelect }) {
    this.history = history;
    this.sessions = sessions ?? history.sessions.map((_, at) => at);
    this.marked = new Set(marked ?? []);
    this.onSelect = onSelect;
    this.selected = null;
    this.hovered = null;
    this.view = new Viewport(range ?? [0, history.end]);
    this.build(place, label, height);
    this.painter = new Painter(this.canvas, this);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    this.resize();
  }

  build(place, label, height) {
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const [text, title, act] of [
      ["+", "Zoom in", () => this.zoom(0.5)],
      ["−", "Zoom out", () => this.zoom(2)],
      ["All", "Show all of it", () => this.show(...this.view.whole)],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", title);
      button.addEventListener("click", act);
      tools.append(button);
    }
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = "Drag to move, Ctrl and wheel to zoom, arrow keys to go from one to the next.";
    tools.append(hint);
    const full = this.sessions.length * ROW + AXIS + 8;
    this.scroller = document.createElement("div");
    this.scroller.className = "timeline";
    this.scroller.style.height = `${Math.min(full, height ?? 420)}px`;
    const room = document.createElement("div");
    room.style.height = `${full}px`;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `${label}. Arrow keys go from transaction to transaction.`);
    this.told = document.createElement("p");
    this.told.className = "told";
    this.told.setAttribute("aria-live", "polite");
    this.told.textContent = "Point at a bar to see what it read and from whom.";
    room.append(this.canvas);
    this.scroller.append(room);
    place.append(tools, this.scroller, this.told);
  }

  listen() {
    const { canvas } = this;
    this.scroller.addEventListener("scroll", () => this.scroll());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("focus", () => this.selected === null && this.select(this.firstVisible()));
  }

  resize() {
    this.view.width = this.scroller.clientWidth;
    this.view.height = this.scroller.clientHeight;
    this.painter.resize();
  }

  scroll() {
    this.view.top = this.scroller.scrollTop;
    this.painter.draw();
  }

  show(from, until) {
    this.view.show(from, until);
    this.painter.draw();
  }

  zoom(factor, around) {
    this.view.zoom(factor, around);
    this.painter.draw();
  }

  pan(share) {
    this.view.pan(share);
    this.painter.draw();
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.view.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / (this.view.width - GUTTER));
    }
  }

  grab(event) {
    this.held = { x: event.offsetX, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.held) return this.hover(this.hit(event.offsetX, event.offsetY));
    const by = this.held.x - event.offsetX;
    if (Math.abs(by) > 3 || this.held.moved) {
      this.held = { x: event.offsetX, moved: true };
      this.pan(by / (this.view.width - GUTTER));
    }
  }

  drop(event) {
    const clicked = this.held && !this.held.moved;
    this.held = null;
    if (clicked) this.select(this.hit(event.offsetX, event.offsetY));
  }

  /** The transaction at a place. Thin bars are met nearby as well. */
  hit(x, y) {
    const { history, view } = this;
    const row = view.row(y);
    if (row < 0 || row >= this.sessions.length) return null;
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

  firstVisible() {
    const [row] = this.view.rows(this.sessions.length);
    const { first, end } = this.history.sessions[this.sessions[row]];
    const at = Math.min(this.history.firstAfter(first, end, this.view.from), end - 1);
    return at >= first ? at : null;
  }

  hover(txn) {
    if (txn === this.hovered) return;
    this.hovered = txn;
    this.canvas.style.cursor = txn === null ? "grab" : "pointer";
    if (txn !== null) this.told.textContent = this.history.words(txn);
    this.painter.draw();
  }

  select(txn) {
    if (txn === null || txn === undefined) return;
    this.selected = txn;
    this.told.textContent = this.history.words(txn);
    this.painter.draw();
    this.onSelect?.(txn);
  }

  /** Chooses a transaction and brings it into view. */
  reveal(txn) {
    const { history, view } = this;
    const row = this.sessions.indexOf(history.sessionOf[txn]);
    if (row < 0) return;
    const [from, until] = [history.from[txn], history.until[txn]];
    const length = Math.max(until - from, history.end / 1e6);
    const isSmall = length / (view.until - view.from) < 0.01;
    if (from < view.from || until > view.until || isSmall) {
      const around = Math.min(length * 12, view.whole[1] - view.whole[0]);
      this.show(from - around, until + around);
    }
    const top = row * ROW;
    if (top < view.top || top > view.top + view.height - AXIS - ROW) {
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
    else return;
    event.preventDefault();
  }

  step(along, down) {
    const { sessions, sessionOf, from, until } = this.history;
    const at = this.selected ?? this.firstVisible();
    if (at === null) return;
    const row = this.sessions.indexOf(sessionOf[at]) + down;
    const session = sessions[this.sessions[row]];
    if (!session || session.first === session.end) return;
    const middle = (from[at] + until[at]) / 2;
    const next = down === 0 ? at + along : this.history.firstAfter(session.first, session.end, middle);
    this.reveal(Math.min(Math.max(next, session.first), session.end - 1));
  }
}
