//! Dijkstra's algorithm over all states that plans can reach, as the rules of the checker define them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use remat_plan::{OpId, Problem, StorageId, StorageRole, TensorId};
use rustc_hash::FxHashMap;

/// Which plans count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// All, in any order.
    AllPlans,
    /// Those whose first runs of ops that create memory follow the reference order.
    FixedOrder,
    /// Of these, those in which also the reruns between two first runs follow it, each op at most once, with none after the last.
    StageForm,
}

/// What a plan did so far, as far as it matters for what it may still do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct State {
    /// The tensors that are there; a storage is resident if its root is.
    there: u64,
    /// Runs of each op, four bits each; where no limit is set, whether it ran.
    runs: u64,
    /// In stage form: one more than the last op that ran again since the last first run.
    latest: u8,
}

impl State {
    fn runs_of(self, op: usize) -> u32 {
        (self.runs >> (4 * op) & 15) as u32
    }
}

struct Op {
    duration: u64,
    workspace: u64,
    recomputable: bool,
    reads: u64,
    /// The roots of the storages it creates, with what they count.
    roots: Vec<(u64, u64)>,
    /// Views, each with the root of its storage.
    views: Vec<(u64, u64)>,
}

/// The least duration of the plans of this kind that keep the problem's budget and deadline; `None` where there is none. The problem's own order
/// plays no part.
///
/// # Panics
/// If the problem has more than 16 ops, more than 64 tensors, a limit above 15 on computes, or a second memory.
#[must_use]
pub fn least(problem: &Problem, space: Space) -> Option<u64> {
    let least = Search::new(problem, space).run();
    least.filter(|&least| problem.deadline.is_none_or(|deadline| least <= deadline))
}

