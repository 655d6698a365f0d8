// Designs as points: latency over what they cost; a dragged rectangle is looked at closer.

const NEAR = 8;
const ROOM = 1.08;

class Scatter {
  // cost: the text, key and writing of a cost; hidden: sizes of the core that are not drawn.
  constructor(node, family, cost, colours, hidden) {
    this.node = node;
    this.family = family;
    this.cost = cost;
    this.colours = colours;
    this.hidden = hidden;
    this.range = null;
  }

  whole() {
    const { designs } = this.family;
    const costs = designs.map((each) => each[this.cost.key]);
    const times = designs.map((each) => each.ms);
    return {
      x: [0, Math.max(...costs, 1e-9) * ROOM],
      y: [Math.min(...times, 1) / ROOM, Math.max(...times, 1e-9) * ROOM],
    };
  }

  draw() {
    const width = Math.max(280, Math.floor(this.node.clientWidth));
    const height = Math.round(Math.min(Math.max(width * 0.5, 240), 460));
    const { x: across, y: up } = this.range || this.whole();
    const x = linearScale(...across, PAD.left, width - PAD.right);
    const y = logScale(...up, height - PAD.bottom, PAD.top);
    this.place = { x: across, y: up, width, height };
    const label = `${this.family.name}: latency over ${this.cost.text}`;
    this.drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
    const marks = powers(...up);
    drawAxes(this.drawing, width, height, [
      { scale: x, ticks: steps(...across, 6), shown: this.cost.shown, text: this.cost.text },
      { scale: y, ticks: marks.length > 2 ? marks : steps(...up, 5), shown: precise, text: "latency, ms" },
    ]);
    const shown = this.family.designs.filter((each) => this.isIn(each, across, up));
    const best = shown.filter((each) => each.best.includes(this.cost.key));
    best.sort((a, b) => a[this.cost.key] - b[this.cost.key]);
    const points = best.map((each) => `${x(each[this.cost.key])},${y(each.ms)}`).join(" ");
    this.drawing.append(svg("polyline", { points, class: "best" }));
    // The front on top.
    for (const each of shown.sort((a, b) => a.front - b.front)) {
      this.drawing.append(this.point(each, x(each[this.cost.key]), y(each.ms)));
    }
    this.listen();
    this.node.replaceChildren(this.drawing);
  }

  isIn(design, across, up) {
    const cost = design[this.cost.key];
    const inside = cost >= across[0] && cost <= across[1] && design.ms >= up[0] && design.ms <= up[1];
    return inside && !this.hidden.has(design.size);
  }

  point(design, cx, cy) {
    const fill = this.colours[this.family.sizes.indexOf(design.size) % this.colours.length];
    const made = svg("circle", {
      ...{ cx, cy, fill, r: design.front ? 6 : 4 },
      class: design.front ? "design front" : "design",
      role: "img",
      "aria-label": design.text.replaceAll("\n", ", "),
    });
    if (design.front) made.setAttribute("tabindex", "0");
    made.addEventListener("pointermove", (event) => {
      if (!this.start) showTooltip(design.text, event.clientX, event.clientY);
    });
    made.addEventListener("pointerleave", hideTooltip);
    made.addEventListener("focus", () => {
      const { right, bottom } = made.getBoundingClientRect();
      showTooltip(design.text, right, bottom);
    });
    made.addEventListener("blur", hideTooltip);
    return made;
  }

  // Where the pointer is, in the drawing, within its axes.
  at(event) {
    const box = this.drawing.getBoundingClientRect();
    const { width, height } = this.place;
    const x = ((event.clientX - box.left) * width) / box.width;
    const y = ((event.clientY - box.top) * height) / box.height;
    return [
      Math.min(Math.max(x, PAD.left), width - PAD.right),
      Math.min(Math.max(y, PAD.top), height - PAD.bottom),
    ];
  }

  listen() {
    const { drawing } = this;
    drawing.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button) return;
      this.start = this.at(event);
      this.chosen = svg("rect", { class: "chosen" });
      drawing.append(this.chosen);
      drawing.setPointerCapture(event.pointerId);
    });
    drawing.addEventListener("pointermove", (event) => {
      if (!this.start) return;
      const [x, y, width, height] = this.rectangle(this.at(event));
      for (const [name, value] of Object.entries({ x, y, width, height })) {
        this.chosen.setAttribute(name, value);
      }
    });
    drawing.addEventListener("pointerup", (event) => {
      if (!this.start) return;
      const [x, y, width, height] = this.rectangle(this.at(event));
      this.start = null;
      this.chosen.remove();
      if (width >= NEAR && height >= NEAR) this.show(x, y, width, height);
    });
    drawing.addEventListener("dblclick", () => this.showAll());
  }

  rectangle([x, y]) {
    const [left, top] = this.start;
    return [Math.min(x, left), Math.min(y, top), Math.abs(x - left), Math.abs(y - top)];
  }

  // What lies in a rectangle of the drawing.
  show(x, y, width, height) {
    const { x: across, y: up, width: whole, height: full } = this.place;
    const cost = linearScale(PAD.left, whole - PAD.right, ...across);
    const part = linearScale(full - PAD.bottom, PAD.top, Math.log(up[0]), Math.log(up[1]));
    this.range = {
      x: [cost(x), cost(x + width)],
      y: [Math.exp(part(y + height)), Math.exp(part(y))],
    };
    this.draw();
  }

  showAll() {
    this.range = null;
    this.draw();
  }
}

function precise(value) {
  return String(Number(value.toPrecision(3)));
}
