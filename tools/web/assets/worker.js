"use strict";
// Everything that computes. Questions are answered one after the other; each carries a number, which its answer repeats.

importScripts("remat.js");
const ready = wasm_bindgen({ module_or_path: "remat_bg.wasm" });
let network = null;
let file = null;

function range(offset, length) {
  return new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(offset, offset + length)));
}

const answers = {
  open({ from, question }) {
    file = from;
    network?.free();
    network = null;
    network = new wasm_bindgen.Network(range, file.size, JSON.stringify(question));
    return { summary: JSON.parse(network.summary()), page: network.page() };
  },
  price: ({ percent, seconds }) => JSON.parse(network.price(percent ?? undefined, seconds)),
  plan({ percent, seconds, tiles }) {
    const found = JSON.parse(network.plan(percent ?? undefined, seconds, tiles));
    return { found, page: network.page() };
  },
  // Ranges of the file stay where they are: a blob of parts copies none of them.
  model: () => new Blob(network.rewritten().map(piece => piece instanceof Uint8Array ? piece : file.slice(piece[0], piece[0] + piece[1]))),
  plan_file: () => new Blob([network.planFile()], { type: "application/json" }),
  page: () => new Blob([network.page()], { type: "text/html" }),
};

onmessage = async ({ data }) => {
  try {
    await ready;
    postMessage({ number: data.number, answer: answers[data.what](data) });
  } catch (error) {
    // A trap leaves the library in no state that could be used.
    const broken = error instanceof WebAssembly.RuntimeError;
    postMessage({ number: data.number, broken, dims: error.dims ?? [], error: broken ? `the planner stopped (${error.message}): a bug of remat-opt` : String(error.message ?? error) });
  }
};
