// Puts the page together.

async function main() {
  const report = await unpacked();
  const { run, against } = report;
  const longest = Math.max(run.cycles, against ? against.cycles : 0);
  const view = new View(longest);
  const node = (id) => document.getElementById(id);
  const say = (text) => (node("instruction").textContent = text);

  summaryCards(run, node("summary"));
  legend(report, node("legend"));
  compareTable(report, node("compare"));
  const charts = [
    new LayersBand(view, report, run, "Layers"),
    new Units(view, report, run, "Units", say),
    new Traffic(view, report, run),
    ...run.memory.map(
      (memory, n) => new MemoryMap(view, report, run, memory, n === run.memory.length - 1),
    ),
  ];
  if (against) {
    const title = `${against.model} on ${against.target}`;
    const others = [
      new LayersBand(view, report, against, `Layers of ${title}`),
      new Units(view, report, against, `Units of ${title}`, say),
    ];
    // By name, else by place, as the table does.
    const names = run.layers.map((layer) => layer.name);
    const twins = against.layers.map((layer, number) => {
      const same = names.indexOf(layer.name);
      return same < 0 && number < names.length ? number : same;
    });
    for (const chart of others) chart.twins = twins;
    charts.splice(2, 0, ...others);
  }
  node("charts").append(...charts.map((chart) => chart.node));
  new LayerTable(view, report, node("layer-table"));
  new Detail(view, report, node("why"));
  unitTable(run, node("unit-table"));
  const roofline = new Roofline(view, report, node("roofline"));

  node("tokens").addEventListener("change", () => view.redraw());
  begin(view, report, charts, () => roofline.draw());
}

main();
