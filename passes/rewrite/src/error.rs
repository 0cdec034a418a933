//! Why a plan cannot be applied.

use remat_files::shown;
use remat_ir::GraphError;
use thiserror::Error;

/// Why a plan cannot be applied to a graph. Positions of steps count from 0.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RewriteError {
    /// The problem was built from another graph.
    #[error("graph and problem disagree about {what} {id}: {} in the graph, {} in the problem", name(.graph), name(.problem))]
    OtherGraph {
        /// `op`, `tensor` or `storage`.
        what: &'static str,
        /// Its id.
        id: usize,
        /// Its name in the graph; `None` if the graph does not have it.
        graph: Option<String>,
        /// Its name in the problem; `None` if the problem does not have it.
        problem: Option<String>,
    },
    /// The graph holds the result of an earlier rewrite, or breaks its own invariants.
    #[error("op `{}` belongs to an earlier plan: start from the model before it was rewritten", shown(.0))]
    AlreadyRewritten(String),
    /// A step has an id behind the end of its table.
    #[error("step {step} names {what} {id}, which the graph does not have")]
    UnknownId {
        /// Position of the step.
        step: usize,
        /// `op` or `storage`.
        what: &'static str,
        /// The id.
        id: usize,
    },
    /// A compute step for an op that ran before.
    #[error("step {step} computes `{op}` a second time", op = shown(.op))]
    ComputedTwice {
        /// Position of the step.
        step: usize,
        /// The op.
        op: String,
    },
    /// A recompute step for an op that did not run before.
    #[error("step {step} recomputes `{op}`, which was not computed before", op = shown(.op))]
    NotComputed {
        /// Position of the step.
        step: usize,
        /// The op.
        op: String,
    },
    /// An op runs while a tensor it needs is not there.
    #[error("step {step} runs `{op}` while `{tensor}` is not there", op = shown(.op), tensor = shown(.tensor))]
    NotThere {
        /// Position of the step.
        step: usize,
        /// The op.
        op: String,
        /// What it needs: an operand, or what its result looks into.
        tensor: String,
    },
    /// A free of a storage that is not there or that the run does not own.
    #[error("step {step} frees `{storage}`, which {why}", storage = shown(.storage))]
    BadFree {
        /// Position of the step.
        step: usize,
        /// The storage.
        storage: String,
        /// The reason.
        why: &'static str,
    },
    /// A storage moves that is not where it would have to be, or that the run does not own.
    #[error("step {step} pages {way} `{storage}`, which {why}", storage = shown(.storage))]
    BadPage {
        /// Position of the step.
        step: usize,
        /// `out` or `in`.
        way: &'static str,
        /// The storage.
        storage: String,
        /// The reason.
        why: &'static str,
    },
    /// The plan leaves ops out.
    #[error("the plan never computes `{}`", shown(.0))]
    NeverComputed(String),
    /// The new graph would break its invariants: the plan repeats an op that is not pure, say.
    #[error("the rewritten graph would not be valid: {}", .0.first().map_or_else(String::new, GraphError::to_string))]
    Invalid(Vec<GraphError>),
}

fn name(name: &Option<String>) -> String {
    name.as_ref()
        .map_or_else(|| "none".to_owned(), |name| format!("`{}`", shown(name)))
}
