// One tooltip for the whole page; never beyond the window's edge.

const GAP = 14;

function showTooltip(text, x, y) {
  const tip = document.getElementById("tooltip");
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const right = document.documentElement.clientWidth - 8;
  const bottom = window.innerHeight - 8;
  const left = x + GAP + width > right ? x - GAP - width : x + GAP;
  const top = y + GAP + height > bottom ? y - GAP - height : y + GAP;
  const across = Math.max(8, Math.min(left, right - width));
  const down = Math.max(8, Math.min(top, bottom - height));
  tip.style.transform = `translate(${Math.round(across)}px, ${Math.round(down)}px)`;
}

function hideTooltip() {
  document.getElementById("tooltip").hidden = true;
}
