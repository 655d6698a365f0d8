// Bytes a cycle on the memory bus, one kind on top of the other, below what the bus can carry.

const KINDS = ["load", "store", "fetch"];

class Traffic extends Chart {
  constructor(view, report, run) {
    super(view, "DRAM bytes a cycle", 90, false);
    this.colours = report.colours.units;
    this.run = run;
  }

  scale(value) {
    return this.height - (value / (this.run.bus * 1.08)) * this.height;
  }

  paint() {
    const { view, run, context: c } = this;
    const bins = run.traffic.load.length;
    const width = run.cycles / bins;
    const first = Math.max(0, Math.floor(view.begin / width));
    const last = Math.min(bins, Math.ceil(view.end / width));
    const step = Math.max(1, Math.floor((last - first) / view.width));
    for (let bin = first; bin < last; bin += step) {
      const parts = Math.min(step, last - bin);
      const x0 = view.x(bin * width);
      const x1 = view.x((bin + parts) * width);
      let below = 0;
      for (const kind of KINDS) {
        let value = 0;
        for (let part = 0; part < parts; part++) value += run.traffic[kind][bin + part] / parts;
        c.fillStyle = this.colours[kind];
        const top = this.scale(below + value);
        c.fillRect(x0, top, Math.max(x1 - x0, 0.75), this.scale(below) - top);
        below += value;
      }
    }
    c.fillStyle = this.colour("--worse");
    c.fillRect(view.left, this.scale(run.bus), view.width, 1);
  }

  labels() {
    this.label(`${run_text(this.run.bus)}`, this.scale(this.run.bus));
    this.label("0", this.height - 6);
  }

  text(x) {
    const { run } = this;
    const bin = Math.floor((this.view.cycle(x) / run.cycles) * run.traffic.load.length);
    if (run.traffic.load[bin] === undefined) return "";
    const lines = KINDS.map((kind) => `${kind}: ${run.traffic[kind][bin].toFixed(2)}`);
    return `bytes a cycle, of ${run_text(run.bus)} that the bus carries\n${lines.join("\n")}`;
  }
}

function run_text(value) {
  return String(Math.round(value * 100) / 100);
}
