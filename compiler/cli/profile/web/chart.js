// A chart over time: a canvas as wide as all others, that moves and zooms with them.

const TICKS_APART = 110;
const CLICK_DISTANCE = 4;

class Chart {
  // height: of the plot alone; axis: whether cycles are written below.
  constructor(view, title, height, axis = false) {
    this.view = view;
    this.height = height;
    this.total = height + (axis ? 20 : 4);
    this.axis = axis;
    this.canvas = element("canvas", { role: "img", tabindex: "0", "aria-label": title });
    this.canvas.style.height = `${this.total}px`;
    this.node = element("div", { class: "chart" }, element("h3", {}, title), this.canvas);
    this.context = this.canvas.getContext("2d");
    this.pointers = new Map();
    this.moved = 0;
    view.charts.push(this);
    this.listen();
  }

  // The layer that is chosen, and choosing one, by this chart's own numbers: the charts of the
  // other run have a table of the first run's layers by theirs.
  chosenLayer() {
    const { layer } = this.view;
    return this.twins && layer >= 0 ? this.twins.indexOf(layer) : layer;
  }

  dims(layer) {
    return this.view.layer >= 0 && layer !== this.chosenLayer();
  }

  chooseLayer(layer) {
    const number = this.twins ? this.twins[layer] : layer;
    this.view.choose(number === this.view.layer ? -1 : number);
  }

  // What subclasses give: paint(), text(x, y) of the tooltip, click(x, y) and lines on the left.
  paint() {}

  text() {
    return "";
  }

  click() {}

  draw() {
    const { view, context: c } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = view.left + view.width + MARGIN;
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.total * ratio);
      this.canvas.style.width = `${width}px`;
    }
    this.style = getComputedStyle(document.documentElement);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, this.total);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.grid();
    c.save();
    c.beginPath();
    c.rect(view.left, 0, view.width, this.height);
    c.clip();
    this.paint();
    if (view.pointer !== null) {
      c.fillStyle = this.colour("--mark");
      const x = Math.min(Math.round(view.x(view.pointer)), view.left + view.width - 1);
      c.fillRect(x, 0, 1, this.height);
    }
    c.restore();
    this.labels();
  }

  labels() {}

  colour(name) {
    return this.style.getPropertyValue(name).trim();
  }

  grid() {
    const { view, context: c } = this;
    for (const tick of view.ticks(TICKS_APART)) {
      const x = Math.round(view.x(tick));
      c.fillStyle = this.colour("--grid");
      c.fillRect(x, 0, 1, this.height);
      if (!this.axis) continue;
      const text = count(tick);
      const half = c.measureText(text).width / 2;
      const last = view.left + view.width + MARGIN - half;
      c.fillStyle = this.colour("--quiet");
      c.textAlign = "center";
      c.fillText(text, Math.min(Math.max(x, half), last), this.height + 11);
    }
  }

  label(text, y) {
    const c = this.context;
    c.textAlign = "right";
    c.fillStyle = this.colour("--quiet");
    c.fillText(text, this.view.left - 6, y);
  }

  listen() {
    const { canvas, view, pointers } = this;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, place(event));
      this.moved = 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (pointers.has(event.pointerId)) this.dragged(event.pointerId, x, y);
      else this.hover(event, x, y);
    });
    const up = (event) => {
      const [x, y] = place(event);
      if (pointers.delete(event.pointerId) && this.moved < CLICK_DISTANCE) {
        this.click(x, y);
        this.hover(event, x, y);
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => {
      hideTooltip();
      view.point(null);
    });
    canvas.addEventListener("dblclick", (event) => view.zoom(0.25, view.cycle(place(event)[0])));
    canvas.addEventListener(
      "wheel",
      (event) => {
        const step = (view.end - view.begin) / view.width;
        if (event.ctrlKey || event.metaKey) {
          view.zoom(Math.exp(event.deltaY / 300), view.cycle(place(event)[0]));
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          view.move(step * (event.deltaX || event.deltaY));
        } else return;
        event.preventDefault();
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      const step = (view.end - view.begin) / 5;
      const keys = {
        ArrowLeft: () => view.move(-step),
        ArrowRight: () => view.move(step),
        "+": () => view.zoom(0.5),
        "=": () => view.zoom(0.5),
        "-": () => view.zoom(2),
        0: () => view.show(0, view.cycles),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      keys[event.key]();
      event.preventDefault();
    });
  }

  dragged(id, x, y) {
    const { pointers, view } = this;
    const before = pointers.get(id);
    this.moved += Math.abs(x - before[0]);
    const others = [...pointers].filter(([other]) => other !== id);
    if (others.length) {
      const fixed = others[0][1][0];
      const apart = Math.max(20, Math.abs(before[0] - fixed));
      view.zoom(apart / Math.max(20, Math.abs(x - fixed)), view.cycle(fixed));
    } else {
      view.move(((before[0] - x) * (view.end - view.begin)) / view.width);
    }
    pointers.set(id, [x, y]);
    hideTooltip();
  }

  hover(event, x, y) {
    const { view } = this;
    const inside = x >= view.left && x <= view.left + view.width && y < this.height;
    const text = inside ? this.text(x, y) : "";
    view.point(inside ? view.cycle(x) : null);
    if (text) showTooltip(text, event.clientX, event.clientY);
    else hideTooltip();
  }
}
