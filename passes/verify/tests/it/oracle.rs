//! The rules once more, stated over the whole history of a step instead of a state, and over every single nanosecond instead of
//! events: slow and plain.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use remat_plan::{
    OpId, OrderMode, PagingMode, Plan, Problem, Resident, Step, StorageId, StorageRole, TensorId, Transfer,
};
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
    pub(crate) energy: u128,
    pub(crate) second_peak: u128,
}

/// What happens on the bus.
struct Moved {
    bytes: u128,
    inwards: bool,
    storage: StorageId,
    start: u128,
    end: u128,
}

/// What happened so far, in time.
#[derive(Default)]
struct Past {
    now: u128,
    moved: Vec<Moved>,
}

impl Past {
    fn bus(&self) -> u128 {
        self.moved.iter().map(|moved| moved.end).max().unwrap_or(0)
    }

    /// When a storage that was paged in is there.
    fn arrived(&self, storage: StorageId) -> u128 {
        let ends = self
            .moved
            .iter()
            .filter(|moved| moved.inwards && moved.storage == storage);
        ends.map(|moved| moved.end).max().unwrap_or(0)
    }

    /// Bytes in memory at a moment, if `resident` storages are there or let in.
    fn memory(&self, time: u128, resident: u128) -> u128 {
        let leaving = self.moved.iter().filter(|moved| !moved.inwards && moved.end > time);
        let to_come = self.moved.iter().filter(|moved| moved.inwards && moved.start > time);
        resident + leaving.map(|moved| moved.bytes).sum::<u128>() - to_come.map(|moved| moved.bytes).sum::<u128>()
    }
}

/// Judges a plan whose ids are all known.
pub(crate) fn judge(problem: &Problem, plan: &Plan) -> Verdict {
    let history = History { problem, plan };
    let mut verdict = Verdict {
        codes: BTreeSet::new(),
        peak: 0,
        duration: 0,
        energy: 0,
        second_peak: 0,
    };
    let mut past = Past::default();
    for (i, &step) in plan.steps.iter().enumerate() {
        history.judge_step(i, step, &mut past, &mut verdict);
    }
    let last = past.now.max(past.bus());
    history.look(plan.steps.len(), &past, past.now..=last, 0, &mut verdict);
    verdict.duration = last;
    if problem.deadline.is_some_and(|deadline| last > u128::from(deadline)) {
        verdict.codes.insert(Code::V019);
    }
    let end = plan.steps.len();
    if problem.ops.keys().any(|op| history.runs(op, end) == 0) {
        verdict.codes.insert(Code::V004);
    }
    let lost = |(id, storage): (StorageId, &remat_plan::ProblemStorage)| {
        let created = history.creator(id).is_some();
        storage.role == StorageRole::LiveOut && created && history.location(id, end) != Location::Resident
    };
    if problem.storages.iter_enumerated().any(lost) {
        verdict.codes.insert(Code::V011);
    }
    if verdict.duration > u128::from(u64::MAX) {
        verdict.codes.insert(Code::V016);
    }
    verdict
}

/// What takes bytes at each step of a plan without DMA: the step at which it began to, what it is, and its bytes.
pub(crate) fn residents(problem: &Problem, plan: &Plan) -> Vec<Vec<(usize, Resident, u64)>> {
    let history = History { problem, plan };
    let steps = 0..plan.steps.len();
    steps.map(|i| history.residents_at(i)).collect()
}

impl Verdict {
    fn broken(&mut self, code: Code, is_broken: bool) {
        if is_broken {
            self.codes.insert(code);
        }
    }
}

/// A plan whose every moment is looked up from the beginning.
struct History<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
}

