//! The data-flow graph that every pass works on.
//!
//! A [`Graph`] is a list of [`Op`]s in a *reference order*: an order in which every op comes after the ops whose results
//! it reads. Ops read and define [`Tensor`]s; each tensor lives in a [`Storage`], and views (a reshaped tensor, for instance)
//! share the storage of their source. Rematerialization is explicit: a `recompute` op repeats an earlier op, a
//! `dealloc` op ends the life of a storage. So is a second memory: a `page_out` op moves a storage there, a `page_in` op brings it back.
//!
//! An op that runs subgraphs has them as [`Body`]s, which only tell what it takes.
//!
//! Where a model leaves dimensions open, its graph is that of the sizes that were given, with [`Formulas`] for all others.
//!
//! The graph knows neither ONNX nor MLIR: importers translate into it, exporters out of it.
//!
//! A graph prints as text and parses back ([`text`]), and draws itself for Graphviz ([`Graph::to_dot`]).
//!
//! # Invariants
//! [`Graph::validate`] checks them in this order, each with its own [`GraphError`]:
//! 1. op names are unique, tensor names are unique;
//! 2. every tensor is a graph input, a constant, or the result of exactly one op;
//! 3. every op comes after the ops whose results it reads;
//! 4. a view shares the storage of something its op reads, any other result roots a storage of its own;
//! 5. a `recompute` op repeats an earlier compute op that is pure, with as many results;
//! 6. nothing is read after its storage was deallocated, and only results of ops are deallocated, once, while they are in memory;
//! 7. nothing is read while its storage is in the second memory; only results of ops that are in memory are paged out, only what was
//!    paged out is paged in, and graph outputs are in memory at the end;
//! 8. where the graph has a block, results of ops that have an offset lie in it, at multiples of its alignment, and no two that are in memory
//!    at one time share a byte; nor does the workspace of an op that runs;
//! 9. an op that says which part of a tensor it computes says so of each of its results; a part has rows on every axis, and those of the
//!    result, spare rows taken away;
//! 10. elements are stated of 64-bit and 32-bit integer constants only, as many as their type has.

mod attribute;
mod block;
mod builder;
mod dot;
mod formulas;
mod graph;
mod ids;
mod part;
mod part_checks;
mod places;
pub mod text;
mod types;
mod validate;

pub use attribute::Attribute;
pub use block::{Block, Workspace};
pub use builder::{GraphBuilder, OpSpec, Placement, ResultSpec};
pub use formulas::{Formulas, NoFormula};
pub use graph::{Body, Effects, Graph, Op, OpKind, Storage, StorageClass, Tensor};
pub use ids::{OpId, StorageId, TensorId};
pub use part::{Part, Spare};
pub use text::{ParseError, ParseErrorKind};
pub use types::{Dim, ElementType, STRING_BYTES, SizeError, ValueType};
pub use validate::GraphError;
