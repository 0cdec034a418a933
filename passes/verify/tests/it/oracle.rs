//! The rules once more, stated over the whole history of a step instead of a state: slow and plain.

use std::collections::BTreeSet;

use remat_plan::{OpId, OrderMode, Plan, Problem, Step, StorageId, StorageRole, TensorId};
use remat_verify::Code;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Absent,
    Resident,
    PagedOut,
}

/// What the oracle says of a plan.
pub(crate) struct Verdict {
    pub(crate) codes: BTreeSet<Code>,
    pub(crate) peak: u128,
    pub(crate) duration: u128,
}

/// Judges a plan whose ids are all known.
pub(crate) fn judge(problem: &Problem, plan: &Plan) -> Verdict {
    let history = History { problem, plan };
    let mut verdict = Verdict {
        codes: BTreeSet::new(),
        peak: 0,
        duration: 0,
    };
    for (i, &step) in plan.steps.iter().enumerate() {
        history.judge_step(i, step, &mut verdict);
    }
    let end = plan.steps.len();
    if problem.ops.keys().any(|op| history.runs(op, end) == 0) {
        verdict.codes.insert(Code::V004);
    }
    let lost = |(id, storage): (StorageId, &remat_plan::ProblemStorage)| {
        let created = history.creator(id).is_some();
        storage.role == StorageRole::Kept && created && history.location(id, end) != Location::Resident
    };
    if problem.storages.iter_enumerated().any(lost) {
        verdict.codes.insert(Code::V011);
    }
    if verdict.duration > u128::from(u64::MAX) {
        verdict.codes.insert(Code::V016);
    }
    verdict
}

/// A plan whose every moment is looked up from the beginning.
struct History<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
}

