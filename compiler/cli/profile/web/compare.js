// Two runs side by side: layer by layer, what got faster, and why.

function compareTable(report, section) {
  const { run, against, compared } = report;
  if (!against) return;
  section.hidden = false;
  section.querySelector("h2").textContent = `Against ${against.model} on ${against.target}`;
  const most = Math.max(...compared.slice(1).map((row) => Math.max(row.here ?? 0, row.there ?? 0)), 1);
  const heading = (text, kind) => element("th", { class: kind, scope: "col" }, text);
  const head = element(
    "tr",
    {},
    heading("layer", "text"),
    heading("this", "text middle"),
    heading("cycles", ""),
    heading("other", ""),
    heading("change", ""),
    heading("why", "text wide"),
  );
  const rows = compared.map((row, number) => compareRow(row, number ? most : 0));
  const table = element("table", { id: "comparison" });
  table.append(element("thead", {}, head), element("tbody", {}, ...rows));
  section.append(table);
  const seconds = (each) => `${((1e3 * each.cycles) / each.clock_hz).toFixed(3)} ms`;
  const hint = `This run takes ${seconds(run)}, the other ${seconds(against)}. The upper bar is this run's.`;
  section.append(element("p", { class: "hint" }, hint));
}

function compareRow({ name, here, there, why }, most) {
  const bars = element("td", { class: "middle" });
  if (most) {
    const bar = (value) => element("i", { style: `width:${(100 * (value ?? 0)) / most}%` });
    bars.append(element("span", { class: "pair" }, bar(here), bar(there)));
  }
  let change = "";
  let kind = "";
  if (here !== null && there) {
    const sign = here >= there ? "+" : "−";
    const part = `${sign}${Math.abs((100 * (here - there)) / there).toFixed(1)}%`;
    change = `${sign}${count(Math.abs(here - there))} (${part})`;
    kind = here < there ? "better" : here > there ? "worse" : "";
  }
  return element(
    "tr",
    { "data-name": name },
    element("td", { class: "text", title: name }, shortened(name, 48)),
    bars,
    element("td", {}, here === null ? "" : count(here)),
    element("td", {}, there === null ? "" : count(there)),
    element("td", { class: kind }, change),
    element("td", { class: "text wide" }, why),
  );
}
