// Draws the runs in the element `data` so that they can be zoomed and pointed at. The page is whole without this.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const HEIGHT = 330;
  const SHOWN = 14;
  const STEPS = ["", "computed again: ", "to the second memory: ", "back from the second memory: "];

  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1024 && unit + 1 < units.length) {
      value /= 1024;
      unit += 1;
    }
    return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
  }

  function element(tag, text, parent) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  function mark(kind, parent) {
    element("i", undefined, parent).style.background = data.kinds[kind][1];
  }

  // Names of what takes bytes, the largest first.
  function table(rows, parent) {
    const body = element("table", undefined, parent);
    for (const [name, kind, , , size] of rows.slice(0, SHOWN)) {
      const row = element("tr", undefined, body);
      const cell = element("td", undefined, row);
      mark(kind, cell);
      cell.append(data.names[name]);
      cell.title = `${data.names[name]} (${data.kinds[kind][0]})`;
      element("td", bytes(size), row).className = "number";
    }
    if (rows.length > SHOWN) element("div", `and ${rows.length - SHOWN} more`, parent);
  }

  function stepName(run, step) {
    const [kind, name] = run.steps[step];
    return STEPS[kind] + data.names[name];
  }

  function describe(run, step, about, offset) {
    if (step === null || step === undefined || step >= run.steps.length) return;
    about.replaceChildren();
    const here = run.taken.filter((taken) => taken[2] <= step && step < taken[3]);
    if (offset !== undefined) {
      const at = here.find((taken) => taken[5] <= offset && offset < taken[5] + taken[4]);
      if (!at) return;
      const [name, kind, from, to, size, begin] = at;
      element("b", data.names[name], about);
      element("div", `${data.kinds[kind][0]}, ${bytes(size)} at ${begin}`, about);
      element("div", `steps ${from} to ${to - 1}: ${stepName(run, from)} … ${stepName(run, to - 1)}`, about);
      return;
    }
    element("b", `${step}: ${stepName(run, step)}`, about);
    element("div", `${bytes(run.memory[step])} in memory`, about);
    table(here.sort((a, b) => b[4] - a[4]), about);
  }

  const axes = [
    { label: "step", size: 44 },
    { size: 84, incrs: Array.from({ length: 50 }, (_, power) => 2 ** power), values: (_, ticks) => ticks.map(bytes) },
  ];

  function options(box, top, steps, series, hooks) {
    return {
      width: box.clientWidth,
      height: HEIGHT,
      axes,
      series: [{}, ...series],
      scales: { x: { time: false, range: (_, low, high) => [Math.max(low, 0), Math.min(high, steps)] }, y: { range: [0, top] } },
      cursor: { drag: { x: true, y: false } },
      legend: { show: false },
      hooks,
    };
  }

  function memory(run, box, about, top) {
    const count = run.memory.length;
    const at = Array.from({ length: count + 1 }, (_, step) => step);
    const values = [...run.memory, run.memory[count - 1]];
    const again = run.steps.map(([kind], step) => (kind === 1 ? run.memory[step] : null));
    const series = [
      { stroke: "#005caf", width: 1.5, fill: "#005caf22", paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
      { stroke: "#d55e00", paths: () => null, points: { show: true, size: 5, fill: "#d55e00" } },
      { stroke: "#e00", width: 1, points: { show: false } },
    ];
    const columns = [at, values, [...again, null], at.map(() => run.budget)];
    const hooks = { setCursor: [(plot) => describe(run, plot.cursor.idx, about)] };
    const plot = new uPlot(options(box, top * 1.05 || 1, count, series, hooks), columns, box);
    const peak = run.memory.indexOf(run.memory.reduce((a, b) => Math.max(a, b), 0));
    describe(run, peak, about);
    return plot;
  }

  function block(run, box, about) {
    const count = run.steps.length;
    const draw = (plot) => {
      const { ctx } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
      ctx.clip();
      for (const [, kind, from, to, size, offset] of run.taken) {
        const left = plot.valToPos(from, "x", true);
        const right = plot.valToPos(to, "x", true);
        const high = plot.valToPos(offset + size, "y", true);
        const low = plot.valToPos(offset, "y", true);
        ctx.fillStyle = data.kinds[kind][1];
        ctx.fillRect(left, high, Math.max(right - left, 1), Math.max(low - high, 1));
        if (right - left > 3 && low - high > 3) {
          ctx.strokeStyle = "#fff";
          ctx.strokeRect(left, high, right - left, low - high);
        }
      }
      ctx.restore();
    };
    const point = (plot) => {
      const { left, top } = plot.cursor;
      if (left < 0) return;
      describe(run, Math.floor(plot.posToVal(left, "x")), about, plot.posToVal(top, "y"));
    };
    const at = Array.from({ length: count + 1 }, (_, step) => step);
    const hooks = { draw: [draw], setCursor: [point] };
    return new uPlot(options(box, run.block, count, [{ show: true, paths: () => null, points: { show: false } }], hooks), [at, at.map(() => 0)], box);
  }

  document.body.classList.add("scripted");
  const top = data.runs.reduce((most, run) => run.memory.reduce((a, b) => Math.max(a, b), Math.max(most, run.budget || 0)), 0);
  for (const place of document.querySelectorAll("[data-chart]")) {
    const run = data.runs[Number(place.dataset.run)];
    if (run.memory.length === 0) continue;
    const chart = element("div", undefined, place);
    chart.className = "chart";
    const box = element("div", undefined, chart);
    const about = element("div", undefined, chart);
    about.className = "about";
    const is_block = place.dataset.chart === "block";
    const plot = is_block ? block(run, box, about) : memory(run, box, about, top);
    new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT })).observe(box);
    const marks = element("div", undefined, place);
    marks.className = "marks";
    if (is_block) {
      data.kinds.forEach(([name], kind) => {
        if (run.taken.some((taken) => taken[1] === kind)) {
          mark(kind, marks);
          marks.append(name);
        }
      });
    } else if (run.steps.some(([kind]) => kind === 1)) {
      element("i", undefined, marks).style.background = "#d55e00";
      marks.append("computed again");
    }
  }
})();
