//! The executable answer.

use crate::{OpId, StorageId};

/// One step of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Runs an op for the first time.
    Compute(OpId),
    /// Runs an op again.
    Recompute(OpId),
    /// Gives a storage up; its tensors are undefined until they are computed again.
    Free(StorageId),
    /// Moves a storage to the second memory.
    PageOut(StorageId),
    /// Brings a storage back from the second memory.
    PageIn(StorageId),
}

/// Ordered steps. Only the checker says whether they are a valid answer to a problem.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The ops in the order in which they run, repetitions included.
    pub fn runs(&self) -> impl Iterator<Item = OpId> + '_ {
        self.steps.iter().filter_map(|step| match *step {
            Step::Compute(op) | Step::Recompute(op) => Some(op),
            Step::Free(_) | Step::PageOut(_) | Step::PageIn(_) => None,
        })
    }

    /// How many steps run an op again.
    #[must_use]
    pub fn recomputes(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| matches!(step, Step::Recompute(_)))
            .count()
    }
}
