// Boxes on a row: those that are too short to see stand together.

const SHORT = 3;
const NEAR = 1.5;
const TEXT = 34;
const LETTER = 6.6;

// Boxes of a layer that are short and next to each other, as one; and those of any layers that
// share a pixel, which has the layer of the longest. `of(place)` gives the begin, the end and the
// layer of a box; places ascend. Each group: x0, x1, layer, mixed, first, count, busy.
function groupedBoxes(view, first, last, of) {
  const groups = [];
  let group = null;
  for (let place = first; place < last; place++) {
    const [begin, end, layer] = of(place);
    const x0 = view.x(begin);
    const x1 = view.x(end);
    const near = group && group.layer === layer && x0 - group.x1 < NEAR;
    if (near && (x1 - x0 < SHORT || group.x1 - group.x0 < SHORT || group.count > 1)) {
      group.x1 = Math.max(group.x1, x1);
      group.end = Math.max(group.end, end);
      group.busy += end - begin;
      group.count += 1;
    } else if (group && x1 - group.x0 < 1) {
      if (end - begin > group.longest) Object.assign(group, { layer, longest: end - begin });
      group.x1 = Math.max(group.x1, x1);
      group.end = Math.max(group.end, end);
      group.busy += end - begin;
      group.count += 1;
      group.mixed = true;
    } else {
      const busy = end - begin;
      group = { x0, x1, layer, first: place, count: 1, begin, end, busy, longest: busy };
      groups.push(group);
    }
  }
  return groups;
}

// A box that is filled as far up as it is busy, with as much of its name as fits.
function drawBox(chart, group, y, height, colour, text) {
  const { context: c, view } = chart;
  const left = Math.max(group.x0, view.left);
  const width = Math.max(Math.min(group.x1, view.left + view.width) - left, 0.75);
  const part = Math.min(1, group.busy / Math.max(group.end - group.begin, 1));
  c.globalAlpha = chart.dims(group.layer) ? 0.25 : 1;
  if (part < 0.98) {
    const alpha = c.globalAlpha;
    c.globalAlpha = alpha * 0.35;
    c.fillStyle = colour;
    c.fillRect(left, y, width, height);
    c.globalAlpha = alpha;
  }
  c.fillStyle = colour;
  c.fillRect(left, y + height * (1 - part), width, height * part);
  if (width > 8) {
    c.fillStyle = chart.colour("--back");
    c.fillRect(left + width - 0.5, y, 0.5, height);
  }
  if (width > TEXT && height >= 12) {
    const letters = Math.floor((width - 8) / LETTER);
    c.fillStyle = part < 0.6 ? chart.colour("--text") : chart.colour("--box-text");
    c.textAlign = "left";
    c.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, left + 4, y + height / 2);
  }
  c.globalAlpha = 1;
}
