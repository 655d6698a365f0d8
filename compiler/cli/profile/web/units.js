// One row a unit, one box an instruction; below it, what the unit waited for.

const ROW = { height: 30, strip: 7, gap: 9 };
const UNIT_NAMES = ["LOAD", "GEMM", "VECTOR", "STORE"];
const REASONS = ["fetch", "token", "bank"];
const MOST_TOKENS = 600;

class Units extends Chart {
  constructor(view, report, run, title, onInstruction) {
    const step = ROW.height + ROW.strip + ROW.gap;
    super(view, title, UNIT_NAMES.length * step, false);
    this.step = step;
    this.report = report;
    this.run = run;
    this.onInstruction = onInstruction;
    this.chosen = -1;
    const { unit, start, end, index } = run.instructions;
    this.rows = UNIT_NAMES.map((_, row) => [...unit.keys()].filter((place) => unit[place] === row));
    this.rows.forEach((row) => row.sort((a, b) => start[a] - start[b]));
    this.starts = this.rows.map((row) => row.map((place) => start[place]));
    // The latest end up to each place: instructions of a pipeline overlap.
    this.ends = this.rows.map((row) => {
      let latest = 0;
      return row.map((place) => (latest = Math.max(latest, end[place])));
    });
    this.place = new Map(index.map((number, place) => [number, place]));
    this.groups = UNIT_NAMES.map(() => []);
    this.waits = UNIT_NAMES.map(() => null);
  }

  paint() {
    UNIT_NAMES.forEach((_, row) => this.paintRow(row));
    if (document.getElementById("tokens").checked) this.paintTokens(this.run.flows);
    else if (this.chosen >= 0) {
      const mine = this.run.instructions.index[this.chosen];
      this.paintTokens(this.run.flows.filter((flow) => flow.includes(mine)));
    }
  }

  paintRow(row) {
    const { view } = this;
    const { start, end, layer, assembly } = this.run.instructions;
    const places = this.rows[row];
    const first = firstAbove(this.ends[row], view.begin - 1);
    const last = firstAbove(this.starts[row], view.end);
    const span = (n) => [start[places[n]] + 1, end[places[n]] + 1, layer[places[n]]];
    const y = row * this.step;
    this.groups[row] = groupedBoxes(view, first, last, span);
    const colours = this.report.colours.layers;
    for (const group of this.groups[row]) {
      const name = shortened(this.run.layers[group.layer].name, 24);
      const text =
        group.count > 1
          ? `${name} · ${group.count}`
          : `${assembly[places[group.first]].split(" ")[0]} · ${name}`;
      drawBox(this, group, y, ROW.height, colours[group.layer % colours.length], text);
      if (this.chosen >= 0 && group.count === 1 && places[group.first] === this.chosen) {
        this.context.strokeStyle = this.colour("--text");
        this.context.lineWidth = 2;
        this.context.strokeRect(group.x0, y + 1, Math.max(group.x1 - group.x0, 2), ROW.height - 2);
      }
    }
    this.paintWaits(row, y + ROW.height + 1);
  }

  // In each column of pixels, the part of its time that went to each reason.
  paintWaits(row, y) {
    const { view, context: c } = this;
    const found = (this.waits[row] = this.waited(row));
    for (let column = 0; column < view.width; column++) {
      let top = y;
      REASONS.forEach((reason, number) => {
        const height = ROW.strip * Math.min(found[number][column], 1);
        if (height < 0.2) return;
        c.fillStyle = this.report.colours.waits[reason];
        c.fillRect(view.left + column, top, 1, height);
        top += height;
      });
    }
  }

  waited(row) {
    const { view } = this;
    const { start, token, bank, fetch } = this.run.instructions;
    const places = this.rows[row];
    const found = REASONS.map(() => new Float32Array(view.width + 1));
    const last = Math.min(firstAbove(this.starts[row], view.end) + 1, places.length);
    for (let n = firstAbove(this.starts[row], view.begin - 1); n < last; n++) {
      // The bank was the last thing waited for, the token the one before it.
      let end = start[places[n]] + 1;
      [[2, bank], [1, token], [0, fetch]].forEach(([reason, waits]) => {
        const cycles = Math.max(waits[places[n]], 0);
        view.cover(found[reason], end - cycles, end);
        end -= cycles;
      });
    }
    return found;
  }

  paintTokens(flows) {
    const { view, context: c } = this;
    const { unit, start, end } = this.run.instructions;
    const shown = flows.filter(([source, target]) => {
      const [from, to] = [this.place.get(source), this.place.get(target)];
      return from !== undefined && to !== undefined && end[from] <= view.end && start[to] >= view.begin;
    });
    if (shown.length > MOST_TOKENS) return;
    const middle = (place) => unit[place] * this.step + ROW.height / 2;
    c.strokeStyle = this.colour("--text");
    c.lineWidth = 0.8;
    for (const flow of shown) {
      const [from, to] = flow.map((index) => this.place.get(index));
      c.beginPath();
      c.moveTo(view.x(end[from] + 1), middle(from));
      c.lineTo(view.x(start[to] + 1), middle(to));
      c.stroke();
    }
  }

  labels() {
    UNIT_NAMES.forEach((name, row) => this.label(name, row * this.step + ROW.height / 2));
  }

  at(x, y) {
    const row = Math.floor(y / this.step);
    const groups = this.groups[row] || [];
    const inBox = y - row * this.step < ROW.height;
    const hit = (group) => x >= group.x0 - 0.5 && x < Math.max(group.x1, group.x0 + 1.5);
    return [row, inBox ? groups.find(hit) : undefined];
  }

  text(x, y) {
    const [row, group] = this.at(x, y);
    const run = this.run;
    if (!group) return this.waitText(row, x);
    const name = run.layers[group.layer].name;
    const cycles = count(group.end - group.begin);
    const whose = group.mixed ? "several layers" : name;
    if (group.count > 1) {
      const busy = percent(group.busy / (group.end - group.begin));
      return `${UNIT_NAMES[row]}: ${group.count} instructions of ${whose}\n${cycles} cycles, ${busy} at work\nzoom in to see each`;
    }
    const place = this.rows[row][group.first];
    const all = run.instructions;
    const known = (value) => (value < 0 ? "?" : count(value));
    return [
      `instruction ${all.index[place]} of ${name}`,
      `cycles ${count(all.start[place])} to ${count(all.end[place])}, queued ${count(all.queued[place])}`,
      `waited: ${known(all.fetch[place])} instruction, ${known(all.token[place])} token, ${known(all.bank[place])} bank`,
    ].join("\n");
  }

  waitText(row, x) {
    const column = Math.floor(x - this.view.left);
    const found = this.waits[row];
    if (!found) return "";
    const parts = REASONS.map((reason, n) => [found[n][column] || 0, reason])
      .filter(([part]) => part > 0.005)
      .map(([part, reason]) => `${percent(Math.min(part, 1))} waits: ${reason}`);
    return parts.length ? `${UNIT_NAMES[row]} here\n${parts.join("\n")}` : "";
  }

  click(x, y) {
    const [row, group] = this.at(x, y);
    if (!group) return;
    this.chosen = group.count === 1 ? this.rows[row][group.first] : -1;
    if (this.chosen >= 0) {
      const { index, assembly } = this.run.instructions;
      this.onInstruction(`${index[this.chosen]}: ${assembly[this.chosen]}`);
      this.view.redraw();
    } else this.chooseLayer(group.layer);
  }
}
