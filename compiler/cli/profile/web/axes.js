// Drawings with two axes.

const SVG = "http://www.w3.org/2000/svg";
const PAD = { left: 64, right: 16, top: 14, bottom: 44 };

function svg(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Of each axis, across and up: its scale, the values of its ticks, how they are written, and what
// it is of.
function drawAxes(drawing, width, height, [across, up]) {
  const bottom = height - PAD.bottom;
  for (const tick of across.ticks) {
    const x = across.scale(tick);
    drawing.append(svg("line", { x1: x, x2: x, y1: PAD.top, y2: bottom, stroke: "var(--grid)" }));
    drawing.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle" }, (across.shown || short)(tick)));
  }
  for (const tick of up.ticks) {
    const y = up.scale(tick);
    const ends = { x1: PAD.left, x2: width - PAD.right };
    drawing.append(svg("line", { ...ends, y1: y, y2: y, stroke: "var(--grid)" }));
    drawing.append(svg("text", { x: PAD.left - 6, y: y + 4, "text-anchor": "end" }, (up.shown || short)(tick)));
  }
  const middle = { x: (PAD.left + width) / 2, y: height - 8, "text-anchor": "middle" };
  drawing.append(svg("text", middle, across.text));
  const transform = `translate(14 ${height / 2}) rotate(-90)`;
  drawing.append(svg("text", { transform, "text-anchor": "middle" }, up.text));
}

function logScale(low, high, from, to) {
  return (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
}

function linearScale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

// About `wanted` round values.
function steps(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((digit) => digit * power >= rough);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) found.push(n * step);
  return found;
}

function powers(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) {
    for (const digit of [1, 2, 5]) {
      const value = digit * 10 ** power;
      if (value <= high && (digit === 1 || high / low < 50)) found.push(value);
    }
  }
  return found;
}
