// Layers as a table that is searched and sorted; and that of the units.

// Of each column: heading, classes, what it is sorted by, and what it shows.
const COLUMNS = [
  ["#", "", (layer) => layer.number, (layer) => String(layer.number)],
  ["layer", "text name", (layer) => layer.name, layerName],
  ["operators", "text wide", (layer) => layer.kind, (layer) => layer.kind.replaceAll("+", "+\u200b")],
  ["cycles", "", (layer) => layer.cycles, (layer) => count(layer.cycles)],
  [
    "where they went",
    "text middle",
    (layer) => -layer.causes[0] / (layer.cycles || 1),
    (layer, report) => causesBar(report, layer),
  ],
  ["MACs", "wide", (layer) => layer.macs, (layer) => count(layer.macs)],
  ["used", "", (layer) => layer.utilization, (layer) => percent(layer.utilization)],
  ["DRAM bytes", "wide", (layer) => layer.dram_bytes, (layer) => count(layer.dram_bytes)],
  ["bound", "text middle", (layer) => layer.bound, (layer) => layer.bound],
];

class LayerTable {
  constructor(view, report, node, columns = COLUMNS) {
    this.view = view;
    this.report = report;
    this.columns = columns;
    this.layers = report.run.layers.map((layer, number) => ({ ...layer, number }));
    this.sorted = [0, 1];
    this.body = element("tbody");
    node.append(this.head(), this.body);
    this.rows = this.layers.map((layer) => this.row(layer));
    this.body.append(...this.rows);
    view.listeners.push((layer) => this.choose(layer));
    const search = document.getElementById("search");
    search.addEventListener("input", () => this.find(search.value));
    search.addEventListener("keydown", (event) => {
      const first = this.rows.findIndex((row) => !row.hidden);
      if (event.key === "Enter" && first >= 0) this.open(first);
    });
  }

  head() {
    this.headings = this.columns.map(([name, kind], column) => {
      const button = element("button", { type: "button" }, name);
      button.addEventListener("click", () => this.sort(column));
      return element("th", { class: kind.replace("name", ""), scope: "col" }, button);
    });
    return element("thead", {}, element("tr", {}, ...this.headings));
  }

  row(layer) {
    const cells = this.columns.map(([, kind, , shown]) =>
      element("td", { class: kind }, shown(layer, this.report)),
    );
    const row = element("tr", { class: "layer", "data-name": layer.name }, ...cells);
    row.addEventListener("click", () => this.open(layer.number));
    return row;
  }

  // Chooses a layer and shows what is computed for it.
  open(number) {
    const { begin, end } = this.layers[number];
    const margin = Math.max(1, 0.02 * (end - begin));
    this.view.show(begin - margin, end + margin);
    this.view.choose(number);
  }

  choose(layer) {
    this.rows.forEach((row, number) => row.classList.toggle("chosen", number === layer));
  }

  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    this.layers.forEach((layer, number) => {
      const all = `${layer.name} ${layer.kind} ${layer.bound || ""}`.toLowerCase();
      const here = words.every((word) => all.includes(word));
      this.rows[number].hidden = !here;
      found += here;
    });
    const status = document.getElementById("matches");
    status.textContent = words.length ? `${found} of ${this.layers.length} layers` : "";
  }

  sort(column) {
    const direction = this.sorted[0] === column ? -this.sorted[1] : column < 3 ? 1 : -1;
    this.sorted = [column, direction];
    const key = this.columns[column][2];
    const order = [...this.layers].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      return direction * (left < right ? -1 : left > right ? 1 : a.number - b.number);
    });
    this.headings.forEach((heading, n) => {
      if (n === column) heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else heading.removeAttribute("aria-sort");
    });
    this.body.append(...order.map((layer) => this.rows[layer.number]));
  }
}

function layerName(layer, { colours }) {
  const colour = colours.layers[layer.number % colours.layers.length];
  const button = element("button", { type: "button", title: layer.name }, shortened(layer.name, 36));
  return element("span", {}, swatch(colour), button);
}

// A layer's cycles by what they were for.
function causesBar(report, layer) {
  const bar = element("span", { class: "stack", role: "img" });
  const texts = [];
  Object.entries(report.causes).forEach(([name, text], n) => {
    const part = layer.causes[n] / (layer.cycles || 1);
    if (part <= 0) return;
    texts.push(`${percent(part)} ${text}`);
    bar.append(
      element("i", { style: `width:${100 * part}%;background:${report.colours.causes[name]}` }),
    );
  });
  bar.setAttribute("aria-label", texts.join(", ") || "no cycle of its own");
  bar.addEventListener("pointermove", (event) =>
    showTooltip(texts.join("\n"), event.clientX, event.clientY),
  );
  bar.addEventListener("pointerleave", hideTooltip);
  return bar;
}

function unitTable(run, node) {
  const kinds = ["busy", "token", "bank", "idle"];
  const names = ["busy", "waits: token", "waits: bank", "nothing to do"];
  const headings = names.map((name) => element("th", { scope: "col" }, name));
  const head = element("tr", {}, element("th", { class: "text", scope: "col" }, "unit"), ...headings);
  const rows = run.units.map((unit) => {
    const cells = kinds.map((kind) =>
      element("td", { class: "wrap" }, `${count(unit[kind])} (${Math.round((100 * unit[kind]) / run.cycles)}%)`),
    );
    return element("tr", {}, element("td", { class: "text" }, unit.unit), ...cells);
  });
  node.append(element("thead", {}, head), element("tbody", {}, ...rows));
}
