// What is drawn, and how numbers are written.

async function unpacked() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const grouped = new Intl.NumberFormat("en-US");

function count(value) {
  return grouped.format(Math.round(value));
}

function percent(part) {
  return `${(100 * part).toFixed(1)}%`;
}

// Two places after the point at most.
function short(value) {
  return String(Math.round(value * 100) / 100);
}

// Three digits, and a prefix of the unit.
function rounded(value, unit = "") {
  for (const [prefix, size] of [["G", 1e9], ["M", 1e6], ["K", 1e3]]) {
    if (value >= size) return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
  }
  return `${value} ${unit}`;
}

// The end of a long name, where names differ.
function shortened(name, letters = 40) {
  const last = name.slice(name.lastIndexOf(";") + 1);
  return last.length <= letters ? last : `…${last.slice(1 - letters)}`;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function swatch(colour) {
  return element("span", { class: "swatch", style: `background:${colour}` });
}

// The first place in ascending `values` whose value is above `limit`.
function firstAbove(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
