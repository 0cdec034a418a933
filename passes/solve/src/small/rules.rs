//! A problem in sets of bits: what a run asks for, what it leaves behind, and what the rest of a plan takes at least.

use remat_plan::{Objective, OpId, OrderMode, Problem, StorageId, StorageRole, Structure, TensorId};

/// Ops of the largest problem, views included.
const MOST_OPS: usize = 32;
/// Tensors of the largest problem.
const MOST_TENSORS: usize = 64;
/// Ops of the largest problem that are [scheduled](Structure::scheduled).
const MOST_SCHEDULED: usize = 24;
/// The largest limit on computes that is counted.
const MOST_COMPUTES: u32 = 15;

/// Ops, one bit each.
pub(super) type Ops = u32;
/// Tensors, one bit each.
pub(super) type Tensors = u64;
/// Runs of each op, four bits each.
pub(super) type Counts = u128;

/// The members of a set, ascending.
pub(super) fn members(set: u64) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let first = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
        rest &= rest - 1;
        Some(first)
    })
}

/// Whether a problem is of memory and one sum alone, time or energy.
pub(super) fn is_of_one_sum(problem: &Problem) -> bool {
    let is_one_sum = match problem.objective {
        Objective::Time => true,
        Objective::Energy => problem.deadline.is_none(),
        Objective::Peak => false,
    };
    problem.paging.is_none() && is_one_sum
}

/// Whether a problem [of one sum](is_of_one_sum) is small enough.
pub(super) fn is_small(problem: &Problem) -> bool {
    let is_counted = problem.max_computes.is_none_or(|most| most <= MOST_COMPUTES);
    let has_bits = problem.ops.len() <= MOST_OPS && problem.tensors.len() <= MOST_TENSORS;
    let is_few = || Structure::of(problem).scheduled().count() <= MOST_SCHEDULED;
    is_of_one_sum(problem) && is_counted && has_bits && is_few()
}

/// What a state of a plan is as far as it matters for the rest: two plans that come to the same state can go on alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// The tensors that can be read. A storage is resident if its root can.
    pub(super) there: Tensors,
    /// The ops that ran.
    pub(super) ran: Ops,
    /// How often each op ran that creates memory, where that is limited.
    pub(super) counts: Counts,
}

/// One op.
pub(super) struct Op {
    /// What a run adds to the objective.
    pub(super) cost: u64,
    /// Bytes that a run takes on top of what is resident: results, second instances and workspace.
    pub(super) takes: u64,
    pub(super) reads: Tensors,
    defines: Tensors,
    /// The roots of the storages it creates.
    makes: Tensors,
    /// Its other results, each with the root of its storage.
    views: Vec<(Tensors, Tensors)>,
    /// The roots of the storages that it reads: none may leave before it runs.
    holds: Tensors,
    may_run_again: bool,
    /// The ops after which it never runs.
    never_after: Ops,
    /// The ops that run before its first run.
    after: Ops,
    /// Whether others never run after it.
    forbids: bool,
    /// Whether anybody reads what it defines.
    is_read: bool,
    /// Whether a part of what it makes takes memory for good.
    stays: bool,
}

impl Op {
    /// The roots of the storages that it reads or looks into.
    fn roots(&self) -> Tensors {
        self.views.iter().fold(self.holds, |set, view| set | view.1)
    }
}

/// One storage.
pub(super) struct Storage {
    pub(super) id: StorageId,
    pub(super) root: Tensors,
    /// Everything that is lost with it.
    pub(super) all: Tensors,
    pub(super) bytes: u64,
    /// Whether it may be freed.
    pub(super) is_transient: bool,
}

/// What follows from the ops that ran, whatever is resident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// What the first runs to come add to the objective.
    to_come: u64,
    /// What they read.
    read: Tensors,
    /// What may still be read, by them or by runs that bring back what they read.
    pub(super) awaited: Tensors,
}

/// A small problem.
pub(super) struct Rules {
    pub(super) ops: Vec<Op>,
    pub(super) storages: Vec<Storage>,
    producer: Vec<Option<usize>>,
    most: Option<u32>,
    /// All ops.
    pub(super) all: Ops,
    /// What can be read before anything runs.
    start: Tensors,
}

fn bit(tensor: TensorId) -> Tensors {
    1 << tensor.index()
}

