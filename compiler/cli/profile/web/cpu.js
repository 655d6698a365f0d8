// The page of a model on a CPU: its kernels one after the other.

const KERNEL_COLUMNS = [
  ["#", "", (each) => each.number, (each) => String(each.number)],
  ["nodes", "text name", (each) => each.name, layerName],
  ["kernel", "text wide", (each) => each.kind, (each) => each.kind],
  ["µs", "", (each) => each.cycles, (each) => micros(each.cycles)],
  ["quartiles", "wide", (each) => each.high - each.low, (each) => `${micros(each.low)} – ${micros(each.high)}`],
  ["share", "", (each) => each.share, (each) => percent(each.share)],
  ["bytes", "middle", (each) => each.touched, (each) => count(each.touched)],
  ["bytes a µs", "wide", (each) => each.rate, (each) => count(each.rate)],
  ["L1 misses", "", (each) => each.misses[0], (each) => count(each.misses[0])],
  ["L2 misses", "", (each) => each.misses[1], (each) => count(each.misses[1])],
];

function micros(nanoseconds) {
  return (nanoseconds / 1000).toFixed(2);
}

class KernelsBand extends LayersBand {
  text(x) {
    const group = this.at(x);
    if (!group) return "";
    const kernel = this.run.layers[group.layer];
    return [
      kernel.name,
      kernel.kind,
      `${micros(kernel.cycles)} µs, ${percent(kernel.share)} of the run`,
      `${count(kernel.touched)} bytes, lines missing: ${kernel.misses.map(count).join(", ")}`,
    ].join("\n");
  }
}

async function cpuMain() {
  const report = await unpacked();
  const { run } = report;
  const view = new View(run.nanoseconds, "ns");
  const node = (id) => document.getElementById(id);
  const cards = {
    "µs a run": micros(run.nanoseconds),
    "runs a second": count(1e9 / run.nanoseconds),
    CPU: run.cpu,
    threads: String(run.threads),
    kernels: String(run.layers.length),
    "caches of a core": run.caches.map((size) => rounded(size, "B")).join(", "),
    "runs measured": String(run.runs),
  };
  node("summary").append(...Object.entries(cards).map(([name, value]) => card(name, value)));
  const charts = [new KernelsBand(view, report, run, "Kernels")];
  node("charts").append(...charts.map((chart) => chart.node));
  new LayerTable(view, report, node("layer-table"), KERNEL_COLUMNS);
  begin(view, report, charts);
}

cpuMain();
