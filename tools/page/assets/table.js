// The table of the largest tensors at the peak.

/** Most rows. */
const ROWS = 200;
/** Whether tensors have a kind and a place where they are made, as in a recorded program, and none is computed again. */
const IS_RECORDED = Boolean(data.kinds);
/** Columns: heading, what rows are sorted by, and whether that is a number. */
const COLUMNS = [
  ["Tensor", (row) => row.name, false],
  [IS_RECORDED ? "Made in" : "Shape", (row) => row.tensor.shape, false],
  [IS_RECORDED ? "Kind" : "Type", (row) => row.tensor.type, false],
  ["Bytes", (row) => row.size, true],
  ["Life", (row) => ends(row.tensor)[0], true],
  ...(IS_RECORDED ? [] : [["Again", (row) => row.tensor.again, true]]),
];

function element(tag, parent, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (parent) parent.append(made);
  return made;
}

/** The first and the last step of a tensor. */
function ends(tensor) {
  return [tensor.lives[0].from, tensor.lives.at(-1).to - 1];
}

class Table {
  /** `choose`: what is done with the number of a tensor that was chosen. */
  constructor(choose) {
    this.choose = choose;
    this.column = 3;
    this.is_rising = false;
    this.place = document.getElementById("tensors");
    const table = element("table", this.place, undefined, { "aria-labelledby": "tensors-heading" });
    const head = element("tr", element("thead", table));
    this.heads = COLUMNS.map(([name, , is_number], column) => {
      const head_cell = element("th", head, undefined, { scope: "col", class: is_number ? "number" : "" });
      element("button", head_cell, name, { type: "button" }).addEventListener("click", () => this.sort(column));
      return head_cell;
    });
    this.body = element("tbody", table);
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.choose(Number(row.dataset.tensor));
    });
    this.body.addEventListener("keydown", (event) => {
      const way = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      const row = way && event.target.closest("tr")[way];
      if (!way) return;
      event.preventDefault();
      event.stopPropagation();
      if (row) row.querySelector("button").focus();
    });
  }

  /** Shows the tensors of a run at its peak. */
  show(run) {
    this.run = run;
    const here = run.steps.length ? run.at(run.peak) : [];
    this.all = here.slice(0, ROWS).map((life) => ({ life, name: run.owner(life), size: life.size, tensor: run.tensors[life.tensor] }));
    const rest = here.slice(ROWS).reduce((sum, life) => sum + life.size, 0);
    const others = rest ? `; the ${ROWS} largest are listed, the others take ${bytes(rest)}` : "";
    document.getElementById("tensors-about").textContent =
      `${run.name}: ${here.length} at step ${run.peak}, ${bytes(run.memory[run.peak] || 0)}${others}`;
    this.fill();
  }

  sort(column) {
    this.is_rising = this.column === column ? !this.is_rising : !COLUMNS[column][2];
    this.column = column;
    this.fill();
  }

  rows() {
    const [, key, is_number] = COLUMNS[this.column];
    const order = (a, b) => (is_number ? key(a) - key(b) : key(a).localeCompare(key(b), "en", { numeric: true }));
    return [...this.all].sort((a, b) => (this.is_rising ? order(a, b) : order(b, a)));
  }

  fill() {
    const order = this.is_rising ? "ascending" : "descending";
    this.heads.forEach((head, column) => head.setAttribute("aria-sort", column === this.column ? order : "none"));
    this.body.replaceChildren();
    this.rows().forEach(({ life, name, size, tensor }, place) => {
      const row = element("tr", this.body, undefined, { "data-tensor": life.tensor });
      const button = element("button", element("td", row), undefined, { type: "button", title: tensor.other || name });
      button.tabIndex = place ? -1 : 0;
      element("i", button, undefined, { class: `mark kind${life.kind}` });
      element("bdi", button, name);
      element("td", row, tensor.shape);
      element("td", row, tensor.type);
      element("td", row, bytes(size), { class: "number" });
      const [first, last] = ends(tensor);
      this.life(element("td", row, `${first}–${last}`, { class: "number", title: this.run.life(tensor) }), tensor);
      if (!IS_RECORDED) element("td", row, tensor.again || "–", { class: "number" });
    });
    this.select(this.chosen);
  }

  /** A line as long as the run with the lives of a tensor on it. */
  life(cell, tensor) {
    const line = element("span", cell, undefined, { class: "life", "aria-hidden": "true" });
    const share = (steps) => `${(100 * steps) / this.run.steps.length}%`;
    for (const { from, to, kind } of tensor.lives.slice(0, 20)) {
      const part = element("i", line, undefined, { class: `kind${kind}` });
      part.style.left = share(from);
      part.style.width = share(to - from);
    }
  }

  select(tensor) {
    this.chosen = tensor;
    for (const row of this.body.rows) {
      const is_chosen = Number(row.dataset.tensor) === tensor && tensor !== null;
      row.classList.toggle("chosen", is_chosen);
      row.querySelector("button").setAttribute("aria-pressed", is_chosen);
    }
  }

  /** The table as CSV; programs that calculate take what begins like a formula for text. */
  csv() {
    const quoted = (text) => `"${String(text).replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;
    const rows = this.rows().map(({ life, name, size, tensor }) =>
      [...[name, tensor.shape, tensor.type].map(quoted), size, ...ends(tensor), tensor.again, quoted(KINDS[life.kind][0])].join(","),
    );
    return ["tensor,shape,type,bytes,first_step,last_step,computed_again,kind", ...rows, ""].join("\r\n");
  }
}
