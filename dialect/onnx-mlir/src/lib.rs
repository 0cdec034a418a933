//! ONNX models, as they are or rewritten, as MLIR text.
//!
//! [`write()`] takes a model and its graph (the one that was read, or one with recomputes) and writes a module in one of three
//! [`Form`]s:
//!
//! | form | read by | an op | what marks a recompute |
//! |---|---|---|---|
//! | `torch` | torch-mlir, IREE | `torch.operator "onnx.Conv"(…) {torch.onnx.group = 1 : si64}` | an operand after [an optimization barrier](Barriers) |
//! | `onnx-mlir` | onnx-mlir | `"onnx.Conv"(…) {group = 1 : si64}` | the attribute `remat.recompute` |
//! | `remat` | `mlir-opt` with the plugin | the same over builtin tensors | `remat.recompute` on an operand, `remat.dealloc` |
//!
//! # Guarantees
//! - No LLVM is needed: the text is written directly, op by op, and weights are copied piece by piece from where they lie.
//! - Ops stand in the order of the graph; names of nodes and values become locations.
//! - Numbers keep their bits: floats are written in a way that reads back to the same value, or in hexadecimal.
//! - Bodies of If, Loop and Scan become regions; functions of the model are inlined where they are called.
//! - What a form cannot express is an [`ExportError`] that names the node or the tensor; nothing is left out silently.

mod attribute;
mod barrier;
mod body;
mod call;
mod constant;
mod constant_node;
mod element;
mod emit;
mod error;
mod form;
mod level;
mod memory;
mod module;
mod names;
mod parameters;
mod reads;
mod resource;
mod text;
mod types;

pub use emit::Report;
pub use error::ExportError;
pub use form::{Barriers, Form, Options};
pub use module::write;
