"use strict";
// The curve of memory against time: a step function, because a plan for a budget is one for all above it.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Points: [{bytes, overhead}], in any order. `label` writes bytes.
function curve(points, label) {
  const [width, height, left, bottom, top, right] = [720, 260, 60, 40, 14, 20];
  const sorted = [...points].sort((one, other) => one.bytes - other.bytes);
  const most = Math.max(...sorted.map(point => point.bytes));
  const highest = Math.max(5, ...sorted.map(point => point.overhead)) * 1.08;
  const x = bytes => left + (width - left - right) * bytes / most;
  const y = overhead => height - bottom - (height - bottom - top) * Math.max(0, overhead) / highest;
  const image = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Memory against time; the table below has the same figures" });
  for (let step = 0; step <= 4; step++) {
    const [overhead, bytes] = [highest * step / 4, most * step / 4];
    image.append(element("line", { x1: left, x2: width - right, y1: y(overhead), y2: y(overhead) }));
    image.append(element("text", { x: left - 8, y: y(overhead) + 4, "text-anchor": "end" }, `+${overhead.toFixed(0)} %`));
    image.append(element("text", { x: x(bytes), y: height - bottom + 20, "text-anchor": step === 4 ? "end" : "middle" }, label(bytes)));
  }
  let path = "";
  sorted.forEach((point, index) => {
    path += index === 0 ? `M${x(point.bytes)},${y(point.overhead)}` : `H${x(point.bytes)}V${y(point.overhead)}`;
    const dot = element("circle", { cx: x(point.bytes), cy: y(point.overhead), r: 4.5 });
    dot.append(element("title", {}, `${label(point.bytes)}, +${point.overhead.toFixed(1)} %`));
    image.append(dot);
  });
  image.append(element("path", { d: path }));
  return image;
}
