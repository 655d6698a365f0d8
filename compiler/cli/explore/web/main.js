// The plots of all families.

const COSTS = [
  { key: "share", text: "share of the part", shown: (value) => `${Math.round(1000 * value) / 10}%` },
  { key: "energy", text: "energy, uJ", shown: precise },
];

unpacked().then((report) => {
  const plots = [];
  report.families.forEach((family, number) => {
    const [bar, place] = ["sizes", "plots"].map((name) => document.getElementById(`${name}-${number}`));
    const hidden = new Set();
    const own = COSTS.map((cost) => {
      const node = element("div", { class: "plot", "data-cost": cost.key });
      place.append(node);
      return new Scatter(node, family, cost, report.colours, hidden);
    });
    family.sizes.forEach((size, n) => {
      const colour = report.colours[n % report.colours.length];
      const name = `${size}x${size}`;
      const button = element("button", { type: "button", "aria-pressed": "true" }, swatch(colour), name);
      button.addEventListener("click", () => {
        if (!hidden.delete(size)) hidden.add(size);
        button.setAttribute("aria-pressed", String(!hidden.has(size)));
        own.forEach((plot) => plot.draw());
      });
      bar.append(button);
    });
    const all = element("button", { type: "button" }, "All designs");
    all.addEventListener("click", () => own.forEach((plot) => plot.showAll()));
    bar.append(all);
    plots.push(...own);
  });
  let width = 0;
  const fit = () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    plots.forEach((plot) => plot.draw());
  };
  new ResizeObserver(fit).observe(document.body);
  window.addEventListener("scroll", hideTooltip, { passive: true });
  fit();
  window.dovetail = { report, plots };
  requestAnimationFrame(() => requestAnimationFrame(() => (document.body.dataset.ready = "yes")));
});
