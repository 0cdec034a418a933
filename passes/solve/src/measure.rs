//! Figures of a plan, for what a solver claims about it.

use remat_plan::{Plan, Problem, Step, StorageRole, Structure};
use typed_index_collections::TiVec;

/// Duration and peak of a plan without paging; both saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Figures {
    /// Time of all runs, in the unit of the problem.
    pub duration: u64,
    /// Bytes resident at most.
    pub peak: u64,
}

/// Adds up a plan that lowering made. What is said here is a claim; whether the plan is valid is for the checker to say.
#[must_use]
pub fn measure(problem: &Problem, structure: &Structure, plan: &Plan) -> Figures {
    let mut figures = Figures { duration: 0, peak: 0 };
    let mut resident = 0u64;
    let mut present = TiVec::from(vec![false; problem.storages.len()]);
    for step in &plan.steps {
        match *step {
            Step::Compute(op) | Step::Recompute(op) => {
                let mut during = resident.saturating_add(problem.ops[op].workspace);
                for &storage in structure.owns(op) {
                    let entry = &problem.storages[storage];
                    if entry.role == StorageRole::External {
                        continue;
                    }
                    during = during.saturating_add(entry.bytes);
                    if !std::mem::replace(&mut present[storage], true) {
                        resident = resident.saturating_add(entry.bytes);
                    }
                }
                figures.peak = figures.peak.max(during);
                figures.duration = figures.duration.saturating_add(problem.ops[op].duration);
            }
            Step::Free(storage) => {
                if std::mem::replace(&mut present[storage], false) {
                    resident = resident.saturating_sub(problem.storages[storage].bytes);
                }
            }
            Step::PageOut(_) | Step::PageIn(_) => {}
        }
    }
    figures
}
