// Bytes a cycle on the memory bus, one kind on top of the other, below what the bus can carry.

class Traffic extends Chart {
  constructor(view, report, run) {
    super(view, "DRAM bytes a cycle", 90, false);
    this.colours = report.colours.units;
    this.kinds = Object.keys(this.colours);
    this.run = run;
    this.ends = [];
    this.parts = this.kinds.map(() => []);
    let end = 0;
    for (const [place, cycles] of run.traffic.cycles.entries()) {
      end += run.traffic.free[place] + cycles;
      this.ends.push(end);
    }
  }

  scale(value) {
    return this.height - (value / (this.run.bus * 1.08)) * this.height;
  }

  paint() {
    const { view, run, context: c, ends } = this;
    const { kind, cycles } = run.traffic;
    this.parts = this.kinds.map(() => new Float32Array(view.width + 1));
    for (let place = firstAbove(ends, view.begin); place < ends.length; place++) {
      const begin = ends[place] - cycles[place];
      if (begin > view.end) break;
      view.cover(this.parts[kind[place]], begin, ends[place]);
    }
    for (let column = 0; column < view.width; column++) {
      let below = 0;
      this.kinds.forEach((name, number) => {
        const value = this.parts[number][column] * run.bus;
        if (!value) return;
        const top = this.scale(below + value);
        c.fillStyle = this.colours[name];
        c.fillRect(view.left + column, top, 1, this.scale(below) - top);
        below += value;
      });
    }
    c.fillStyle = this.colour("--worse");
    c.fillRect(view.left, this.scale(run.bus), view.width, 1);
  }

  labels() {
    this.label(short(this.run.bus), this.scale(this.run.bus));
    this.label("0", this.height - 6);
  }

  text(x) {
    const column = Math.floor(x - this.view.left);
    const value = (number) => (this.parts[number][column] || 0) * this.run.bus;
    const lines = this.kinds.map((name, number) => `${name}: ${value(number).toFixed(2)}`);
    return `bytes a cycle, of ${short(this.run.bus)} that the bus carries\n${lines.join("\n")}`;
  }
}
