// What the page does with keys, pointers and buttons.

const $ = (id) => document.getElementById(id);
/** Most tensors that are listed beside the chart. */
const SHOWN = 9;
/** Fewest steps that are seen at once. */
const CLOSEST = 8;

/** What is looked at: a view, a range of steps, a step and a tensor. */
const state = { view: "", from: 0, to: 1, step: null, tensor: null, hovered: null };
let drawing;
let run = runs.at(-1);
const table = new Table((tensor) => choose(tensor));

function view() {
  const is_both = state.view === "both";
  const is_block = state.view === "block";
  const most = (one) => Math.max(one.memory[one.peak] || 0, one.budget || 0);
  const top = is_block ? run.block : runs.reduce((top, one) => Math.max(top, most(one)), 1) * 1.06;
  return { run, behind: is_both ? runs[0] : null, block: is_block, from: state.from, to: state.to, top, chosen: state.tensor };
}

/** Sizes a canvas for the pixels of the screen. */
function prepared(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  return { ctx, width, height };
}

let is_waiting = false;
function redraw() {
  if (is_waiting) return;
  is_waiting = true;
  requestAnimationFrame(() => {
    is_waiting = false;
    const { ctx, width, height } = prepared($("chart"));
    drawing = new Drawing(ctx, width, height, view());
    drawing.draw();
    drawing.overlaid = prepared($("over")).ctx;
    overlay();
  });
}

function overlay() {
  if (drawing) drawing.overlay(drawing.overlaid, state.step, state.hovered ?? state.tensor);
}

function show(name) {
  const last = run;
  state.view = name;
  run = name === runs[0].name ? runs[0] : runs.at(-1);
  if (run !== last || state.to <= 1) {
    Object.assign(state, { from: 0, to: Math.max(run.steps.length, 1), step: null, tensor: null, hovered: null });
    table.chosen = null;
    table.show(run);
  }
  for (const input of document.querySelectorAll("[name=view]")) input.checked = input.value === name;
  legend();
  look(state.step ?? run.peak, false);
  redraw();
}

/** Names and numbers of the kinds that the chart shows. */
function kinds() {
  const here = KINDS.map(([name], kind) => [name, kind]).filter(([, kind]) => kind !== WORKSPACE && run.lives.some((life) => life.kind === kind));
  return [...here, [IS_RECORDED ? "small tensors" : "workspaces and small tensors", WORKSPACE]];
}

function legend() {
  $("legend").replaceChildren();
  for (const [name, kind] of kinds()) {
    const item = element("span", $("legend"));
    element("i", item, undefined, { class: `mark kind${kind}` });
    item.append(name);
  }
  if (state.view === "both") element("span", $("legend"), `line: ${runs[0].name}`);
}

/** Says what is in memory at a step, and where it is in the chart. */
function look(step, is_marked = true) {
  if (!run.steps.length) return;
  state.step = is_marked ? step : state.step;
  const about = $("about");
  about.replaceChildren();
  element("b", about, run.describe(step));
  element("p", about, `${bytes(run.memory[step])} in memory${step === run.peak ? ", the peak" : ""}`);
  const here = run.at(step);
  const list = element("ul", about);
  for (const life of here.slice(0, SHOWN)) {
    const is_chosen = life.tensor === state.tensor;
    const button = element("button", element("li", list), undefined, { type: "button", title: run.owner(life), "aria-pressed": is_chosen });
    element("i", button, undefined, { class: `mark kind${life.kind}` });
    element("bdi", button, run.owner(life));
    element("span", button, bytes(life.size), { class: "number" });
    button.addEventListener("click", () => choose(life.tensor));
  }
  if (here.length > SHOWN) element("p", about, `and ${here.length - SHOWN} more`);
  overlay();
}

/** Highlights the life of a tensor, or nothing. */
function choose(tensor) {
  state.tensor = tensor === state.tensor ? null : tensor;
  state.hovered = null;
  table.select(state.tensor);
  if (state.tensor !== null) {
    const { name, other, lives, size, shape, type } = run.tensors[state.tensor];
    const [first, last] = [lives[0].from, lives.at(-1).to];
    if (last < state.from || first > state.to) move(first, last);
    say(`${name}: ${[other && `as ${other}`, type, shape, bytes(size)].filter(Boolean).join(", ")}; steps ${run.life(run.tensors[state.tensor])}`);
  } else say("");
  look(state.step ?? run.peak, false);
  redraw();
}

function say(words) {
  $("said").textContent = words;
}

/** Shows a range of steps, kept within the run. */
function move(from, to) {
  const count = Math.max(run.steps.length, 1);
  const width = Math.min(Math.max(to - from, Math.min(CLOSEST, count)), count);
  state.from = Math.min(Math.max((from + to - width) / 2, 0), count - width);
  state.to = state.from + width;
  redraw();
}

function zoom(factor, around = (state.from + state.to) / 2) {
  move(around - (around - state.from) * factor, around + (state.to - around) * factor);
}