struct Search<'a> {
    problem: &'a Problem,
    space: Space,
    ops: Vec<Op>,
    most: Option<u32>,
    /// For each storage that counts: its root, all its tensors, its bytes, and whether it may be freed.
    storages: Vec<(u64, u64, u64, bool)>,
    best: FxHashMap<State, u64>,
    queue: BinaryHeap<Reverse<(u64, State)>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, space: Space) -> Self {
        assert!(
            problem.ops.len() <= 16 && problem.tensors.len() <= 64,
            "too large to try everything"
        );
        assert!(
            problem.max_computes.is_none_or(|most| most <= 15),
            "counts have four bits"
        );
        assert!(problem.paging.is_none(), "one memory only");
        let bit = |tensor: TensorId| 1u64 << tensor.index();
        let root_of = |tensor: TensorId| problem.storages[problem.tensors[tensor].storage].root;
        let op = |id: OpId| {
            let entry = &problem.ops[id];
            let (roots, views): (Vec<TensorId>, Vec<TensorId>) =
                entry.defines.iter().partition(|&&tensor| root_of(tensor) == tensor);
            let bytes = |tensor: TensorId| {
                let storage = &problem.storages[problem.tensors[tensor].storage];
                if storage.role == StorageRole::External {
                    0
                } else {
                    storage.bytes
                }
            };
            Op {
                duration: entry.duration,
                workspace: entry.workspace,
                recomputable: entry.recomputable,
                reads: entry.reads.iter().fold(0, |set, &tensor| set | bit(tensor)),
                roots: roots.iter().map(|&tensor| (bit(tensor), bytes(tensor))).collect(),
                views: views
                    .iter()
                    .map(|&tensor| (bit(tensor), bit(root_of(tensor))))
                    .collect(),
            }
        };
        let storage = |id: StorageId| {
            let entry = &problem.storages[id];
            let tensors = problem.tensors.iter_enumerated();
            let all = tensors
                .filter(|(_, tensor)| tensor.storage == id)
                .fold(0, |set, (tensor, _)| set | bit(tensor));
            (bit(entry.root), all, entry.bytes, entry.role == StorageRole::Transient)
        };
        let counts = |id: &StorageId| problem.storages[*id].role != StorageRole::External;
        Self {
            problem,
            space,
            ops: problem.ops.keys().map(op).collect(),
            most: problem.max_computes,
            storages: problem.storages.keys().filter(counts).map(storage).collect(),
            best: FxHashMap::default(),
            queue: BinaryHeap::new(),
        }
    }

    fn run(mut self) -> Option<u64> {
        let inputs = self.problem.tensors.iter_enumerated();
        let there = inputs
            .filter(|(_, tensor)| tensor.producer.is_none())
            .fold(0, |set, (id, _)| set | 1 << id.index());
        self.reach(
            0,
            State {
                there,
                ..State::default()
            },
        );
        while let Some(Reverse((duration, state))) = self.queue.pop() {
            if (0..self.ops.len()).all(|op| state.runs_of(op) > 0) {
                return Some(duration);
            }
            if self.best.get(&state).is_some_and(|&known| known < duration) {
                continue;
            }
            for storage in 0..self.storages.len() {
                let (root, all, _, transient) = self.storages[storage];
                if transient && state.there & root != 0 {
                    let there = state.there & !all;
                    self.reach(duration, State { there, ..state });
                }
            }
            for op in 0..self.ops.len() {
                if let Some(next) = self.after(state, op) {
                    self.reach(duration + self.ops[op].duration, next);
                }
            }
        }
        None
    }

    fn reach(&mut self, duration: u64, state: State) {
        let known = self.best.entry(state).or_insert(u64::MAX);
        if duration < *known {
            *known = duration;
            self.queue.push(Reverse((duration, state)));
        }
    }

    /// The state after a run, if the rules allow it and it changes anything.
    fn after(&self, state: State, index: usize) -> Option<State> {
        let op = &self.ops[index];
        let count = state.runs_of(index);
        let again = count > 0;
        let creates = !op.roots.is_empty();
        let limit = self.most.filter(|_| creates);
        let mut pairs = self.problem.anti_dependences.iter();
        if pairs.any(|pair| pair.before.index() == index && state.runs_of(pair.after.index()) > 0) {
            return None;
        }
        if op.reads & !state.there != 0 || again && !op.recomputable || limit.is_some_and(|most| count >= most) {
            return None;
        }
        let latest = if creates {
            self.place(state, index, again)?
        } else {
            state.latest
        };
        let resident = self.storages.iter().filter(|(root, ..)| state.there & root != 0);
        let resident: u64 = resident.map(|&(_, _, bytes, _)| bytes).sum();
        let made: u64 = op.roots.iter().map(|&(_, bytes)| bytes).sum();
        if self
            .problem
            .budget
            .is_some_and(|budget| resident + made + op.workspace > budget)
        {
            return None;
        }
        // What is resident already stays as it is; the second instance lives during the run only.
        let mut there = op.roots.iter().fold(state.there, |set, (root, _)| set | root);
        for &(view, root) in &op.views {
            there |= if there & root != 0 { view } else { 0 };
        }
        if again && there == state.there {
            return None;
        }
        let counted = if limit.is_some() { count + 1 } else { 1 };
        let runs = state.runs & !(15 << (4 * index)) | u64::from(counted) << (4 * index);
        Some(State { there, runs, latest })
    }

    /// What [`State::latest`] is after a run of an op that creates memory, if the order allows the run.
    fn place(&self, state: State, index: usize, again: bool) -> Option<u8> {
        let mut creating = (0..self.ops.len()).filter(|&op| !self.ops[op].roots.is_empty());
        match (self.space, again) {
            (Space::AllPlans, _) | (Space::FixedOrder, true) => Some(0),
            (Space::FixedOrder | Space::StageForm, false) => {
                let in_order = creating.all(|op| op >= index || state.runs_of(op) > 0);
                in_order.then_some(0)
            }
            (Space::StageForm, true) => {
                let one_is_left = creating.any(|op| state.runs_of(op) == 0);
                let rank = u8::try_from(index + 1).ok()?;
                (one_is_left && rank > state.latest).then_some(rank)
            }
        }
    }
}
