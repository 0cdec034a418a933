//! A rewritten graph as a file that ONNX Runtime runs as planned, under the settings that users have.
//!
//! By default ONNX Runtime chooses an order of its own, merges equal nodes and keeps a dead buffer for a later result of the same
//! shape. A plan survives all three, without any option being set, because of what [`lower`] does to the file:
//!
//! | the runtime | the file |
//! |---|---|
//! | merges equal nodes | every clone has an attribute of its own, `__remat` (`clones`) |
//! | fuses what has one reader only | what had more readers in the model keeps a further one (`anchors`) |
//! | makes factors and transpositions part of a product in single precision | what was in half precision reaches it through a view (`halves`) |
//! | overwrites a dead operand of equal shape | a view states the shape of the operand, where all others are dynamic (`in_place`) |
//! | reuses buffers of equal shape | shapes of large results are dynamic: they follow from values known at run time only (`dynamic_shapes`) |
//! | lays images out by what it sees | shapes that decide over a layout are stated, and what exists in blocks only gets no reader (`layout`) |
//! | holds one block for all results of later runs | all nodes stand in a branch that captures a sequence, which has no such block (`branch`) |
//! | runs what the leaves need, the leaf of the highest index first | order anchors: small leaves after all other nodes, whose walks yield the order of the plan (`anchors`) |
//! | has one memory | operators of the arena library write results to a file and read them again (`pages`) |
//!
//! ONNX Runtime visits leaf nodes from last to first and runs each leaf's inputs depth-first. The order anchors are `Size` nodes appended
//! so that this traversal yields *exactly* the planned order: nodes stand in the order of the plan, and the anchors after them in reverse.
//! So the same file holds under the runtime's default order, under its priority-based order, and in runtimes that follow the file.
//!
//! What is added are `Size` nodes (a few bytes, a microsecond each) and views. The signature of the model stays as it is, and so do
//! the bits of its outputs.

mod anchors;
mod branch;
mod build;
mod canonical;
mod clones;
mod dynamic_shapes;
mod halves;
mod in_place;
mod layout;
mod lower;
mod names;
mod occupancy;
mod pages;
mod schedule;
mod sums;
mod trace;
mod unbranch;
mod zeros;

pub use canonical::canonicalize_names;
pub use layout::Layout;
pub use lower::{Lowered, LoweringOptions, LoweringReport, OrderHint, Shapes, lower};
pub use sums::put_sums_first;
pub use trace::LayoutMapping;
pub use unbranch::out_of_branch;
