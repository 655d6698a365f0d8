// Why the chosen layer takes as long as it does.

class Detail {
  constructor(view, report, node) {
    this.report = report;
    this.node = node;
    this.nothing = [...node.childNodes];
    this.close = document.getElementById("close");
    this.close.addEventListener("click", () => view.choose(-1));
    view.listeners.push((layer) => this.show(layer));
  }

  show(number) {
    this.close.hidden = number < 0;
    this.node.parentNode.classList.toggle("open", number >= 0);
    if (number < 0) {
      this.node.replaceChildren(...this.nothing);
      return;
    }
    const { run, colours } = this.report;
    const layer = run.layers[number];
    const { summary, because, tries } = layer.why;
    const list = (items) => element("ul", {}, ...items.map((text) => element("li", {}, text)));
    const parts = [
      element("p", {}, swatch(colours.layers[number % colours.layers.length]), element("b", {}, layer.name)),
      element("p", { class: "hint" }, layer.kind),
      element("p", { class: "summary" }, summary),
      causesBar(this.report, layer),
    ];
    if (because.length) parts.push(element("h3", {}, "Because"), list(because));
    if (tries.length) parts.push(element("h3", {}, "What to try"), list(tries));
    parts.push(this.figures(layer));
    this.node.replaceChildren(...parts);
  }

  figures(layer) {
    const known = (value) => (value === null ? "?" : count(value));
    const figures = {
      cycles: count(layer.cycles),
      MACs: count(layer.macs),
      "of the multipliers": percent(layer.utilization),
      "DRAM bytes": count(layer.dram_bytes),
      "GEMM cycles": count(layer.gemm_cycles),
      "VECTOR cycles": count(layer.vector_cycles),
      "DRAM cycles": count(layer.dram_cycles),
      "bus at work": percent(layer.bus_cycles / (layer.cycles || 1)),
      "waits: token": known(layer.waited_token),
      "waits: bank": known(layer.waited_port),
      "waits: instruction": known(layer.waited_memory),
      instructions: `${layer.first} to ${layer.last}`,
    };
    const entries = Object.entries(figures).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)),
    );
    return element("dl", {}, ...entries);
  }
}
