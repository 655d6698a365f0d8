/* The page around a model: a file for each input, then the outputs and the time. */
"use strict";

const RANGES = { float: [[0, 1], [-1, 1], [0, 255]], int8: [[-128, 127]], other: [[0, 255]] };
const SHOWN = 20;

const byId = (id) => document.getElementById(id);

function made(tag, parent, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent.append(element);
  return element;
}

function tell(text, wrong = false) {
  byId("state").textContent = text;
  byId("state").className = wrong ? "wrong" : "";
}

/* Height, width, channels and their distances in memory, if a tensor can be a picture. */
function pictureOf({ shape }) {
  const sizes = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape;
  if (sizes.length === 2 && Math.min(...sizes) > 3) {
    return { height: sizes[0], width: sizes[1], channels: 1, row: sizes[1], column: 1, plane: 0 };
  }
  if (sizes.length !== 3) return null;
  if ([1, 3].includes(sizes[0])) {
    const [channels, height, width] = sizes;
    return { height, width, channels, row: width, column: 1, plane: height * width };
  }
  if ([1, 3].includes(sizes[2])) {
    const [height, width, channels] = sizes;
    return { height, width, channels, row: width * channels, column: channels, plane: 1 };
  }
  return null;
}

/* A picture's file, at the tensor's size, as numbers from low to high; grey is the channels' mean. */
async function numbersOfPicture(file, tensor, [low, high], canvas) {
  const { height, width, channels, row, column, plane } = pictureOf(tensor);
  Object.assign(canvas, { width, height, hidden: false });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(await createImageBitmap(file), 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const numbers = new Array(height * width * channels);
  const isWhole = !tensor.dtype.includes("float");
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (y * width + x) * 4;
      for (let c = 0; c < channels; c++) {
        const value = channels === 3 ? data[at + c] : (data[at] + data[at + 1] + data[at + 2]) / 3;
        const number = low + (value / 255) * (high - low);
        numbers[y * row + x * column + c * plane] = isWhole ? Math.round(number) : number;
      }
    }
  }
  return numbers;
}

/* Numbers with spaces, commas or lines between them; JSON's brackets are left out. */
function numbersOfText(text, tensor) {
  const words = text.split(/[\s,;[\]]+/).filter(Boolean);
  const numbers = words.map(tensor.dtype.endsWith("int64") ? BigInt : Number);
  const wrong = numbers.findIndex((each) => typeof each === "number" && Number.isNaN(each));
  if (wrong >= 0 && words[wrong].toLowerCase() !== "nan") {
    throw new Error(`input ${tensor.name}: '${words[wrong]}' is no number`);
  }
  return numbers;
}

/* What asks for one input: a function that gives its numbers. */
function askFor(tensor, form) {
  const box = made("div", form, "", { class: "tensor" });
  const title = made("h2", box, `${tensor.name} `);
  made("span", title, `${tensor.dtype} [${tensor.shape.join(", ")}]`, { class: "kind" });
  const bar = made("div", box, "", { class: "bar" });
  const picture = pictureOf(tensor);
  const what = picture ? "Numbers or a picture" : "Numbers";
  const label = made("label", bar, `${what} `);
  const chosen = made("input", label, "", { type: "file", name: tensor.name, required: "" });
  const ranges = RANGES[tensor.dtype.includes("float") ? "float" : tensor.dtype] || RANGES.other;
  const canvas = made("canvas", bar, "", { hidden: "" });
  const select = document.createElement("select");
  select.setAttribute("aria-label", `${tensor.name}: range of a picture's numbers`);
  if (picture) bar.append(select);
  for (const [low, high] of ranges) made("option", select, `${low} to ${high}`);
  return async () => {
    const [file] = chosen.files;
    if (!file) throw new Error(`input ${tensor.name}: choose a file`);
    if (file.type.startsWith("image/")) {
      if (!picture) throw new Error(`input ${tensor.name}: its shape is not a picture's; choose a file of numbers`);
      return numbersOfPicture(file, tensor, ranges[select.selectedIndex], canvas);
    }
    return numbersOfText(await file.text(), tensor);
  };
}

/* The largest numbers of an output, and a link to all of them. */
function show(tensor, values) {
  const box = made("div", byId("outputs"), "", { class: "tensor" });
  const title = made("h2", box, `${tensor.name} `);
  made("span", title, `${tensor.dtype} [${tensor.shape.join(", ")}]`, { class: "kind" });
  const order = Array.from(values, (value, index) => [value, index]);
  order.sort(([a], [b]) => (a < b ? 1 : a > b ? -1 : 0));
  const table = made("table", box);
  const head = made("tr", table);
  for (const each of ["place", "value"]) made("th", head, each, { scope: "col" });
  for (const [value, index] of order.slice(0, SHOWN)) {
    const row = made("tr", table);
    made("td", row, String(index));
    made("td", row, String(value));
  }
  const text = Array.from(values, String).join("\n");
  const link = made("a", made("p", box), `All ${values.length} numbers`, { download: `${tensor.name}.txt` });
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
}

async function begin() {
  if (location.protocol === "file:") {
    throw new Error("browsers read no files beside a page of file://; serve the folder: python3 -m http.server");
  }
  const model = await Dovetail.load();
  const form = byId("inputs");
  const asked = model.inputs.map((tensor) => [tensor.name, askFor(tensor, form)]);
  made("button", form, "Run", { type: "submit" });
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const inputs = {};
      for (const [name, numbers] of asked) inputs[name] = await numbers();
      tell("Running");
      const outputs = await model.run(inputs);
      byId("outputs").replaceChildren();
      byId("outputs").hidden = false;
      for (const tensor of model.outputs) show(tensor, outputs[tensor.name]);
      tell(`${(model.seconds * 1000).toFixed(1)} ms`);
    } catch (error) {
      tell(error.message, true);
    }
  });
  window.model = model;
  tell("Ready");
}

begin().catch((error) => tell(error.message, true));
