//! The search: A* over states, the cheapest way to have every op run.
//!
//! A state is what can be read and which ops ran. Storages stay until a run lacks room, and then a smallest choice of them leaves: whatever
//! leaves sooner, or beside others that suffice, leaves a state that another one contains, at the same cost. What nobody awaits leaves at
//! once. Of two states with the same ops run, one that holds all the other holds and costs no more replaces it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use remat_plan::StopReason;
use rustc_hash::FxHashMap;

use super::rules::{Counts, Ops, Outlook, Rules, State, Tensors};

/// A state that a plan came to.
pub(super) struct Node {
    pub(super) state: State,
    /// Bytes of what is resident.
    bytes: u64,
    /// What the runs so far add to the objective.
    pub(super) cost: u64,
    /// The state before, and the op that ran there after these tensors had left; absent at the start.
    pub(super) from: Option<(u32, usize, Tensors)>,
    /// Whether another state replaces it.
    is_replaced: bool,
}

/// How many states may be made, all searches together.
pub(super) struct Effort<'a> {
    /// States made, those that others replace included.
    pub(super) steps: u64,
    /// The most.
    pub(super) most: u64,
    /// Asked now and then with the steps so far: whether, and why, to stop.
    pub(super) interruption: &'a dyn Fn(u64) -> Option<StopReason>,
}

impl Effort<'_> {
    fn stop(&mut self) -> Option<StopReason> {
        if self.steps >= self.most {
            return Some(StopReason::StepLimit);
        }
        (self.interruption)(self.steps)
    }
}

/// How a search ended.
pub(super) enum End {
    /// With the cheapest plan within the limits, whose last state this is.
    Found(u32),
    /// No plan keeps the limits. With a larger budget, but one below this, there is none either.
    None(u64),
    /// Too early: no plan is cheaper than this.
    Stopped(StopReason, u64),
}

