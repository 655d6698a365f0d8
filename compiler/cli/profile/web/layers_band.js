// Which layer each cycle belongs to.

class LayersBand extends Chart {
  constructor(view, report, run, title) {
    super(view, title, 26, true);
    this.colours = report.colours.layers;
    this.run = run;
    this.ends = run.shares.map(([end]) => end);
    this.groups = [];
  }

  paint() {
    const { view, run, ends } = this;
    const first = firstAbove(ends, view.begin);
    const last = Math.min(firstAbove(ends, view.end) + 1, ends.length);
    const span = (place) => [place ? ends[place - 1] : 0, ends[place], run.shares[place][1]];
    this.groups = groupedBoxes(view, first, last, span);
    for (const group of this.groups) {
      const colour = this.colours[group.layer % this.colours.length];
      drawBox(this, group, 2, this.height - 4, colour, shortened(run.layers[group.layer].name, 24));
    }
  }

  at(x) {
    return this.groups.find((group) => x >= group.x0 && x < Math.max(group.x1, group.x0 + 1));
  }

  text(x) {
    const group = this.at(x);
    if (!group) return "";
    const layer = this.run.layers[group.layer];
    const part = percent(layer.cycles / this.run.cycles);
    return `${layer.name}\n${layer.kind}\n${count(layer.cycles)} cycles, ${part} of the run`;
  }

  click(x) {
    const group = this.at(x);
    if (group) this.chooseLayer(group.layer);
  }
}