impl Rules {
    /// A problem that [is small](is_small).
    pub(super) fn of(problem: &Problem) -> Self {
        let root = |tensor: TensorId| problem.storages[problem.tensors[tensor].storage].root;
        let creates = |id: OpId| problem.ops[id].defines.iter().any(|&tensor| root(tensor) == tensor);
        let all_read = problem
            .ops
            .iter()
            .flat_map(|op| &op.reads)
            .fold(0, |set, &tensor| set | bit(tensor));
        let op = |id: OpId| {
            let entry = &problem.ops[id];
            let set = |tensors: &[TensorId]| tensors.iter().fold(0, |set, &tensor| set | bit(tensor));
            let own = |&&tensor: &&TensorId| root(tensor) == tensor;
            let bytes = |&tensor: &TensorId| {
                let storage = &problem.storages[problem.tensors[tensor].storage];
                let counts = storage.role != StorageRole::External;
                if counts { storage.bytes } else { 0 }
            };
            let makes = entry.defines.iter().filter(own);
            let views = entry.defines.iter().filter(|tensor| !own(tensor));
            let views: Vec<_> = views.map(|&tensor| (bit(tensor), bit(root(tensor)))).collect();
            let pairs = || problem.anti_dependences.iter();
            let never_after = pairs().filter(|pair| pair.before == id);
            let before = problem.ops.keys().take(id.index()).filter(|&other| creates(other));
            let is_ordered = problem.order == OrderMode::Fixed && creates(id);
            let cost = match problem.objective {
                Objective::Energy => entry.energy_pj,
                Objective::Time | Objective::Peak => entry.duration,
            };
            Op {
                cost,
                takes: makes.clone().map(bytes).sum::<u64>() + entry.workspace,
                reads: set(&entry.reads),
                defines: set(&entry.defines),
                makes: makes.fold(0, |set, &tensor| set | bit(tensor)),
                holds: entry.reads.iter().fold(0, |set, &tensor| set | bit(root(tensor))),
                forbids: pairs().any(|pair| pair.after == id),
                is_read: entry.defines.iter().any(|tensor| all_read & bit(*tensor) != 0),
                stays: entry.defines.iter().filter(own).any(|&tensor| {
                    let storage = &problem.storages[problem.tensors[tensor].storage];
                    storage.role == StorageRole::LiveOut && storage.bytes > 0
                }),
                views,
                may_run_again: entry.recomputable,
                never_after: never_after.fold(0, |set, pair| set | 1 << pair.after.index()),
                after: if is_ordered {
                    before.fold(0, |set, other| set | 1 << other.index())
                } else {
                    0
                },
            }
        };
        let storages = problem.storages.iter_enumerated().map(|(id, entry)| Storage {
            id,
            root: bit(entry.root),
            all: problem
                .tensors
                .iter_enumerated()
                .filter(|(_, tensor)| tensor.storage == id)
                .fold(0, |set, (tensor, _)| set | bit(tensor)),
            bytes: if entry.role == StorageRole::External {
                0
            } else {
                entry.bytes
            },
            is_transient: entry.role == StorageRole::Transient,
        });
        let outside = problem.tensors.iter_enumerated().filter(|(_, t)| t.producer.is_none());
        Self {
            ops: problem.ops.keys().map(op).collect(),
            storages: storages.collect(),
            producer: problem.tensors.iter().map(|t| t.producer.map(OpId::index)).collect(),
            most: problem.max_computes,
            all: problem.ops.keys().fold(0, |set, id| set | 1 << id.index()),
            start: outside.fold(0, |set, (tensor, _)| set | bit(tensor)),
        }
    }

    /// The same where runs cost nothing.
    pub(super) fn at_no_cost(mut self) -> Self {
        for op in &mut self.ops {
            op.cost = 0;
        }
        self
    }

    /// Nothing ran.
    pub(super) fn start(&self) -> State {
        State {
            there: self.start,
            ran: 0,
            counts: 0,
        }
    }

    /// Bytes of what is resident.
    pub(super) fn resident(&self, there: Tensors) -> u64 {
        let resident = self.storages.iter().filter(|storage| there & storage.root != 0);
        resident.map(|storage| storage.bytes).sum()
    }

