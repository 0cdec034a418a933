// Memory over steps as stacked areas, and a block as boxes, on a canvas.

/** Most lives that are drawn by themselves at once; all others are one area. */
const DRAWN = 300;
const FONT = "12px system-ui, sans-serif";

/** A drawing of a run from step `from` to step `to`. `block`: offsets instead of sums; `behind`: a run that is an outline; `chosen`: a tensor that
 * is drawn by itself however small it is. */
class Drawing {
  constructor(ctx, width, height, view) {
    Object.assign(this, { ctx, ...view, colors: theme() });
    const left = 66;
    this.box = { left, top: 26, width: Math.max(width - left - 12, 10), height: Math.max(height - 26 - 36, 10) };
    this.size = [width, height];
    this.has_edges = true;
    this.hatch = hatch(ctx, this.colors.kinds[AGAIN]);
    this.places = this.behind && this.run.places_of(this.behind);
  }

  x(step) {
    return this.box.left + ((step - this.from) / (this.to - this.from)) * this.box.width;
  }

  y(value) {
    return this.box.top + this.box.height * (1 - value / this.top);
  }

  step_at(x) {
    const step = Math.floor(this.from + ((x - this.box.left) / this.box.width) * (this.to - this.from));
    return Math.min(Math.max(step, 0), this.run.steps.length - 1);
  }

