// Every layer with products: how many a byte of DRAM, how many a cycle; below what can be.

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
    drawAxes(drawing, width, height, [
      { scale: x, ticks: powers(low, high), text: "products for each byte of DRAM" },
      { scale: y, ticks: powers(slow, fast), text: "products a cycle" },
    ]);
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