/// A search for one budget.
pub(super) struct Search<'a> {
    rules: &'a Rules,
    budget: u64,
    /// The most that a plan may cost.
    longest: u64,
    pub(super) nodes: Vec<Node>,
    outlooks: FxHashMap<Ops, Outlook>,
    /// For the ops that ran and how often: the states that none replaces.
    known: FxHashMap<(Ops, Counts), Vec<u32>>,
    /// States to go on from: cheapest plans first, of these those with the fewest ops to run.
    open: BinaryHeap<Reverse<(u64, u32, Reverse<u32>)>>,
    /// The smallest amount above the budget that would have allowed more.
    blocked: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(rules: &'a Rules, budget: u64, longest: u64) -> Self {
        let mut search = Self {
            rules,
            budget,
            longest,
            nodes: Vec::new(),
            outlooks: FxHashMap::default(),
            known: FxHashMap::default(),
            open: BinaryHeap::new(),
            blocked: u64::MAX,
        };
        search.reach(rules.start(), 0, None);
        search
    }

    /// The cheapest plan within budget and longest cost.
    pub(super) fn run(&mut self, effort: &mut Effort<'_>) -> End {
        while let Some(Reverse((least, left, Reverse(index)))) = self.open.pop() {
            if self.nodes[index as usize].is_replaced {
                continue;
            }
            if left == 0 {
                return End::Found(index);
            }
            if let Some(reason) = effort.stop() {
                // It is still to be looked at.
                self.open.push(Reverse((least, left, Reverse(index))));
                return End::Stopped(reason, least);
            }
            effort.steps += self.expand(index);
        }
        End::None(self.blocked)
    }

    /// Some plan within the limits, in haste: after [`End::Stopped`], from the states with the fewest ops to run.
    pub(super) fn dive(&mut self, effort: &mut Effort<'_>) -> Option<u32> {
        let open = std::mem::take(&mut self.open);
        let hasty =
            |Reverse((least, left, index)): Reverse<(u64, u32, Reverse<u32>)>| Reverse((u64::from(left), least, index));
        let mut open: BinaryHeap<_> = open.into_iter().map(hasty).collect();
        while let Some(Reverse((left, _, Reverse(index)))) = open.pop() {
            if left == 0 {
                return Some(index);
            }
            if effort.stop().is_some() {
                break;
            }
            if !self.nodes[index as usize].is_replaced {
                effort.steps += self.expand(index);
                open.extend(self.open.drain().map(hasty));
            }
        }
        None
    }

    /// All states after one more run; how many that were.
    fn expand(&mut self, index: u32) -> u64 {
        let node = &self.nodes[index as usize];
        let (state, bytes, cost) = (node.state, node.bytes, node.cost);
        let rules = self.rules;
        let outlook = *self.outlook(state.ran);
        let allowed = (0..rules.ops.len()).filter(|&op| rules.may_run(&state, op, &outlook));
        let allowed: Vec<usize> = allowed.collect();
        let fits = |op: usize| bytes.saturating_add(rules.ops[op].takes) <= self.budget;
        if let Some(&op) = allowed.iter().find(|&&op| fits(op) && rules.is_best_now(&state, op)) {
            self.run_op(index, &state, cost, op, 0);
            return 1;
        }
        let mut made = 1;
        for op in allowed {
            let takes = bytes.saturating_add(rules.ops[op].takes);
            made += 1;
            if takes <= self.budget {
                self.run_op(index, &state, cost, op, 0);
                continue;
            }
            let mut evictable: Vec<(u64, Tensors)> = rules
                .evictable(state.there, op)
                .map(|storage| (storage.bytes, storage.all))
                .collect();
            evictable.sort_unstable_by_key(|&(bytes, all)| (Reverse(bytes), all));
            let mut choices = Choices {
                excess: takes - self.budget,
                evictable: &evictable,
                found: Vec::new(),
                nearest: u64::MAX,
            };
            choices.choose(0, 0, 0);
            self.blocked = self.blocked.min(self.budget.saturating_add(choices.nearest));
            made += choices.found.len() as u64;
            for leaving in choices.found {
                self.run_op(index, &state, cost, op, leaving);
            }
        }
        made
    }

    fn outlook(&mut self, ran: Ops) -> &Outlook {
        self.outlooks.entry(ran).or_insert_with(|| self.rules.outlook(ran))
    }

    fn run_op(&mut self, from: u32, state: &State, cost: u64, op: usize, leaving: Tensors) {
        let held = State {
            there: state.there & !leaving,
            ..*state
        };
        let next = self.rules.after(&held, op);
        let cost = cost.saturating_add(self.rules.ops[op].cost);
        self.reach(next, cost, Some((from, op, leaving)));
    }

    /// Takes in a state, unless another one replaces it or no plan within the limits goes through it.
    fn reach(&mut self, state: State, cost: u64, from: Option<(u32, usize, Tensors)>) {
        let rules = self.rules;
        let outlook = *self.outlook(state.ran);
        let state = State {
            there: rules.without_unawaited(state.there, outlook.awaited),
            ..state
        };
        let Some(rest) = rules.rest(&state, &outlook) else {
            return;
        };
        let least = cost.saturating_add(rest);
        if least > self.longest {
            return;
        }
        let nodes = &mut self.nodes;
        let alike = self.known.entry((state.ran, state.counts)).or_default();
        let replaces = |a: &Node, there: Tensors, cost: u64| there & !a.state.there == 0 && a.cost <= cost;
        if alike
            .iter()
            .any(|&other| replaces(&nodes[other as usize], state.there, cost))
        {
            return;
        }
        let node = Node {
            bytes: rules.resident(state.there),
            state,
            cost,
            from,
            is_replaced: false,
        };
        alike.retain(|&other| {
            let other = &mut nodes[other as usize];
            other.is_replaced = replaces(&node, other.state.there, other.cost);
            !other.is_replaced
        });
        let Ok(index) = u32::try_from(nodes.len()) else { return };
        alike.push(index);
        let left = (rules.all & !state.ran).count_ones();
        nodes.push(node);
        self.open.push(Reverse((least, left, Reverse(index))));
    }

    /// The ops that run on the way to a state, each with the tensors that leave before it.
    pub(super) fn way(&self, end: u32) -> Vec<(usize, Tensors)> {
        let mut way = Vec::new();
        let mut next = self.nodes[end as usize].from;
        while let Some((from, op, leaving)) = next {
            way.push((op, leaving));
            next = self.nodes[from as usize].from;
        }
        way.reverse();
        way
    }
}

/// All smallest choices of storages that make room.
struct Choices<'a> {
    excess: u64,
    /// Bytes and tensors of each, the largest first.
    evictable: &'a [(u64, Tensors)],
    found: Vec<Tensors>,
    /// By how much the choice misses that misses by least.
    nearest: u64,
}

impl Choices<'_> {
    /// Goes on from a choice among the first `next`. Its last member is its smallest, and without that one it did not suffice.
    fn choose(&mut self, next: usize, chosen: Tensors, bytes: u64) {
        if bytes >= self.excess {
            self.found.push(chosen);
            return;
        }
        self.nearest = self.nearest.min(self.excess - bytes);
        for (index, &(size, all)) in self.evictable.iter().enumerate().skip(next) {
            self.choose(index + 1, chosen | all, bytes + size);
        }
    }
}
