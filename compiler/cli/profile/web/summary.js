// The figures of the run, and what the colours mean.

function summaryCards(run, node) {
  const seconds = run.cycles / run.clock_hz;
  const cards = {
    cycles: count(run.cycles),
    [`at ${run.clock_hz / 1e6} MHz`]: `${(1e3 * seconds).toFixed(3)} ms`,
    "runs a second": (1 / seconds).toLocaleString("en-US", { maximumFractionDigits: 1 }),
    MACs: rounded(run.macs),
    [`of ${run.peak} MAC a cycle`]: percent(run.utilization),
    "DRAM traffic": rounded(run.read + run.written, "B"),
    instructions: count(run.instructions.index.length),
    device: run.device,
  };
  if (run.roof_cycles) cards["times the roof"] = (run.cycles / run.roof_cycles).toFixed(2);
  node.append(...Object.entries(cards).map(([name, value]) => card(name, value)));
}

function legend(report, node) {
  const { waits, units } = report.colours;
  const texts = [
    [waits.fetch, "waits for an instruction"],
    [waits.token, "waits for a token"],
    [waits.bank, "waits for a bank"],
    [units.load, "LOAD"],
    [units.store, "STORE"],
    [units.fetch, "instructions"],
  ];
  node.append(...texts.map(([colour, text]) => element("span", {}, swatch(colour), text)));
}
