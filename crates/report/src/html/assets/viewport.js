// Which part of a history a timeline shows, and where that is on the screen.

export const AXIS = 24;
/** How much of nothing may be seen on either side of the data. */
const MARGIN = 0.02;

/** A window onto times and rows: times from left to right, rows from top to bottom. */
export class Viewport {
  /** `whole`: from when to when there is anything to see; `rowHeight`; `range`: what to show first. */
  constructor(whole, rowHeight, range) {
    this.rowHeight = rowHeight;
    /** Room over the first row. */
    this.above = 6;
    const margin = (whole[1] - whole[0]) * MARGIN || 1;
    this.whole = [whole[0] - margin, whole[1] + margin];
    this.width = 0;
    this.height = 0;
    /** Where the names of the rows end. */
    this.gutter = 110;
    /** How far the rows are scrolled. */
    this.top = 0;
    this.show(...(range ?? this.whole));
  }

  resize(width, height) {
    [this.width, this.height] = [width, height];
    this.gutter = width < 520 ? 64 : 110;
  }

  x(time) {
    return this.gutter + ((time - this.from) / (this.until - this.from || 1)) * (this.width - this.gutter);
  }

  time(x) {
    return this.from + ((x - this.gutter) / (this.width - this.gutter)) * (this.until - this.from);
  }

  /** The upper edge of a row. */
  y(row) {
    return AXIS + this.above + row * this.rowHeight - this.top;
  }

  /** The row at a height; -1 on the axis. */
  row(y) {
    return y < AXIS ? -1 : Math.floor((y - AXIS - this.above + this.top) / this.rowHeight);
  }

  /** The first row that is visible, and the one after the last. */
  rows(count) {
    const first = Math.max(0, Math.floor(this.top / this.rowHeight));
    return [first, Math.min(count, first + Math.ceil(this.height / this.rowHeight) + 1)];
  }

  /** Shows a part. Nobody gets lost where there is no data: the window stays on it. */
  show(from, until) {
    const [start, end] = this.whole;
    const length = Math.min(Math.max(until - from, (end - start) / 1e7), end - start);
    const middle = (from + until) / 2;
    this.from = Math.min(Math.max(middle - length / 2, start), end - length);
    this.until = this.from + length;
  }

  zoom(factor, around = (this.from + this.until) / 2) {
    const length = this.until - this.from;
    const most = (this.whole[1] - this.whole[0]) / length;
    const scale = Math.min(factor, most);
    this.show(around - (around - this.from) * scale, around + (this.until - around) * scale);
  }

  pan(share) {
    const by = share * (this.until - this.from);
    this.show(this.from + by, this.until + by);
  }

  /** The distance between two marks on the axis: round, and wide enough for what stands there. */
  step(least) {
    const rough = Math.max(((this.until - this.from) / (this.width - this.gutter)) * 110, least);
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  }
}
