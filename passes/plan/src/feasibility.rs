//! The lower bound on any plan's peak that can be read off the problem, and the op that causes it.

use smallvec::SmallVec;

use crate::{OpId, OrderMode, Problem, StorageId, StorageRole, Structure};

/// The op at which every plan needs at least `bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The op.
    pub op: OpId,
    /// Its operands, results and workspace, and `outputs_before`.
    pub bytes: u64,
    /// The part of `bytes` that graph outputs take which stand before the op in the fixed order and stay.
    pub outputs_before: u64,
}

/// A budget below the [`Bottleneck`]: no plan exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no plan can meet the budget: op `{op}` needs {}{}, the budget is {}",
    exact(*need), with_outputs_before(*outputs_before), exact(*budget)
)]
pub struct Infeasible {
    /// Name of the op.
    pub op: String,
    /// Bytes it needs.
    pub need: u64,
    /// The part of `need` that graph outputs take which stand before the op in the fixed order and stay.
    pub outputs_before: u64,
    /// The budget.
    pub budget: u64,
}

/// Bytes exactly, and from a kibibyte on also in the unit that fits.
fn exact(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    format!("{} ({bytes} bytes)", bytesize::ByteSize(bytes).display().iec())
}

fn with_outputs_before(outputs_before: u64) -> String {
    if outputs_before == 0 {
        return String::new();
    }
    format!(
        ", of which {} are graph outputs computed before it",
        exact(outputs_before)
    )
}

impl Problem {
    /// The op that needs most, over all plans for this problem; `None` for a problem without ops.
    ///
    /// For each op: its workspace, the storages it reads (through views, too) and those it creates. In fixed order, for ops that
    /// create storage, also all graph outputs computed before it. Every op runs at least once with these resident together, so
    /// this is a lower bound on the peak of every plan; with paging, graph outputs computed before are left out.
    #[must_use]
    pub fn bottleneck(&self, structure: &Structure) -> Option<Bottleneck> {
        let bytes_of = |storages: &[StorageId]| storages.iter().map(|&s| self.storages[s].bytes).sum::<u64>();
        let with_role = |storages: &[StorageId], keep: fn(StorageRole) -> bool| {
            let kept = storages.iter().copied().filter(|&s| keep(self.storages[s].role));
            kept.collect::<SmallVec<[StorageId; 4]>>()
        };
        let mut outputs_before = 0u64;
        let mut worst: Option<Bottleneck> = None;
        for (op, entry) in self.ops.iter_enumerated() {
            let owns = structure.owns(op);
            let created = bytes_of(&with_role(owns, |role| role != StorageRole::External));
            // What a view reads besides its base is needed while the view runs, not by the readers of the view.
            let mut read: SmallVec<[StorageId; 4]> = entry.reads.iter().map(|&t| self.tensors[t].storage).collect();
            read.sort_unstable();
            read.dedup();
            // Ops that create no storage are exempt from the fixed order.
            let in_order = self.order == OrderMode::Fixed && self.paging.is_none() && !owns.is_empty();
            let before = if in_order { outputs_before } else { 0 };
            let needed = if in_order {
                bytes_of(&with_role(&read, |role| role == StorageRole::Transient))
            } else {
                bytes_of(&with_role(&read, |role| role != StorageRole::External))
            };
            let bytes = entry.workspace + created + needed + before;
            if worst.is_none_or(|w| bytes > w.bytes) {
                worst = Some(Bottleneck {
                    op,
                    bytes,
                    outputs_before: before,
                });
            }
            outputs_before += bytes_of(&with_role(owns, |role| role == StorageRole::LiveOut));
        }
        worst
    }

    /// Says at once if no plan can meet the budget, with the op that forbids it.
    ///
    /// # Errors
    /// [`Infeasible`] if the budget is below the bottleneck. Passing proves nothing.
    pub fn check(&self, structure: &Structure) -> Result<(), Infeasible> {
        match (self.budget, self.bottleneck(structure)) {
            (
                Some(budget),
                Some(Bottleneck {
                    op,
                    bytes,
                    outputs_before,
                }),
            ) if bytes > budget => Err(Infeasible {
                op: self.ops[op].name.clone(),
                need: bytes,
                outputs_before,
                budget,
            }),
            _ => Ok(()),
        }
    }
}