  draw() {
    const { ctx, box, colors } = this;
    ctx.fillStyle = colors.card;
    ctx.fillRect(0, 0, ...this.size);
    this.axes();
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, 0, box.width, box.top + box.height);
    ctx.clip();
    if (this.block) this.boxes();
    else this.areas();
    ctx.restore();
    this.limits();
  }

  axes() {
    const { ctx, box, colors } = this;
    ctx.font = FONT;
    ctx.lineWidth = 1;
    ctx.strokeStyle = colors.line;
    ctx.fillStyle = colors.muted;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const unit = 2 ** Math.ceil(Math.log2(this.top / 8));
    for (let value = 0; value <= this.top; value += Math.max(unit, 1)) {
      const y = Math.round(this.y(value)) + 0.5;
      this.path([[box.left, y], [box.left + box.width, y]]);
      ctx.fillText(bytes(value), box.left - 8, y);
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    const most = Math.max(box.width / 80, 2);
    const rough = Math.max((this.to - this.from) / most, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const stride = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    for (let step = Math.ceil(this.from / stride) * stride; step <= this.to; step += stride) {
      const x = Math.round(this.x(step)) + 0.5;
      this.path([[x, box.top + box.height], [x, box.top + box.height + 4]]);
      ctx.fillText(step, Math.min(x, this.size[0] - ctx.measureText(step).width / 2), box.top + box.height + 7);
    }
    ctx.textAlign = "right";
    ctx.fillText("step", box.left - 8, box.top + box.height + 7);
  }

  path(points) {
    this.ctx.beginPath();
    for (const [x, y] of points) this.ctx.lineTo(x, y);
    this.ctx.stroke();
  }

  /** Columns of the chart: the step that each shows, which is the one of several with the most memory, and where it begins. */
  columns(memory) {
    const first = Math.max(Math.floor(this.from), 0);
    const last = Math.min(Math.ceil(this.to), memory.length);
    const count = Math.min(last - first, Math.ceil(this.box.width));
    const steps = new Int32Array(count);
    const left = new Float64Array(count + 1);
    for (let column = 0; column < count; column += 1) {
      const begin = first + Math.floor((column * (last - first)) / count);
      const end = first + Math.floor(((column + 1) * (last - first)) / count);
      let most = begin;
      for (let step = begin + 1; step < end; step += 1) if (memory[step] > memory[most]) most = step;
      steps[column] = most;
      left[column] = this.x(begin);
    }
    left[count] = this.x(last);
    return { steps, left };
  }

  /** Stacks the lives in the order of their beginnings, the smallest together above the others. */
  areas() {
    if (this.behind) this.outline_behind(true);
    const columns = this.columns(this.run.memory);
    const { steps, left } = columns;
    const seen = [];
    for (const life of this.run.lives) {
      const from = notBelow(steps, life.from);
      const to = notBelow(steps, life.to);
      if (from < to) seen.push({ life, from, to });
    }
    const weight = ({ life, from, to }) => life.size * (left[to] - left[from]);
    const large = new Set([...seen].sort((a, b) => weight(b) - weight(a)).slice(0, DRAWN));
    seen.filter(({ life }) => life.tensor === this.chosen).forEach((one) => large.add(one));
    const base = new Float64Array(steps.length);
    this.bands = [];
    this.left = left;
    this.has_edges = (left[steps.length] - left[0]) / steps.length > 3;
    for (const one of seen.filter((one) => large.has(one))) {
      const low = base.slice(one.from, one.to);
      for (let column = one.from; column < one.to; column += 1) base[column] += one.life.size;
      const band = { ...one, low, high: base.slice(one.from, one.to) };
      this.bands.push(band);
      this.band(band);
    }
    this.tops = Float64Array.from(steps, (step) => this.run.memory[step]);
    this.fill(left, base, this.tops, 0, steps.length, this.colors.other);
    for (const band of this.bands) this.label(band);
    if (this.behind) this.outline_behind(false);
  }

  band(band) {
    const { ctx, colors } = this;
    const { life, from, to, low, high } = band;
    this.fill(this.left, low, high, from, to, shade(colors.kinds[life.kind], life.tensor), life.kind === AGAIN);
    if (!this.has_edges) return;
    ctx.strokeStyle = colors.card;
    ctx.lineWidth = 0.6;
    ctx.stroke();
  }

  /** Fills between two heights of columns. */
  fill(left, low, high, from, to, color, is_again) {
    const { ctx } = this;
    ctx.beginPath();
    for (let column = from; column < to; column += 1) {
      const y = this.y(high[column - from]);
      ctx.lineTo(left[column], y);
      ctx.lineTo(left[column + 1], y);
    }
    for (let column = to - 1; column >= from; column -= 1) {
      const y = this.y(low[column - from]);
      ctx.lineTo(left[column + 1], y);
      ctx.lineTo(left[column], y);
    }
    ctx.closePath();
    ctx.fillStyle = color;
    ctx.fill();
    if (is_again) {
      ctx.fillStyle = this.hatch;
      ctx.fill();
    }
  }

  /** The name of a tensor where its area is level for long enough. */
  label({ life, from, to, low }) {
    const height = this.y(0) - this.y(life.size);
    if (height < 13) return;
    let best = [0, 0];
    let begin = 0;
    for (let column = 1; column <= low.length; column += 1) {
      if (column < low.length && Math.abs(low[column] - low[begin]) * this.box.height < this.top) continue;
      const ends = [Math.max(this.left[from + begin], this.box.left), Math.min(this.left[from + column], this.box.left + this.box.width)];
      if (ends[1] - ends[0] > best[1] - best[0]) best = [...ends, low[begin]];
      begin = column;
    }
    if (best.length === 3) this.name(life, best[0], best[1], this.y(best[2] + life.size / 2));
  }

  /** Writes as much of a name as fits between two places. */
  name(life, left, right, y) {
    const { ctx } = this;
    const room = Math.floor((right - left - 8) / 6.6);
    const name = this.run.owner(life);
    if (room < Math.min(name.length, 6)) return;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const ground = shade(this.colors.kinds[life.kind], life.tensor);
    this.write(name.length <= room ? name : `${name.slice(0, room - 1)}…`, (left + right) / 2, y, "center", ink(ground), ground);
  }

  /** The other run where its ops stand in this one: as an area below, or as a line above. */
  outline_behind(is_area) {
    const { ctx, colors } = this;
    const at = this.places;
    const { memory } = this.behind;
    const points = [];
    for (let step = Math.max(notBelow(at, Math.floor(this.from)) - 1, 0); step < memory.length && at[step] <= this.to; step += 1) {
      const x = Math.round(this.x(at[step]) * 2) / 2;
      const y = this.y(memory[step]);
      const last = points[points.length - 1];
      if (last && last[0] === x) last[1] = Math.min(last[1], y);
      else points.push([x, y]);
    }
    ctx.beginPath();
    points.forEach(([x, y], place) => {
      ctx.lineTo(x, y);
      ctx.lineTo(place + 1 < points.length ? points[place + 1][0] : this.x(this.run.steps.length), y);
    });
    if (is_area) {
      ctx.lineTo(this.x(this.run.steps.length), this.y(0));
      ctx.lineTo(points.length ? points[0][0] : this.box.left, this.y(0));
      ctx.fillStyle = colors.line;
      ctx.fill();
    } else {
      ctx.strokeStyle = colors.text;
      ctx.lineWidth = 1.2;
      ctx.stroke();
    }
  }

  /** The block: each life at its offset. */
  boxes() {
    const { ctx, colors } = this;
    this.bands = [];
    for (const life of this.run.lives) {
      if (life.to <= this.from || life.from >= this.to) continue;
      const [left, right] = [this.x(life.from), this.x(life.to)];
      const [high, low] = [this.y(life.offset + life.size), this.y(life.offset)];
      this.rect(life, left, high, Math.max(right - left, 1), Math.max(low - high, 1));
      if (right - left > 3 && low - high > 3) {
        ctx.strokeStyle = colors.card;
        ctx.lineWidth = 0.6;
        ctx.strokeRect(left, high, right - left, low - high);
      }
      if (low - high >= 13) this.name(life, Math.max(left, this.box.left), Math.min(right, this.box.left + this.box.width), (low + high) / 2);
    }
  }

  rect(life, ...place) {
    const { ctx, colors } = this;
    ctx.fillStyle = shade(colors.kinds[life.kind], life.tensor);
    ctx.fillRect(...place);
    if (life.kind === AGAIN) {
      ctx.fillStyle = this.hatch;
      ctx.fillRect(...place);
    }
  }

  /** The budget, and the peaks. */
  limits() {
    const { ctx, box, colors } = this;
    const { budget, peak, memory } = this.run;
    ctx.font = `600 ${FONT}`;
    ctx.textBaseline = "alphabetic";
    const x = this.x(peak + 0.5);
    if (budget) {
      const y = this.y(budget);
      ctx.strokeStyle = colors.budget;
      ctx.lineWidth = 1.6;
      ctx.setLineDash([7, 4]);
      this.path([[box.left, y], [box.left + box.width, y]]);
      ctx.setLineDash([]);
      const is_left = x > box.left + box.width * 0.6;
      this.write(`budget ${bytes(budget)}`, is_left ? box.left + 4 : box.left + box.width - 4, y - 4, is_left ? "left" : "right", colors.budget);
    }
    if (this.block) return;
    const words = (run) => `${run.name} ${bytes(run.memory[run.peak])}`;
    if (!this.behind) {
      this.mark(x, memory[peak], `peak ${bytes(memory[peak])}`, x + 120 > box.left + box.width);
      return;
    }
    const [before, other] = [this.behind, this.x(this.places[this.behind.peak] + 0.5)];
    const highest = before.memory[before.peak];
    const is_close = Math.abs(x - other) < 250 && Math.abs(this.y(highest) - this.y(memory[peak])) < 16;
    this.mark(x, memory[peak], words(this.run), x < other);
    this.mark(other, highest, words(before), x >= other, is_close ? 16 : 0);
  }

  /** A triangle above the chart's line, with words beside it, higher by `lift`. */
  mark(x, value, words, is_left, lift = 0) {
    const { ctx, box, colors } = this;
    if (x < box.left || x > box.left + box.width) return;
    const y = this.y(value) - 2;
    ctx.fillStyle = colors.text;
    ctx.strokeStyle = colors.card;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x - 6, y - 9);
    ctx.lineTo(x + 6, y - 9);
    ctx.closePath();
    ctx.stroke();
    ctx.fill();
    const width = ctx.measureText(words).width;
    const is_beside = is_left ? x - 10 - width > box.left : x + 10 + width < box.left + box.width;
    const is_at_budget = this.run.budget && Math.abs(this.y(this.run.budget) - y + 5) < 12;
    const [shift, align] = is_left === is_beside ? [-10, "right"] : [10, "left"];
    this.write(words, x + shift, (is_at_budget ? y - 20 : y - 2) - lift, align, colors.text);
  }

  /** Words with an edge in the color of the ground, which are read on lines too. */
  write(words, x, y, align, color, ground = this.colors.card) {
    const { ctx } = this;
    ctx.textAlign = align;
    ctx.lineJoin = "round";
    ctx.lineWidth = 4;
    ctx.strokeStyle = ground;
    ctx.strokeText(words, x, y);
    ctx.fillStyle = color;
    ctx.fillText(words, x, y);
  }

  /** The life at a place of the canvas, where one is drawn by itself. */
  life_at(x, y) {
    const value = (1 - (y - this.box.top) / this.box.height) * this.top;
    if (this.block) return this.run.at(this.step_at(x)).find((life) => life.offset <= value && value < life.offset + life.size);
    const column = notBelow(this.left, x) - 1;
    const here = this.bands.filter(({ from, to }) => from <= column && column < to);
    return here.find(({ from, low, high }) => low[column - from] <= value && value < high[column - from])?.life;
  }

  /** The life of a tensor above the rest of the chart, which steps back, and the step that is looked at. */
  overlay(ctx, step, tensor) {
    const { box, colors } = this;
    this.ctx = ctx;
    ctx.clearRect(0, 0, ...this.size);
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, 0, box.width, box.top + box.height);
    ctx.clip();
    if (tensor !== null) {
      ctx.globalAlpha = 0.62;
      ctx.fillStyle = colors.card;
      ctx.fillRect(box.left, box.top, box.width, box.height);
      ctx.globalAlpha = 1;
      for (const life of this.run.tensors[tensor].lives) this.highlight(life);
      this.limits();
    }
    if (step !== null) {
      const x = this.x(step);
      ctx.globalAlpha = 0.2;
      ctx.fillStyle = colors.text;
      ctx.fillRect(x, box.top, Math.max(this.x(step + 1) - x, 1), box.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(x, box.top, 1, box.height);
    }
    ctx.restore();
  }

  highlight(life) {
    const { ctx, box, colors } = this;
    const [left, right] = [this.x(life.from), this.x(life.to)];
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = colors.kinds[life.kind];
    ctx.fillRect(left, box.top, right - left, box.height);
    ctx.globalAlpha = 1;
    if (this.block) {
      this.rect(life, left, this.y(life.offset + life.size), Math.max(right - left, 2), Math.max(this.y(0) - this.y(life.size), 2));
    } else {
      const band = this.bands.find((one) => one.life === life);
      if (band) this.band(band);
    }
    ctx.fillStyle = colors.text;
    ctx.fillRect(left, box.top + box.height - 3, Math.max(right - left, 2), 3);
  }
}