impl History<'_> {
    fn judge_step(&self, i: usize, step: Step, verdict: &mut Verdict) {
        let problem = self.problem;
        let mut broken = |code: Code, is_broken: bool| {
            if is_broken {
                verdict.codes.insert(code);
            }
        };
        let mut memory = self.resident(i);
        match step {
            Step::Compute(op) | Step::Recompute(op) => {
                let earlier = self.runs(op, i);
                let labelled_again = matches!(step, Step::Recompute(_));
                let roots = self.roots(op);
                let entry = &problem.ops[op];
                broken(Code::V001, earlier > 0 && !labelled_again);
                broken(Code::V002, earlier == 0 && labelled_again);
                broken(Code::V003, entry.reads.iter().any(|&tensor| !self.readable(tensor, i)));
                broken(Code::V007, earlier > 0 && !entry.recomputable);
                let over = problem.max_computes.is_some_and(|most| earlier + 1 > most as usize);
                broken(Code::V008, earlier > 0 && over && !roots.is_empty());
                let overtaken = problem
                    .ops
                    .keys()
                    .any(|later| later > op && !self.roots(later).is_empty() && self.runs(later, i) > 0);
                let fixed = problem.order == OrderMode::Fixed;
                broken(Code::V010, fixed && earlier == 0 && !roots.is_empty() && overtaken);
                let counted = roots
                    .iter()
                    .filter(|&&s| problem.storages[s].role != StorageRole::External);
                memory += counted.map(|&s| u128::from(problem.storages[s].bytes)).sum::<u128>();
                memory += u128::from(entry.workspace);
                broken(
                    Code::V006,
                    problem.budget.is_some_and(|budget| memory > u128::from(budget)),
                );
                verdict.duration += u128::from(entry.duration);
            }
            Step::Free(storage) => {
                let transient = problem.storages[storage].role == StorageRole::Transient;
                broken(Code::V009, !transient);
                broken(Code::V005, transient && self.location(storage, i) != Location::Resident);
            }
            Step::PageOut(storage) => {
                let transient = problem.storages[storage].role == StorageRole::Transient;
                let resident = self.location(storage, i) == Location::Resident;
                broken(Code::V012, problem.paging.is_none());
                broken(Code::V009, !transient);
                broken(Code::V013, transient && !resident);
                if transient && resident {
                    verdict.duration += self.price(storage, problem.paging.map_or(0, |p| p.out_ns_per_mib));
                }
            }
            Step::PageIn(storage) => {
                let out = self.location(storage, i) == Location::PagedOut;
                broken(Code::V012, problem.paging.is_none());
                broken(Code::V013, !out);
                if out {
                    memory += u128::from(problem.storages[storage].bytes);
                    broken(
                        Code::V006,
                        problem.budget.is_some_and(|budget| memory > u128::from(budget)),
                    );
                    verdict.duration += self.price(storage, problem.paging.map_or(0, |p| p.in_ns_per_mib));
                }
            }
        }
        verdict.peak = verdict.peak.max(memory);
    }

    fn price(&self, storage: StorageId, ns_per_mib: u64) -> u128 {
        (u128::from(self.problem.storages[storage].bytes) * u128::from(ns_per_mib)).div_ceil(1024 * 1024)
    }

    fn is_run(&self, i: usize, op: OpId) -> bool {
        matches!(self.plan.steps[i], Step::Compute(run) | Step::Recompute(run) if run == op)
    }

    /// How often `op` ran before step `i`.
    fn runs(&self, op: OpId, i: usize) -> usize {
        (0..i).filter(|&j| self.is_run(j, op)).count()
    }

    fn creator(&self, storage: StorageId) -> Option<OpId> {
        self.problem.tensors[self.problem.storages[storage].root].producer
    }

    /// The storages that `op` creates.
    fn roots(&self, op: OpId) -> Vec<StorageId> {
        self.problem
            .storages
            .keys()
            .filter(|&storage| self.creator(storage) == Some(op))
            .collect()
    }

    /// Where a storage is right before step `i`.
    fn location(&self, storage: StorageId, i: usize) -> Location {
        let transient = self.problem.storages[storage].role == StorageRole::Transient;
        let counted = self.problem.storages[storage].role != StorageRole::External;
        let creator = self.creator(storage);
        let mut location = Location::Absent;
        for step in &self.plan.steps[..i] {
            location = match (*step, location) {
                (Step::Compute(op) | Step::Recompute(op), _) if counted && Some(op) == creator => Location::Resident,
                (Step::Free(s), Location::Resident) if s == storage && transient => Location::Absent,
                (Step::PageOut(s), Location::Resident) if s == storage && transient => Location::PagedOut,
                (Step::PageIn(s), Location::PagedOut) if s == storage => Location::Resident,
                (_, unchanged) => unchanged,
            };
        }
        location
    }

    /// How often a storage was created before step `i`: the runs of its creator that did not find it resident.
    fn births(&self, storage: StorageId, i: usize) -> usize {
        let creator = self.creator(storage);
        let born = |&j: &usize| {
            creator.is_some_and(|op| self.is_run(j, op)) && self.location(storage, j) != Location::Resident
        };
        (0..i).filter(born).count()
    }

    /// Whether step `i` can read `tensor`.
    fn readable(&self, tensor: TensorId, i: usize) -> bool {
        let entry = &self.problem.tensors[tensor];
        let Some(producer) = entry.producer else { return true };
        let Some(last) = (0..i).rev().find(|&j| self.is_run(j, producer)) else {
            return false;
        };
        self.problem.storages[entry.storage].role == StorageRole::External
            || self.location(entry.storage, i) == Location::Resident
                && self.births(entry.storage, last + 1) == self.births(entry.storage, i)
    }

    /// Bytes resident right before step `i`.
    fn resident(&self, i: usize) -> u128 {
        let resident = |&id: &StorageId| self.location(id, i) == Location::Resident;
        let bytes = |id: StorageId| u128::from(self.problem.storages[id].bytes);
        self.problem.storages.keys().filter(resident).map(bytes).sum()
    }
}