    /// What follows from the ops that ran.
    pub(super) fn outlook(&self, ran: Ops) -> Outlook {
        let of = |set: Ops| members(u64::from(set)).map(|op| &self.ops[op]);
        let left = self.all & !ran;
        let read = of(left).fold(0, |set, op| set | op.reads);
        let mut awaited = of(left).fold(read, |set, op| set | op.roots());
        loop {
            let again = members(u64::from(ran))
                .map(|op| &self.ops[op])
                .filter(|op| op.may_run_again && op.never_after & ran == 0 && op.defines & awaited != 0);
            let more = again.fold(awaited, |set, op| set | op.reads | op.roots());
            if more == awaited {
                break;
            }
            awaited = more;
        }
        Outlook {
            to_come: of(left).fold(0, |sum: u64, op| sum.saturating_add(op.cost)),
            read,
            awaited,
        }
    }

    fn may_run_again(&self, state: &State, index: usize) -> bool {
        let op = &self.ops[index];
        let is_within = match self.most {
            Some(most) if op.makes != 0 => (state.counts >> (4 * index) & 15) < u128::from(most),
            _ => true,
        };
        op.may_run_again && op.never_after & state.ran == 0 && is_within
    }

    /// What the rest of every plan adds to the objective at least; `None` where no plan goes on from here.
    ///
    /// All ops that did not run have to. What they read and is gone has to be made again, each op once, with what that reads in turn.
    pub(super) fn rest(&self, state: &State, outlook: &Outlook) -> Option<u64> {
        let mut again: Ops = 0;
        let mut sum = outlook.to_come;
        let mut missing = outlook.read & !state.there;
        while missing != 0 {
            let tensor = missing.trailing_zeros() as usize;
            missing &= missing - 1;
            let producer = self.producer[tensor]?;
            let ops = 1 << producer;
            if state.ran & ops == 0 || again & ops != 0 {
                continue;
            }
            if !self.may_run_again(state, producer) {
                return None;
            }
            again |= ops;
            sum = sum.saturating_add(self.ops[producer].cost);
            missing |= self.ops[producer].reads & !state.there;
        }
        Some(sum)
    }

    /// Whether a run of the op is allowed and of any use here, its memory apart.
    pub(super) fn may_run(&self, state: &State, index: usize, outlook: &Outlook) -> bool {
        let op = &self.ops[index];
        if op.reads & !state.there != 0 {
            return false;
        }
        if state.ran >> index & 1 == 0 {
            return op.after & !state.ran == 0 && op.never_after & state.ran == 0;
        }
        let is_gone = (self.there_after(state.there, index) & !state.there) & outlook.awaited != 0;
        is_gone && self.may_run_again(state, index)
    }

    /// Whether no plan loses anything by running the op right now, if it fits. Either a run costs nothing and what it makes may leave and come
    /// back; or it is the first run, nobody reads what it makes, and what it reads may go the sooner.
    pub(super) fn is_best_now(&self, state: &State, index: usize) -> bool {
        let op = &self.ops[index];
        if op.forbids || op.stays {
            return false;
        }
        let may_always_run = op.may_run_again && op.never_after == 0 && (self.most.is_none() || op.makes == 0);
        let is_first = state.ran >> index & 1 == 0;
        op.cost == 0 && may_always_run || is_first && !op.is_read
    }

    fn there_after(&self, there: Tensors, index: usize) -> Tensors {
        let op = &self.ops[index];
        let there = there | op.makes;
        let views = op.views.iter().filter(|view| there & view.1 != 0);
        views.fold(there, |set, view| set | view.0)
    }

    /// The state after a run, what nobody awaits included.
    pub(super) fn after(&self, state: &State, index: usize) -> State {
        let counts = self.most.is_some() && self.ops[index].makes != 0;
        State {
            there: self.there_after(state.there, index),
            ran: state.ran | 1 << index,
            counts: state.counts + (Counts::from(counts) << (4 * index)),
        }
    }

    /// What can still be read once all storages have left that nobody awaits.
    pub(super) fn without_unawaited(&self, there: Tensors, awaited: Tensors) -> Tensors {
        let leave = |storage: &&Storage| storage.is_transient && storage.all & awaited == 0;
        self.storages
            .iter()
            .filter(leave)
            .fold(there, |there, storage| there & !storage.all)
    }

    /// The storages that may leave before a run of the op, and would leave room.
    pub(super) fn evictable(&self, there: Tensors, index: usize) -> impl Iterator<Item = &Storage> {
        let needed = self.ops[index].holds;
        self.storages.iter().filter(move |storage| {
            storage.is_transient && storage.bytes > 0 && there & storage.root != 0 && needed & storage.root == 0
        })
    }
}
