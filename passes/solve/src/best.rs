//! The best sequence so far.

use remat_plan::NodeId;

use crate::sequence::Sequence;

/// A sequence worth keeping.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    /// Time of all runs, in units.
    pub(crate) duration: i64,
    /// Largest memory, in units.
    pub(crate) peak: i32,
    /// Nodes in the order in which they run.
    pub(crate) sequence: Vec<NodeId>,
}

impl Best {
    pub(crate) fn of(sequence: &Sequence<'_>) -> Self {
        Self {
            duration: sequence.duration(),
            peak: sequence.peak(),
            sequence: sequence.nodes(),
        }
    }
}
