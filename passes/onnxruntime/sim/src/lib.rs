//! What ONNX Runtime 1.31 does with a graph on a CPU, simulated, so that a peak can be predicted before anything runs.
//!
//! A [`Program`] is the graph as the runtime sees it once its optimizers are through: nodes in the order of the file, and
//! of each value the size it will have (the truth) apart from the shape the runtime knows when it loads the model (what its
//! decisions rest on). From there:
//!
//! 1. [`default_order`] or [`priority_order`]: in which order the nodes run;
//! 2. [`allocate`]: where each result lives, in memory of its own, in that of an operand, or in that of a dead result;
//! 3. [`heap`]: bytes at and after each node, without the memory arena;
//! 4. [`arena`]: bytes with it;
//! 5. [`fresh_bytes`]: bytes that a run without it takes anew from the system;
//! 6. [`requests`]: what a run asks another allocator for, in which order.
//!
//! Where the allocations of runs were recorded, [`replay`] says what an arena of other settings takes for them.
//!
//! The rules were read in the runtime's sources (`graph.cc`, `allocation_planner.cc`, `execution_frame.cc`) and compared with
//! what it does, node by node, in the tests of this crate.
//!
//! # Limits
//! One stream on one CPU. Subgraphs of If, Loop and Scan are simulated ([`Control`]); those of other operators count only as far as
//! [`Node::workspace`] states it. What optimizers do to the graph is not simulated: the program is to be built from the
//! graph they leave.

mod allocate;
mod arena;
mod control;
mod events;
mod from_graph;
mod heap;
mod ids;
mod kernels;
mod malloc;
mod order;
mod pattern;
mod program;
mod requests;
mod steps;

pub use allocate::{Allocation, Home, Settings, allocate};
pub use arena::{
    ArenaSettings, ArenaTrace, BufferLife, Growth, RegionOrder, Replayed, arena, arena_anywhere, lowest_first_region,
    most_bytes, replay,
};
pub use control::{body_bytes, bytes_by_body};
pub use events::heap_bytes;
pub use heap::{Trace, heap};
pub use ids::{NodeIndex, ValueId};
pub use malloc::fresh_bytes;
pub use order::{default_order, depth_first, priority_order};
pub use program::{Body, Control, Node, Program, Shape, Value, ValueClass, ValueKind};
pub use requests::{Requests, requests};
