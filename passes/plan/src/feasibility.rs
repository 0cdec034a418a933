//! The lower bound on any plan's peak that can be read off the problem, and the op that causes it.

use crate::{OpId, OrderMode, Problem, StorageRole, Structure};

/// The op at which every plan needs at least `bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The op.
    pub op: OpId,
    /// Its operands, results and workspace, and the graph outputs that are resident beside it in every plan.
    pub bytes: u64,
}

/// A budget below the [`Bottleneck`]: no plan exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no plan can meet the budget: op `{op}` alone needs {need} bytes, the budget is {budget} bytes")]
pub struct Infeasible {
    /// Name of the op.
    pub op: String,
    /// Bytes it needs.
    pub need: u64,
    /// The budget.
    pub budget: u64,
}

impl Problem {
    /// The op that needs most, over all plans for this problem; `None` for a problem without ops.
    ///
    /// For each op: workspace, the storages it needs and creates, and, in fixed order, all graph outputs computed before it
    /// (in free order only those it needs itself). A valid lower bound on the peak of every plan without paging.
    #[must_use]
    pub fn bottleneck(&self, structure: &Structure) -> Option<Bottleneck> {
        let kept = |op: OpId| {
            structure
                .owns(op)
                .iter()
                .filter(|&&s| self.storages[s].role == StorageRole::Kept)
        };
        let mut kept_before = 0u64;
        let mut worst: Option<Bottleneck> = None;
        for op in structure.scheduled() {
            let counted = |&&s: &&crate::StorageId| self.storages[s].role != StorageRole::External;
            let created: u64 = structure
                .owns(op)
                .iter()
                .filter(counted)
                .map(|&s| self.storages[s].bytes)
                .sum();
            let fixed = self.order == OrderMode::Fixed && self.paging.is_none();
            let needed = structure.needs(op).iter().map(|&s| &self.storages[s]);
            let needed: u64 = needed
                .filter(|s| !(fixed && s.role == StorageRole::Kept))
                .map(|s| s.bytes)
                .sum();
            let beside = if fixed { kept_before } else { 0 };
            let bytes = self.ops[op].workspace + created + needed + beside;
            if worst.is_none_or(|w| bytes > w.bytes) {
                worst = Some(Bottleneck { op, bytes });
            }
            kept_before += kept(op).map(|&s| self.storages[s].bytes).sum::<u64>();
        }
        worst
    }

    /// Says at once if no plan can meet the budget, with the op that forbids it.
    ///
    /// # Errors
    /// [`Infeasible`] if the budget is below the bottleneck. Passing proves nothing.
    pub fn check(&self, structure: &Structure) -> Result<(), Infeasible> {
        match (self.budget, self.bottleneck(structure)) {
            (Some(budget), Some(Bottleneck { op, bytes })) if bytes > budget => Err(Infeasible {
                op: self.ops[op].name.clone(),
                need: bytes,
                budget,
            }),
            _ => Ok(()),
        }
    }
}
