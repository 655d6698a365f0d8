// The stretch of cycles that all charts over time show, and the layer that is chosen.

const GUTTER = { wide: 84, narrow: 60 };
const MARGIN = 12;
const SHORTEST = 8;

class View {
  // cycles: of the axis, or other steps of time that are called `unit`.
  constructor(cycles, unit = "cycles") {
    this.cycles = cycles;
    this.unit = unit;
    this.begin = 0;
    this.end = cycles;
    this.layer = -1;
    this.pointer = null;
    this.width = 0;
    this.left = 0;
    this.charts = [];
    this.listeners = [];
    this.waiting = false;
  }

  // Charts are as wide as the page: their axes begin and end at the same pixel.
  resize(width) {
    this.left = width < 600 ? GUTTER.narrow : GUTTER.wide;
    this.width = Math.max(1, Math.floor(width) - this.left - MARGIN);
    this.redraw();
  }

  x(cycle) {
    return this.left + ((cycle - this.begin) / (this.end - this.begin)) * this.width;
  }

  cycle(x) {
    return this.begin + ((x - this.left) / this.width) * (this.end - this.begin);
  }

  show(begin, end) {
    const length = Math.min(Math.max(end - begin, SHORTEST), this.cycles);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - length / 2, 0), this.cycles - length);
    this.end = this.begin + length;
    this.redraw();
  }

  zoom(factor, around = (this.begin + this.end) / 2) {
    const length = Math.min(Math.max((this.end - this.begin) * factor, SHORTEST), this.cycles);
    const part = (around - this.begin) / (this.end - this.begin);
    this.show(around - part * length, around - part * length + length);
  }

  move(cycles) {
    const length = this.end - this.begin;
    const begin = Math.min(Math.max(this.begin + cycles, 0), this.cycles - length);
    this.show(begin, begin + length);
  }

  choose(layer) {
    this.layer = layer;
    for (const listener of this.listeners) listener(layer);
    this.redraw();
  }

  point(cycle) {
    this.pointer = cycle;
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const chart of this.charts) chart.draw();
      const range = document.getElementById("range");
      const text = `${this.unit} ${count(this.begin)} to ${count(this.end)} of ${count(this.cycles)}`;
      if (range.textContent !== text) range.textContent = text;
    });
  }

  // Adds to each column of pixels the part of it that the cycles from `begin` to `end` cover.
  cover(columns, begin, end) {
    const scale = this.width / (this.end - this.begin);
    const from = Math.max((begin - this.begin) * scale, 0);
    const to = Math.min((end - this.begin) * scale, this.width);
    for (let column = Math.floor(from); column < to; column++) {
      columns[column] += Math.min(to, column + 1) - Math.max(from, column);
    }
  }

  // Round numbers of cycles, no closer than `apart` pixels.
  ticks(apart) {
    const least = ((this.end - this.begin) / this.width) * apart;
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= least);
    const found = [];
    for (let tick = Math.ceil(this.begin / step) * step; tick <= this.end; tick += step) {
      found.push(tick);
    }
    return found;
  }
}
