//! networkx node-link JSON graphs, the form in which papers publish their graphs.
//!
//! `networkx.node_link_data` writes a graph as `{"directed", "multigraph", "graph", "nodes", "links"}`. A node of the graph
//! becomes an op with one result; the sizes and times that solvers need are attributes of the nodes. Two sets of names
//! are in use, and a file may mix them:
//!
//! | what | Moccasin's random graphs | Checkmate's networks |
//! |---|---|---|
//! | bytes of the result | `out_cost` | `cost_ram` |
//! | time of the op | `duration` | `cost_cpu` |
//! | id of a node | `name` | `id`, and a `name` to show |
//! | ends of an edge | `0`, `1` | `source`, `target` |
//! | reference order | `graph.order` | none: the order of `networkx.topological_sort` |
//! | never after | `graph.anti_dependences` | none |
//! | pass of a training step | none | `backward` |
//!
//! `graph.anti_dependences` is a list of pairs of ids: the first node never runs after the second one, which overwrites what it reads.
//!
//! Edges stand under `links` or `edges`. Other keys are ignored.

mod document;
mod error;
mod number;
mod order;
mod read;

pub use error::NodeLinkError;
pub use read::{BACKWARD, NodeLinkGraph, OP_TYPE, is_node_link, read};