/** Goes to a step; one that is not seen is moved into the middle. `width`: the most steps around it. */
function go(step, width = Infinity) {
  if (!run.steps.length) return;
  step = Math.min(Math.max(step, 0), run.steps.length - 1);
  const seen = Math.min(state.to - state.from, width);
  if (seen < state.to - state.from || step < state.from || step + 1 > state.to) move(step + 0.5 - seen / 2, step + 0.5 + seen / 2);
  look(step);
  say(`${run.describe(step)}, ${bytes(run.memory[step])}`);
}

function go_to_peak() {
  go(run.peak, Math.max(run.steps.length / 8, 40));
}

/** The next smaller or larger tensor at the step. */
function next_tensor(way) {
  const here = run.at(state.step ?? run.peak);
  const place = here.findIndex((life) => life.tensor === state.tensor);
  const next = here[place < 0 ? 0 : Math.min(Math.max(place + way, 0), here.length - 1)];
  if (next && next.tensor !== state.tensor) choose(next.tensor);
}

const KEYS = {
  ArrowLeft: (event) => go((state.step ?? run.peak) - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => go((state.step ?? run.peak) + (event.shiftKey ? 10 : 1)),
  ArrowUp: () => next_tensor(-1),
  ArrowDown: () => next_tensor(1),
  Home: () => go(0),
  End: () => go(run.steps.length - 1),
  "+": () => zoom(0.5, state.step ?? undefined),
  "=": () => zoom(0.5, state.step ?? undefined),
  "-": () => zoom(2, state.step ?? undefined),
  0: () => move(0, run.steps.length),
  p: go_to_peak,
  "/": () => $("search").focus(),
  Escape: () => state.tensor !== null && choose(state.tensor),
};
/** Keys that only the chart takes: elsewhere they scroll. */
const OF_CHART = ["ArrowUp", "ArrowDown", "Home", "End"];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === search) return;
  if (event.target.matches("[type=radio]") && event.key.startsWith("Arrow")) return;
  const act = KEYS[event.key];
  if (!act || (OF_CHART.includes(event.key) && event.target !== $("over"))) return;
  event.preventDefault();
  act(event);
});

// The pointer: what is under it is named, a drag is a range, two fingers zoom.
const over = $("over");
const pointers = new Map();
let begun = null;

function place(event) {
  const box = over.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Whether the pointer is dragged along a range; fingers move the page. */
function is_range(event) {
  return begun !== null && event.pointerType === "mouse" && Math.abs(place(event)[0] - begun[0]) > 6;
}

over.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, place(event));
  over.setPointerCapture(event.pointerId);
  begun = pointers.size === 1 ? place(event) : null;
});
over.addEventListener("pointermove", (event) => {
  const [x, y] = place(event);
  const last = pointers.get(event.pointerId);
  if (last && pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    zoom(Math.abs(last[0] - other[0]) / Math.max(Math.abs(x - other[0]), 1), drawing.step_at((x + other[0]) / 2));
  }
  if (last) pointers.set(event.pointerId, [x, y]);
  if (!drawing) return;
  const life = drawing.life_at(x, y);
  state.hovered = life ? life.tensor : null;
  look(drawing.step_at(x));
  over.title = life ? `${run.owner(life)}: ${bytes(life.size)}, steps ${life.from} to ${life.to - 1}` : "";
  if (is_range(event)) $("range").style.cssText = `left:${Math.min(x, begun[0])}px;width:${Math.abs(x - begun[0])}px`;
});
function released(event) {
  const [x, y] = place(event);
  pointers.delete(event.pointerId);
  $("range").style.cssText = "";
  if (!begun || event.type === "pointercancel") return;
  const steps = [begun[0], x].map((end) => drawing.step_at(end)).sort((a, b) => a - b);
  if (is_range(event)) move(steps[0], steps[1] + 1);
  else if (drawing.life_at(x, y)) choose(drawing.life_at(x, y).tensor);
  begun = null;
}
over.addEventListener("pointerup", released);
over.addEventListener("pointercancel", released);
over.addEventListener("pointerleave", () => {
  state.hovered = null;
  overlay();
});
over.addEventListener("dblclick", () => move(0, run.steps.length));
over.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, drawing.step_at(place(event)[0]));
  },
  { passive: false },
);

const ACTS = {
  peak: go_to_peak,
  closer: () => zoom(0.5, state.step ?? undefined),
  wider: () => zoom(2, state.step ?? undefined),
  all: () => move(0, run.steps.length),
  png: async () => save(".png", await picture()),
  csv: () => save(".csv", new Blob([table.csv()], { type: "text/csv" })),
  json: () => save(".json", new Blob([$("report").textContent], { type: "application/json" })),
  theme: () => {
    const is_dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = is_dark ? "light" : "dark";
    redraw();
  },
};
for (const [id, act] of Object.entries(ACTS)) if ($(id)) $(id).addEventListener("click", act);
for (const input of document.querySelectorAll("[name=view]")) input.addEventListener("change", () => show(input.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(redraw).observe($("chart"));
document.body.classList.add("scripted");
show(document.querySelector("[name=view]:checked").value);
