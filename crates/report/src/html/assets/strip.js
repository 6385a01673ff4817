// The whole history in a strip: where there is much, where the anomalies are, and which part the
// timeline below it shows. Click and drag to go there.
import { coloursOf, onRecolour, penOf } from "./painter.js";

const HEIGHT = 36;

export class Strip {
  constructor(place, timeline) {
    this.timeline = timeline;
    this.history = timeline.history;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "strip";
    // The timeline says the same to those who do not see it, and goes everywhere by keys.
    this.canvas.setAttribute("aria-hidden", "true");
    place.append(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.held = true;
      this.go(event.offsetX);
    });
    this.canvas.addEventListener("pointermove", (event) => this.held && this.go(event.offsetX));
    this.canvas.addEventListener("pointerup", () => (this.held = false));
    onRecolour(() => {
      this.colours = this.ground = null;
      this.paint();
    });
  }

  resize(width) {
    this.width = width;
    this.ground = null;
    this.paint();
  }

  x(time) {
    const [start, end] = this.timeline.view.whole;
    return ((time - start) / (end - start)) * this.width;
  }

  /** Shows what is around a place, as much as is shown now. */
  go(x) {
    const { view } = this.timeline;
    const [start, end] = view.whole;
    const middle = start + (x / this.width) * (end - start);
    const half = (view.until - view.from) / 2;
    this.timeline.show(middle - half, middle + half);
  }

  /** How many transactions there are for each pixel: the square root, so that few are seen, too. */
  density() {
    const counts = new Float64Array(Math.ceil(this.width) + 1);
    const { from, until, count } = this.history;
    for (let txn = 0; txn < count; txn++) counts[Math.max(0, Math.floor(this.x((from[txn] + until[txn]) / 2)))]++;
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    return counts.map((count) => Math.sqrt(count / most));
  }

  paint() {
    if (!this.width) return;
    const { view, bands } = this.timeline;
    const pen = penOf(this.canvas, this.width, HEIGHT);
    this.colours ??= coloursOf(this.canvas.parentElement);
    this.ground ??= this.density();
    const { colours } = this;
    pen.fillStyle = colours.panel;
    pen.fillRect(0, 0, this.width, HEIGHT);
    pen.fillStyle = colours["open-paper"];
    for (const { from, until } of bands) pen.fillRect(this.x(from), 0, Math.max(2, this.x(until) - this.x(from)), HEIGHT);
    pen.fillStyle = colours.bar;
    this.ground.forEach((share, x) => {
      const height = share * (HEIGHT - 14);
      if (share > 0) pen.fillRect(x, HEIGHT - Math.max(1, height), 1, Math.max(1, height));
    });
    pen.fillStyle = colours.bad;
    for (const { txns } of this.history.anomalies) {
      for (const txn of txns) pen.fillRect(this.x((this.history.from[txn] + this.history.until[txn]) / 2) - 1, 0, 2, 10);
    }
    const [left, right] = [this.x(view.from), this.x(view.until)];
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.strokeRect(left + 1, 1, Math.max(right - left - 2, 3), HEIGHT - 2);
    pen.lineWidth = 1;
  }
}
