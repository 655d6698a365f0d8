// What a memory holds: its words from top to bottom, a box for each tensor.

const LEAST_BOX = 1;

class MemoryMap extends Chart {
  constructor(view, report, run, memory, axis) {
    const high = memory.name === "ACT" || memory.name === "DRAM";
    super(view, `${memory.name}: ${memoryText(memory)}`, high ? 110 : 56, axis);
    this.colours = report.colours.layers;
    this.run = run;
    this.memory = memory;
    this.boxes = [];
  }

  paint() {
    const { view, memory, context: c } = this;
    const scale = this.height / memory.depth;
    this.boxes = [];
    for (let n = 0; n < memory.low.length; n++) {
      if (memory.end[n] < view.begin || memory.begin[n] > view.end) continue;
      const x0 = Math.max(view.x(memory.begin[n]), view.left);
      const x1 = Math.min(view.x(memory.end[n]), view.left + view.width);
      const width = Math.max(x1 - x0, LEAST_BOX);
      const y = memory.low[n] * scale;
      const height = Math.max((memory.high[n] - memory.low[n]) * scale, LEAST_BOX);
      const layer = memory.layer[n];
      c.fillStyle = this.colour("--back");
      c.fillRect(x0, y, width, height);
      c.globalAlpha = this.dims(layer) ? 0.25 : 1;
      c.fillStyle = this.colours[layer % this.colours.length];
      c.fillRect(x0, y, width, height);
      c.globalAlpha = 1;
      if (height > 3 && width > 3) {
        c.strokeStyle = this.colour("--back");
        c.lineWidth = 0.5;
        c.strokeRect(x0, y, width, height);
      }
      this.write(this.name(n), x0, y, width, height);
      this.boxes.push([x0, x0 + width, y, y + height, n]);
    }
  }

  write(text, x, y, width, height) {
    if (width < TEXT || height < 13) return;
    const letters = Math.floor((width - 8) / LETTER);
    const c = this.context;
    c.fillStyle = this.colour("--box-text");
    c.textAlign = "left";
    c.fillText(text.length > letters ? `…${text.slice(1 - letters)}` : text, x + 4, y + height / 2);
  }

  name(n) {
    const { memory, run } = this;
    const name = memory.names[memory.tensor[n]];
    const layer = shortened(run.layers[memory.layer[n]].name, 32);
    if (memory.name === "ACC") return `sums of ${layer}`;
    if (!name) return layer;
    return ["weights", "bias", "scale", "add_bias"].includes(name) ? `${name} of ${layer}` : name;
  }

  labels() {
    this.label("0", 6);
    this.label(sizeText(this.memory), this.height - 6);
  }

  at(x, y) {
    return this.boxes.findLast(([x0, x1, y0, y1]) => x >= x0 && x < x1 && y >= y0 && y < y1);
  }

  text(x, y) {
    const box = this.at(x, y);
    if (!box) return "";
    const { memory, run } = this;
    const n = box[4];
    const unit = memory.name === "DRAM" ? "bytes" : "words";
    return [
      this.name(n),
      `of layer ${run.layers[memory.layer[n]].name}`,
      `${unit} ${count(memory.low[n])} to ${count(memory.high[n] - 1)}`,
      `cycles ${count(memory.begin[n])} to ${count(memory.end[n])}`,
    ].join("\n");
  }

  click(x, y) {
    const box = this.at(x, y);
    if (box) this.chooseLayer(this.memory.layer[box[4]]);
  }
}

function sizeText(memory) {
  return memory.name === "DRAM" ? rounded(memory.depth, "B") : count(memory.depth);
}

function memoryText(memory) {
  const texts = {
    ACT: "activations",
    WGT: "weights",
    ACC: "sums",
    PAR: "biases and scales",
    TAP: "depthwise weights",
    TAB: "look-up tables",
    DRAM: "what is loaded and stored",
  };
  const used = memory.used === null ? "" : `, at most ${percent(memory.used)} in use`;
  return `${texts[memory.name]}${used}`;
}
