//! Names that no op and no tensor of a graph has yet.

use remat_ir::{Graph, OpId};
use rustc_hash::FxHashSet;

use crate::FissionError;

/// All names of a graph, and those that were given since.
pub(crate) struct Names(FxHashSet<String>);

impl Names {
    pub(crate) fn of(graph: &Graph) -> Self {
        let ops = graph.ops.iter().map(|op| op.name.clone());
        Self(
            ops.chain(graph.tensors.iter().map(|tensor| tensor.name.clone()))
                .collect(),
        )
    }

    /// This name, or with the first number after it that makes it a new one.
    pub(crate) fn fresh(&mut self, wanted: String) -> String {
        if self.0.insert(wanted.clone()) {
            return wanted;
        }
        let numbered = (1u32..).map(|number| format!("{wanted}_{number}"));
        let free = numbered
            .into_iter()
            .find(|name| !self.0.contains(name))
            .unwrap_or(wanted);
        self.0.insert(free.clone());
        free
    }
}

/// The op of this name.
pub(crate) fn find(graph: &Graph, name: &str) -> Result<OpId, FissionError> {
    let mut ops = graph.ops.iter_enumerated();
    let found = ops.find(|(_, op)| op.name == name);
    found
        .map(|(id, _)| id)
        .ok_or_else(|| FissionError::UnknownOp(name.to_owned()))
}