impl History<'_> {
    fn judge_step(&self, i: usize, step: Step, past: &mut Past, verdict: &mut Verdict) {
        match step {
            Step::Compute(op) | Step::Recompute(op) => self.judge_run(i, op, past, verdict),
            Step::Free(storage) => {
                let transient = self.problem.storages[storage].role == StorageRole::Transient;
                let resident = self.location(storage, i) == Location::Resident;
                verdict.broken(Code::V009, !transient);
                verdict.broken(Code::V005, transient && !resident);
                if transient && resident {
                    self.wait(i, storage, past, verdict);
                }
            }
            Step::PageOut(storage) => {
                let transient = self.problem.storages[storage].role == StorageRole::Transient;
                let resident = self.location(storage, i) == Location::Resident;
                verdict.broken(Code::V012, self.problem.paging.is_none());
                verdict.broken(Code::V009, !transient);
                verdict.broken(Code::V013, transient && !resident);
                if !transient || !resident {
                    return;
                }
                self.wait(i, storage, past, verdict);
                if let Some(paging) = self.problem.paging.filter(|_| !self.is_copied(storage, i)) {
                    self.transfer(storage, false, &paging.page_out, past, verdict);
                    let all = self.problem.storages.iter_enumerated();
                    let held = all.filter(|&(id, _)| self.is_copied(id, i + 1));
                    let held = held.map(|(_, storage)| u128::from(storage.bytes)).sum();
                    verdict.second_peak = verdict.second_peak.max(held);
                    let full = paging.capacity.is_some_and(|capacity| held > u128::from(capacity));
                    verdict.broken(Code::V018, full);
                }
            }
            Step::PageIn(storage) => {
                let out = self.location(storage, i) == Location::PagedOut;
                verdict.broken(Code::V012, self.problem.paging.is_none());
                verdict.broken(Code::V013, !out);
                if !out {
                    return;
                }
                let begun = past.now;
                if let Some(paging) = self.problem.paging {
                    self.transfer(storage, true, &paging.page_in, past, verdict);
                }
                self.look(i + 1, past, begun..=begun, 0, verdict);
            }
        }
    }

    fn judge_run(&self, i: usize, op: OpId, past: &mut Past, verdict: &mut Verdict) {
        let problem = self.problem;
        let earlier = self.runs(op, i);
        let labelled_again = matches!(self.plan.steps[i], Step::Recompute(_));
        let roots = self.roots(op);
        let entry = &problem.ops[op];
        verdict.broken(Code::V001, earlier > 0 && !labelled_again);
        verdict.broken(Code::V002, earlier == 0 && labelled_again);
        verdict.broken(Code::V003, entry.reads.iter().any(|&tensor| !self.readable(tensor, i)));
        verdict.broken(Code::V007, earlier > 0 && !entry.recomputable);
        let over = problem.max_computes.is_some_and(|most| earlier + 1 > most as usize);
        verdict.broken(Code::V008, earlier > 0 && over && !roots.is_empty());
        let overtaken = problem
            .ops
            .keys()
            .any(|later| later > op && !self.roots(later).is_empty() && self.runs(later, i) > 0);
        let fixed = problem.order == OrderMode::Fixed;
        verdict.broken(Code::V010, fixed && earlier == 0 && !roots.is_empty() && overtaken);
        let mut pairs = problem.anti_dependences.iter();
        let overwritten = pairs.any(|pair| pair.before == op && self.runs(pair.after, i) > 0);
        verdict.broken(Code::V021, overwritten);
        let counted = roots
            .iter()
            .filter(|&&s| problem.storages[s].role != StorageRole::External);
        let takes: u128 = counted.map(|&s| u128::from(problem.storages[s].bytes)).sum();
        let takes = takes + u128::from(entry.workspace);

        let operands = entry.reads.iter().map(|&tensor| problem.tensors[tensor].storage);
        let earliest = operands.map(|storage| past.arrived(storage)).fold(past.now, u128::max);
        let duration = u128::from(entry.duration);
        let fits = |&start: &u128| {
            let memory = |time| past.memory(time, self.resident(i)) + takes;
            let mut moments = self.moments(start..=start.max(past.bus())).into_iter();
            moments.all(|time| problem.budget.is_none_or(|budget| memory(time) <= u128::from(budget)))
        };
        let latest = if self.is_dma() {
            earliest.max(past.bus())
        } else {
            earliest
        };
        let start = (earliest..=latest).find(fits).unwrap_or(earliest);
        if past.now < start {
            self.look(i, past, past.now..=start - 1, 0, verdict);
        }
        self.look(i, past, start..=start + duration, takes, verdict);
        past.now = start + duration;
        verdict.energy += u128::from(entry.energy_pj);
    }

    fn is_dma(&self) -> bool {
        self.problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma)
    }

    /// The moments of a span at which memory may differ: with DMA all.
    fn moments(&self, span: RangeInclusive<u128>) -> Vec<u128> {
        if self.is_dma() {
            span.collect()
        } else {
            vec![*span.start()]
        }
    }

    /// Looks at memory before step `i` while a run takes something on top.
    fn look(&self, i: usize, past: &Past, span: RangeInclusive<u128>, takes: u128, verdict: &mut Verdict) {
        for time in self.moments(span) {
            let memory = past.memory(time, self.resident(i)) + takes;
            verdict.peak = verdict.peak.max(memory);
            let over = self.problem.budget.is_some_and(|budget| memory > u128::from(budget));
            verdict.broken(Code::V006, over);
        }
    }

    /// Until the storage has arrived.
    fn wait(&self, i: usize, storage: StorageId, past: &mut Past, verdict: &mut Verdict) {
        let until = past.arrived(storage).max(past.now);
        self.look(i, past, past.now..=until, 0, verdict);
        past.now = until;
    }

    fn transfer(&self, storage: StorageId, inwards: bool, way: &Transfer, past: &mut Past, verdict: &mut Verdict) {
        let bytes = u128::from(self.problem.storages[storage].bytes);
        let time = (bytes * 1_000_000_000).div_ceil(u128::from(way.bytes_per_s)) + u128::from(way.latency_ns);
        let start = past.now.max(past.bus());
        past.moved.push(Moved {
            bytes,
            inwards,
            storage,
            start,
            end: start + time,
        });
        if !self.is_dma() {
            past.now = start + time;
        }
        verdict.energy += bytes * u128::from(way.energy_pj_per_byte) + u128::from(way.energy_pj);
    }

    /// Whether the second memory has a copy right before step `i`.
    fn is_copied(&self, storage: StorageId, i: usize) -> bool {
        let mut copied = false;
        for j in 0..i {
            let (before, after) = (self.location(storage, j), self.location(storage, j + 1));
            if before != Location::PagedOut && after == Location::PagedOut {
                copied = true;
            } else if before != Location::Resident && after == Location::Resident {
                let mut exits = self.plan.steps[j + 1..].iter().filter_map(|step| match *step {
                    Step::Free(s) if s == storage => Some(false),
                    Step::PageOut(s) if s == storage => Some(true),
                    _ => None,
                });
                copied = copied && exits.next() == Some(true);
            }
        }
        copied
    }

    fn residents_at(&self, i: usize) -> Vec<(usize, Resident, u64)> {
        let step = self.plan.steps[i];
        let bytes = |storage: StorageId| self.problem.storages[storage].bytes;
        let mut found = Vec::new();
        for storage in self.problem.storages.keys() {
            let creates = match step {
                Step::Compute(op) | Step::Recompute(op) => self.creator(storage) == Some(op),
                Step::PageIn(moved) => moved == storage,
                Step::Free(_) | Step::PageOut(_) => false,
            };
            let is_external = self.problem.storages[storage].role == StorageRole::External;
            let leaves = match step {
                Step::Free(moved) => moved == storage,
                Step::PageOut(moved) => moved == storage && self.is_copied(storage, i),
                _ => false,
            };
            if self.location(storage, i) == Location::Resident && !leaves {
                let became = |&j: &usize| self.location(storage, j) != Location::Resident;
                let began = (0..i).rev().find(became).expect("it became so at some step");
                found.push((began, Resident::Storage(storage), bytes(storage)));
            }
            if creates && !is_external {
                found.push((i, Resident::Storage(storage), bytes(storage)));
            }
        }
        if let Step::Compute(op) | Step::Recompute(op) = step {
            found.push((i, Resident::Workspace(op), self.problem.ops[op].workspace));
        }
        found.retain(|&(_, _, bytes)| bytes > 0);
        found
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
