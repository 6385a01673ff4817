// Sessions as rows, transactions as bars over time. Only what is visible is drawn, so that a hundred
// thousand transactions scroll as smoothly as ten.

const ROW = 22;
const BAR = 14;
const AXIS = 24;
const GUTTER = 110;
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
    this.whole = range ?? [0, history.end];
    this.view = [...this.whole];
    this.build(place, label, height);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    const recolour = () => {
      this.colours = null;
      this.draw();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    window.addEventListener("themechange", recolour);
    this.resize();
  }

  build(place, label, height) {
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const [text, title, act] of [
      ["+", "Zoom in", () => this.zoom(0.5)],
      ["−", "Zoom out", () => this.zoom(2)],
      ["All", "Show all of it", () => this.show(...this.whole)],
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
    this.scroller.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("focus", () => this.selected === null && this.select(this.firstVisible()));
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.draw();
  }

  x(time) {
    const [from, until] = this.view;
    return GUTTER + ((time - from) / (until - from || 1)) * (this.width - GUTTER);
  }

  time(x) {
    const [from, until] = this.view;
    return from + ((x - GUTTER) / (this.width - GUTTER)) * (until - from);
  }

  /** The upper edge of a row, or of the one at an end where the row is not visible. */
  y(row) {
    return AXIS + row * ROW - this.scroller.scrollTop;
  }

  show(from, until) {
    const least = (this.whole[1] - this.whole[0]) / 1e7;
    this.view = [from, Math.max(until, from + least)];
    this.draw();
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [from, until] = this.view;
    this.show(around - (around - from) * factor, around + (until - around) * factor);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / (this.width - GUTTER));
    }
  }

  pan(share) {
    const by = share * (this.view[1] - this.view[0]);
    this.show(this.view[0] + by, this.view[1] + by);
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
      this.pan(by / (this.width - GUTTER));
    }
  }

  drop(event) {
    const clicked = this.held && !this.held.moved;
    this.held = null;
    if (clicked) this.select(this.hit(event.offsetX, event.offsetY));
  }

  /** The transaction at a place. Thin bars are met nearby as well. */
  hit(x, y) {
    const row = Math.floor((y - AXIS + this.scroller.scrollTop) / ROW);
    if (y < AXIS || row < 0 || row >= this.sessions.length) return null;
    const { first, end } = this.history.sessions[this.sessions[row]];
    const at = this.search(first, end, this.time(x));
    let best = null;
    let least = 4;
    for (const txn of [at - 1, at, at + 1]) {
      if (txn < first || txn >= end) continue;
      const left = this.x(this.history.from[txn]);
      const right = Math.max(this.x(this.history.until[txn]), left + 2);
      const distance = x < left ? left - x : Math.max(0, x - right);
      if (distance < least) [best, least] = [txn, distance];
    }
    return best;
  }

  /** The first transaction of a session that ends after a time. */
  search(first, end, time) {
    const { until } = this.history;
    while (first < end) {
      const middle = (first + end) >> 1;
      if (until[middle] <= time) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  firstVisible() {
    const row = Math.floor(this.scroller.scrollTop / ROW);
    const { first, end } = this.history.sessions[this.sessions[row]];
    const at = Math.min(this.search(first, end, this.view[0]), end - 1);
    return at >= first ? at : null;
  }

  hover(txn) {
    if (txn === this.hovered) return;
    this.hovered = txn;
    this.canvas.style.cursor = txn === null ? "grab" : "pointer";
    if (txn !== null) this.told.textContent = this.words(txn);
    this.draw();
  }

  select(txn) {
    if (txn === null || txn === undefined) return;
    this.selected = txn;
    this.told.textContent = this.words(txn);
    this.draw();
    this.onSelect?.(txn);
  }

  /** Chooses a transaction and brings it into view. */
  reveal(txn) {
    const { from, until, sessionOf } = this.history;
    const row = this.sessions.indexOf(sessionOf[txn]);
    if (row < 0) return;
    const length = Math.max(until[txn] - from[txn], this.history.end / 1e6);
    const [left, right] = this.view;
    const isSmall = length / (right - left) < 0.01;
    if (from[txn] < left || until[txn] > right || isSmall) {
      const around = Math.min(length * 12, this.whole[1] - this.whole[0]);
      this.show(from[txn] - around, until[txn] + around);
    }
    const top = row * ROW;
    const visible = this.scroller.scrollTop;
    if (top < visible || top > visible + this.height - AXIS - ROW) {
      this.scroller.scrollTop = top - this.height / 2;
    }
    this.select(txn);
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in steps) this.step(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Home") this.show(...this.whole);
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
    const next = down === 0 ? at + along : this.search(session.first, session.end, middle);
    this.reveal(Math.min(Math.max(next, session.first), session.end - 1));
  }

  words(txn) {
    const { history } = this;
    const ops = history.ops[txn];
    const sources = history.sources(txn).map(({ writer, op }) => `${op.text} from ${history.names[writer]}`);
    const what = ops ? ops.map((op) => op.text).join(", ") : "its operations are not in this file";
    const when = history.isTimed
      ? `, ${history.moment(history.start[txn])} to ${history.moment(history.finish[txn])}`
      : "";
    const read = sources.length > 0 ? `. Reads from others: ${sources.slice(0, 6).join(", ")}` : "";
    const head = `${history.names[txn]}, session ${history.sessionName(txn)}, ${history.outcome(txn)}${when}`;
    return `${head}: ${what || "no operations"}${read}.`;
  }

  draw() {
    if (!this.width) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const ratio = window.devicePixelRatio || 1;
    const pen = this.canvas.getContext("2d");
    this.colours ??= coloursOf(this.scroller);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, this.width, this.height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW));
    const last = Math.min(this.sessions.length, first + Math.ceil(this.height / ROW) + 1);
    this.painted = 0;
    for (let row = first; row < last; row++) this.paintRow(pen, row);
    this.paintArrows(pen, this.hovered ?? this.selected);
    this.paintNames(pen, first, last);
    this.paintAxis(pen);
  }

  paintRow(pen, row) {
    const { history } = this;
    const { first, end } = history.sessions[this.sessions[row]];
    const top = this.y(row) + (ROW - BAR) / 2;
    pen.strokeStyle = this.colours.rule;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(GUTTER, this.y(row) + ROW - 0.5);
    pen.lineTo(this.width, this.y(row) + ROW - 0.5);
    pen.stroke();
    for (let txn = this.search(first, end, this.view[0]); txn < end; ) {
      const left = Math.max(this.x(history.from[txn]), GUTTER - 2);
      if (left > this.width) break;
      const right = Math.min(Math.max(this.x(history.until[txn]), left + 1), this.width + 2);
      this.paintBar(pen, txn, left, right, top);
      // Whatever ends within the same pixel would not be seen.
      const next = right - left < 2 ? this.search(txn + 1, end, this.time(right + 0.5)) : txn + 1;
      txn = Math.max(this.nextMarked(txn, next), txn + 1);
    }
  }

  /** Transactions that are pointed out are never skipped. */
  nextMarked(txn, next) {
    if (next <= txn + 1) return next;
    let found = next;
    for (const marked of this.marked) if (marked > txn && marked < found) found = marked;
    return found;
  }

  paintBar(pen, txn, left, right, top) {
    this.painted++;
    const outcome = this.history.outcome(txn);
    const width = right - left;
    const main = this.marked.has(txn) ? this.colours.bad : this.colours.bar;
    pen.fillStyle = outcome === "committed" ? main : this.colours.paper;
    pen.strokeStyle = outcome === "unknown" ? this.colours.open : main;
    pen.setLineDash(outcome === "unknown" ? [3, 2] : []);
    pen.fillRect(left, top, width, BAR);
    if (outcome !== "committed" && width > 2) pen.strokeRect(left + 0.5, top + 0.5, width - 1, BAR - 1);
    else if (outcome !== "committed") pen.strokeRect(left, top, 0.5, BAR);
    pen.setLineDash([]);
    if (txn === this.selected || txn === this.hovered) {
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

  /** From the writers that a transaction read from, and to those who read from it. */
  paintArrows(pen, txn) {
    if (txn === null) return;
    const { history } = this;
    const middle = (at) => (this.x(history.from[at]) + this.x(history.until[at])) / 2;
    const rowOf = (at) => this.y(this.sessions.indexOf(history.sessionOf[at])) + ROW / 2;
    const seen = new Set();
    pen.strokeStyle = pen.fillStyle = this.colours.accent;
    pen.lineWidth = 1.5;
    for (const { writer } of history.sources(txn).slice(0, ARROW_LIMIT)) {
      if (seen.has(writer) || !this.sessions.includes(history.sessionOf[writer])) continue;
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
    pen.fillStyle = this.colours.paper;
    pen.fillRect(0, 0, GUTTER - 2, this.height);
    pen.fillStyle = this.colours.ink;
    for (let row = first; row < last; row++) {
      const name = this.history.sessions[this.sessions[row]].name;
      pen.fillText(name.length > 15 ? `${name.slice(0, 14)}…` : name, 6, this.y(row) + ROW / 2, GUTTER - 12);
    }
  }

  paintAxis(pen) {
    const [from, until] = this.view;
    pen.fillStyle = this.colours.panel;
    pen.fillRect(0, 0, this.width, AXIS);
    pen.fillStyle = this.colours.faint;
    pen.fillText("session", 6, AXIS / 2);
    // Positions are whole numbers.
    const least = this.history.isTimed ? 0 : 1;
    const rough = Math.max(((until - from) / (this.width - GUTTER)) * 110, least);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      const x = this.x(time);
      pen.fillRect(x, AXIS - 5, 1, 5);
      const text = this.history.isTimed ? this.history.moment(Number(time.toPrecision(12))) : `#${Math.round(time) + 1}`;
      if (x + 70 < this.width) pen.fillText(text, x + 3, AXIS / 2);
    }
  }
}
