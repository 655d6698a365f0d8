// What all pages do once their parts are made.

function begin(view, report, charts, resized = () => {}) {
  const node = (id) => document.getElementById(id);
  node("zoom-in").addEventListener("click", () => view.zoom(0.5));
  node("zoom-out").addEventListener("click", () => view.zoom(2));
  node("zoom-all").addEventListener("click", () => view.show(0, view.cycles));
  const fit = () => {
    view.resize(node("charts").clientWidth);
    resized();
  };
  new ResizeObserver(fit).observe(node("charts"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.redraw());
  window.addEventListener("scroll", hideTooltip, { passive: true });
  fit();
  window.dovetail = { view, report, charts, groupedBoxes };
  requestAnimationFrame(() => requestAnimationFrame(() => (document.body.dataset.ready = "yes")));
}

function card(name, value) {
  const made = element("div", { class: "card", "data-figure": name });
  made.append(element("b", {}, value), element("span", {}, name));
  return made;
}
