// Every layer with products: how many a byte of DRAM, how many a cycle; below what can be.

const SVG = "http://www.w3.org/2000/svg";
const PAD = { left: 64, right: 16, top: 14, bottom: 44 };

function svg(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

class Roofline {
  constructor(view, report, node) {
    this.view = view;
    this.report = report;
    this.node = node;
    view.listeners.push((layer) => this.choose(layer));
  }

  draw() {
    const { run, colours } = this.report;
    const width = Math.max(280, Math.floor(this.node.clientWidth));
    if (width === this.width) return;
    this.width = width;
    const height = Math.round(Math.min(Math.max(width * 0.5, 240), 560));
    const layers = [...run.layers.entries()].filter(
      ([, each]) => each.macs && each.dram_bytes && each.cycles,
    );
    const knee = run.peak / run.bus;
    const intensities = [knee, ...layers.map(([, each]) => each.macs / each.dram_bytes)];
    const speeds = [run.peak, ...layers.map(([, each]) => each.macs / each.cycles)];
    const [low, high] = [Math.min(...intensities) / 2, Math.max(...intensities) * 2];
    const [slow, fast] = [Math.min(...speeds, run.peak / 4) / 2, run.peak * 1.6];
    const x = logScale(low, high, PAD.left, width - PAD.right);
    const y = logScale(slow, fast, height - PAD.bottom, PAD.top);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
    drawing.setAttribute("aria-label", "Roofline: a point a layer");
    this.axes(drawing, x, y, [low, high], [slow, fast], width, height);
    const roof = [[low, low * run.bus], [knee, run.peak], [high, run.peak]];
    const points = roof.map(([a, b]) => `${x(a)},${y(Math.max(b, slow))}`).join(" ");
    drawing.append(svg("polyline", { points, fill: "none", stroke: "var(--worse)", "stroke-width": 2 }));
    this.points = new Map();
    const largest = layers.sort((a, b) => b[1].cycles - a[1].cycles);
    for (const [number, each] of largest) {
      const point = svg("circle", {
        cx: x(each.macs / each.dram_bytes),
        cy: y(Math.max(each.macs / each.cycles, slow)),
        r: 4 + 18 * Math.sqrt(each.cycles / run.cycles),
        fill: colours.layers[number % colours.layers.length],
        class: "point",
        role: "button",
        tabindex: "0",
        "aria-label": each.name,
        "data-layer": number,
      });
      this.listen(point, number, each);
      this.points.set(number, point);
      drawing.append(point);
    }
    this.node.replaceChildren(drawing);
    this.choose(this.view.layer);
  }

  axes(drawing, x, y, [low, high], [slow, fast], width, height) {
    for (const power of powers(low, high)) {
      const at = { x1: x(power), x2: x(power), y1: PAD.top, y2: height - PAD.bottom };
      drawing.append(svg("line", { ...at, stroke: "var(--grid)" }));
      const text = { x: x(power), y: height - PAD.bottom + 16, "text-anchor": "middle" };
      drawing.append(svg("text", text, short(power)));
    }
    for (const power of powers(slow, fast)) {
      const at = { y1: y(power), y2: y(power), x1: PAD.left, x2: width - PAD.right };
      drawing.append(svg("line", { ...at, stroke: "var(--grid)" }));
      const text = { x: PAD.left - 6, y: y(power) + 4, "text-anchor": "end" };
      drawing.append(svg("text", text, short(power)));
    }
    const middle = { x: (PAD.left + width) / 2, y: height - 8, "text-anchor": "middle" };
    drawing.append(svg("text", middle, "products for each byte of DRAM"));
    const turned = `translate(14 ${height / 2}) rotate(-90)`;
    drawing.append(
      svg("text", { transform: turned, "text-anchor": "middle" }, "products a cycle"),
    );
  }

  listen(point, number, layer) {
    const toggle = () => this.view.choose(this.view.layer === number ? -1 : number);
    point.addEventListener("click", toggle);
    point.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      toggle();
      event.preventDefault();
    });
    const text = `${layer.name}\n${(layer.macs / layer.cycles).toFixed(1)} products a cycle\n${short(
      layer.macs / layer.dram_bytes,
    )} products a byte\n${count(layer.cycles)} cycles, bound by ${layer.bound}`;
    point.addEventListener("pointermove", (event) => showTooltip(text, event.clientX, event.clientY));
    point.addEventListener("pointerleave", hideTooltip);
  }

  choose(layer) {
    for (const [number, point] of this.points || []) {
      point.classList.toggle("chosen", number === layer);
    }
  }
}

function logScale(low, high, from, to) {
  return (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
}

function powers(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) {
    for (const digit of [1, 2, 5]) {
      const value = digit * 10 ** power;
      if (value <= high && (digit === 1 || high / low < 50)) found.push(value);
    }
  }
  return found;
}
