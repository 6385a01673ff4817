// Which part of a history a timeline shows, and where that is on the screen.

export const ROW = 22;
export const AXIS = 24;
export const GUTTER = 110;

/** A window onto times and rows: times from left to right, rows from top to bottom. */
export class Viewport {
  /** `whole`: from when to when there is anything to see. */
  constructor(whole) {
    this.whole = whole;
    [this.from, this.until] = whole;
    this.width = 0;
    this.height = 0;
    /** How far the rows are scrolled. */
    this.top = 0;
  }

  x(time) {
    return GUTTER + ((time - this.from) / (this.until - this.from || 1)) * (this.width - GUTTER);
  }

  time(x) {
    return this.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.until - this.from);
  }

  /** The upper edge of a row. */
  y(row) {
    return AXIS + row * ROW - this.top;
  }

  /** The row at a height; -1 on the axis. */
  row(y) {
    return y < AXIS ? -1 : Math.floor((y - AXIS + this.top) / ROW);
  }

  /** The first row that is visible, and the one after the last. */
  rows(count) {
    const first = Math.max(0, Math.floor(this.top / ROW));
    return [first, Math.min(count, first + Math.ceil(this.height / ROW) + 1)];
  }

  show(from, until) {
    const least = (this.whole[1] - this.whole[0]) / 1e7;
    [this.from, this.until] = [from, Math.max(until, from + least)];
  }

  zoom(factor, around = (this.from + this.until) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.until - around) * factor);
  }

  pan(share) {
    const by = share * (this.until - this.from);
    this.show(this.from + by, this.until + by);
  }

  /** The distance between two marks on the axis: round, and wide enough for what stands there. */
  step(least) {
    const rough = Math.max(((this.until - this.from) / (this.width - GUTTER)) * 110, least);
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  }
}
