"use strict";
// The page: what is chosen and dropped, what the worker is asked, and what is shown of its answers.

const SHARES = [90, 80, 70, 60, 50, 40, 30, 20, 10];
const SECONDS_FOR_A_POINT = 1.5;

const at = id => document.getElementById(id);
const size = bytes => bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : bytes < 1 << 30 ? `${(bytes / 1048576).toFixed(1)} MiB` : `${(bytes / 1073741824).toFixed(2)} GiB`;
const percent = value => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} %`;

let worker = null;
let waiting = new Map();
let number = 0;
let chosen = null;
let points = [];
let address = null;

function start() {
  worker?.terminate();
  waiting.clear();
  worker = new Worker("worker.js");
  worker.onmessage = ({ data }) => {
    const call = waiting.get(data.number);
    if (!call) return;
    waiting.delete(data.number);
    if (data.broken) start();
    if (data.error === undefined) call.resolve(data.answer);
    else call.reject(Object.assign(new Error(data.error), { dims: data.dims }));
  };
  worker.onerror = event => say(`the planner cannot be loaded: ${event.message ?? "the browser gives no reason"}`, true);
}

function ask(what, about = {}) {
  return new Promise((resolve, reject) => {
    number += 1;
    waiting.set(number, { resolve, reject });
    worker.postMessage({ what, number, ...about });
  });
}

function say(text, isBad = false) {
  at("status").textContent = text;
  at("status").classList.toggle("bad", isBad);
}

function show(html) {
  if (address) URL.revokeObjectURL(address);
  address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  at("report").src = address;
  at("report").hidden = false;
}

async function open(file, dims = {}) {
  chosen = file;
  points = [];
  for (const id of ["summary", "costs", "wish", "report", "downloads", "sizes"]) at(id).hidden = true;
  at("found").textContent = "";
  start();
  say(`Reading ${file.name} …`);
  try {
    const { summary, page } = await ask("open", { from: file, question: { name: file.name, dims } });
    say("");
    describe(summary);
    show(page);
    at("wish").hidden = false;
    await explore(summary);
  } catch (error) {
    if (file !== chosen) return;
    say(error.message, true);
    askForSizes(error.dims ?? [], dims);
  }
}

function askForSizes(names, dims) {
  if (names.length === 0) return;
  const fields = at("sizes").querySelector(".fields");
  fields.replaceChildren(...names.map(name => {
    const [label, input] = [document.createElement("label"), document.createElement("input")];
    Object.assign(input, { type: "number", min: 1, name, value: dims[name] ?? 1, required: true });
    label.append(name, input);
    return label;
  }));
  at("sizes").hidden = false;
}

function describe(summary) {
  const section = at("summary");
  section.querySelector("h2").textContent = `${summary.name}: ${summary.ops.toLocaleString("en")} ops`;
  const entries = [
    ["Results at the peak", size(summary.peak_bytes), `at ${summary.peak_op}`],
    ["In one block", size(summary.block_bytes), "as the model is"],
    ["No plan below", size(summary.least_bytes), `${summary.least_op && `${summary.least_op} needs it; `}tiles can go below`],
    ["Weights", size(summary.weights_bytes), "not touched"],
  ];
  section.querySelector("dl").replaceChildren(...entries.map(([name, value, about]) => {
    const [entry, term, figure, small] = ["div", "dt", "dd", "small"].map(tag => document.createElement(tag));
    [term.textContent, figure.textContent, small.textContent] = [name, value, about];
    figure.append(small);
    entry.append(term, figure);
    return entry;
  }));
  section.hidden = false;
}

// Budgets from the highest to the lowest, until one cannot be kept; then the lowest peak.
async function explore(summary) {
  const file = chosen;
  add({ percent: 100, peak_bytes: summary.peak_bytes, block_bytes: summary.block_bytes, overhead_percent: 0, recomputes: 0 });
  at("costs").hidden = false;
  const least = 100 * summary.least_bytes / summary.peak_bytes;
  for (const share of [...SHARES.filter(share => share > least), null]) {
    say(share === null ? "Looking for the lowest peak …" : `Planning for ${share} % …`);
    let found = null;
    try {
      found = await ask("price", { percent: share, seconds: SECONDS_FOR_A_POINT });
    } catch {
      // No plan keeps this budget; the lowest peak says where they end.
    }
    if (file !== chosen) return;
    if (found) add(found);
  }
  say("");
}

function add(found) {
  points.push(found);
  at("curve").replaceChildren(curve(points.map(point => ({ bytes: point.peak_bytes, overhead: point.overhead_percent })), size));
  const row = document.createElement("tr");
  const choose = document.createElement("button");
  Object.assign(choose, { type: "button", textContent: found.percent === null ? "lowest" : `${found.percent} %` });
  choose.addEventListener("click", () => {
    at("percent").value = found.percent ?? "";
    at("wish").requestSubmit();
  });
  const cells = [choose, size(found.peak_bytes), size(found.block_bytes), percent(found.overhead_percent), found.recomputes];
  row.append(...cells.map(cell => {
    const made = document.createElement("td");
    made.append(cell);
    return made;
  }));
  at("costs").querySelector("tbody").append(row);
}

async function plan() {
  const wanted = at("percent").value === "" ? null : Number(at("percent").value);
  const button = at("wish").querySelector("[type=submit]");
  button.disabled = true;
  at("found").textContent = "Planning …";
  try {
    const { found, page } = await ask("plan", { percent: wanted, seconds: Number(at("seconds").value), tiles: at("tiles").checked });
    const tiles = found.tiled ? `, ${found.tiled} chains in tiles` : "";
    at("found").textContent = `${size(found.peak_bytes)} at the peak, ${size(found.block_bytes)} in one block, ${percent(found.overhead_percent)} time, ${found.recomputes} ops run again${tiles}.`;
    at("downloads").hidden = false;
    show(page);
  } catch (error) {
    at("found").textContent = error.message;
    at("downloads").hidden = true;
  } finally {
    button.disabled = false;
  }
}

async function save(kind) {
  const stem = chosen.name.replace(/\.onnx$/, "");
  const [what, name] = { model: ["model", `${stem}.remat.onnx`], plan: ["plan_file", `${stem}.plan.json`], page: ["page", `${stem}.html`] }[kind];
  try {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await ask(what));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  } catch (error) {
    say(error.message, true);
  }
}

function clear() {
  at("costs").querySelector("tbody").replaceChildren();
  at("curve").replaceChildren();
}

at("file").addEventListener("change", event => {
  const [file] = event.target.files;
  if (file) { clear(); open(file); }
});
at("example").addEventListener("click", async () => {
  const bytes = await (await fetch("example.onnx")).arrayBuffer();
  clear();
  open(new File([bytes], "example.onnx"));
});
at("sizes").addEventListener("submit", event => {
  event.preventDefault();
  clear();
  open(chosen, Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, Number(value)])));
});
at("wish").addEventListener("submit", event => { event.preventDefault(); plan(); });
for (const button of document.querySelectorAll("[data-file]")) button.addEventListener("click", () => save(button.dataset.file));
for (const kind of ["dragenter", "dragover"]) document.addEventListener(kind, event => { event.preventDefault(); at("drop").classList.add("over"); });
for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, event => { event.preventDefault(); at("drop").classList.remove("over"); });
document.addEventListener("drop", event => {
  const [file] = event.dataTransfer.files;
  if (file) { clear(); open(file); }
});
