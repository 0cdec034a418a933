//! Names that no op and no tensor of a graph has yet.

use std::fmt::Display;

use remat_ir::{Graph, OpId};
use rustc_hash::FxHashSet;

use crate::FissionError;

/// The names of a graph, and those that were given since; ops and tensors have names of their own.
pub(crate) struct Names {
    ops: FxHashSet<String>,
    tensors: FxHashSet<String>,
    is_none: bool,
}

impl Names {
    pub(crate) fn of(graph: &Graph) -> Self {
        Self {
            ops: graph.ops.iter().map(|op| op.name.clone()).collect(),
            tensors: graph.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
            is_none: false,
        }
    }

    /// Gives no names, for graphs that nobody looks at.
    pub(crate) fn none() -> Self {
        Self {
            ops: FxHashSet::default(),
            tensors: FxHashSet::default(),
            is_none: true,
        }
    }

    /// This name for an op, or with the first number after it that makes it a new one.
    pub(crate) fn op(&mut self, wanted: impl Display) -> String {
        match self.is_none {
            true => String::new(),
            false => fresh(&mut self.ops, wanted.to_string()),
        }
    }

    /// The same for a tensor.
    pub(crate) fn tensor(&mut self, wanted: impl Display) -> String {
        match self.is_none {
            true => String::new(),
            false => fresh(&mut self.tensors, wanted.to_string()),
        }
    }
}

fn fresh(taken: &mut FxHashSet<String>, wanted: String) -> String {
    if taken.insert(wanted.clone()) {
        return wanted;
    }
    let numbered = (1u32..).map(|number| format!("{wanted}_{number}"));
    let free = numbered
        .into_iter()
        .find(|name| !taken.contains(name))
        .unwrap_or(wanted);
    taken.insert(free.clone());
    free
}

/// The op of this name.
pub(crate) fn find(graph: &Graph, name: &str) -> Result<OpId, FissionError> {
    let mut ops = graph.ops.iter_enumerated();
    let found = ops.find(|(_, op)| op.name == name);
    found
        .map(|(id, _)| id)
        .ok_or_else(|| FissionError::UnknownOp(name.to_owned()))
}
