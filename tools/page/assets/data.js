// The runs in the element `data`, and what can be asked of them.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

/** Kinds of lives by number, as `data.rs` writes them: what the legend says, and the variable of its color. */
const KINDS = [
  ["kept", "--kept"],
  ["computed again", "--again"],
  ["in tiles", "--tiled"],
  ["from the second memory", "--paged"],
  ["workspace", "--other"],
  ...(data.kinds || []).map((name, place) => [name, `--step${place}`]),
];
const AGAIN = 1;
const WORKSPACE = 4;
const STEPS = ["", "computed again", "to the second memory", "from the second memory"];

/** Bytes in the binary unit that fits. */
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || Number.isInteger(value) ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** A name as it can be shown: letters that have no picture or turn the direction of others are written out. */
function shown(name) {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
}

const names = data.names.map(shown);

/** Position of the first element of sorted `values` that is not below `wanted`. */
function notBelow(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A run: its steps, its tensors and their lives. */
class Run {
  constructor(raw) {
    this.name = raw.name;
    this.budget = raw.budget;
    this.block = raw.block;
    this.steps = raw.steps;
    this.tensors = raw.tensors.map((texts) => {
      const [name, shape, type, other] = texts.map((text) => names[text]);
      return { name, shape, type, other, lives: [], again: 0 };
    });
    this.lives = raw.lives.map(([tensor, kind, from, to, size, offset]) => ({ tensor, kind, from, to, size, offset }));
    const change = new Float64Array(this.steps.length + 1);
    for (const life of this.lives) {
      change[life.from] += life.size;
      change[life.to] -= life.size;
      const tensor = this.tensors[life.tensor];
      tensor.lives.push(life);
      tensor.again += life.kind === AGAIN ? 1 : 0;
      tensor.size = life.size;
      tensor.kind = Math.max(tensor.kind || 0, life.kind);
    }
    let taken = 0;
    this.memory = change.subarray(0, this.steps.length).map((added) => (taken += added));
    this.peak = this.memory.reduce((most, value, step) => (value > this.memory[most] ? step : most), 0);
  }

  /** Name of the op or tensor of a step, without its kind. */
  name_of(step) {
    return names[this.steps[step][1]];
  }

  /** A step in words. */
  describe(step) {
    const [kind, , type, other] = this.steps[step];
    const about = [names[type], STEPS[kind], other && `as ${names[other]}`].filter(Boolean).join(", ");
    return `step ${step}: ${this.name_of(step)}${about ? ` (${about})` : ""}`;
  }

  /** Lives at a step, the largest first. */
  at(step) {
    return this.lives.filter((life) => life.from <= step && step < life.to).sort((a, b) => b.size - a.size);
  }

  /** What a life belongs to, in words. */
  owner(life) {
    return (life.kind === WORKSPACE ? "workspace of " : "") + this.tensors[life.tensor].name;
  }

  /** The steps of all lives of a tensor, in words. */
  life(tensor) {
    return tensor.lives.map((life) => (life.to - life.from > 1 ? `${life.from}–${life.to - 1}` : `${life.from}`)).join(", ");
  }

  /** For each step of `other`, the step of this run that stands at the same op; never falling. */
  places_of(other) {
    const first = new Map();
    this.steps.forEach(([kind, name], step) => {
      if (kind === 0 && !first.has(name)) first.set(name, step);
    });
    const found = other.steps.filter(([, name]) => first.has(name)).length;
    const scale = this.steps.length / Math.max(other.steps.length, 1);
    let last = 0;
    return other.steps.map(([, name], step) => {
      const place = found * 2 < other.steps.length ? Math.floor(step * scale) : first.get(name);
      return (last = Math.max(last, place === undefined ? last : place));
    });
  }
}

const runs = data.runs.map((raw) => new Run(raw));
