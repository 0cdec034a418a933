//! Orders of low peak by a search through the sets of ops that may have run; the one of least peak for graphs with few of these.
//!
//! What an order takes from some point on depends on nothing but the set of ops that ran before. So of all orders of a set the one of least peak
//! suffices, and sets are taken in the order of their peaks: the first one that is complete has the least. While the limits hold, no
//! order is below the peak of the next set. Two things make the sets fewer: where one op is a bottleneck, sets before and behind it add up
//! instead of multiplying; and an op that fits below the peak so far, and leaves no more memory taken than there was, runs at once, since
//! no order is better without that.
//!
//! Source: B. H. Ahn, J. Lee, J. M. Lin, H.-P. Cheng, J. Hou, H. Esmaeilzadeh, *Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural
//! Networks for Edge Devices*, MLSys 2020, section 3.1: the same sets, by dynamic programming and with a budget instead of a queue.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::dense::{Id, Table};
use crate::hash::Map;
use crate::limits::Meter;
use crate::order::network::{Network, NodeId};
use crate::rng::Rng;

/// Most words of sets that are held, of 8 bytes each.
const MOST_WORDS: usize = 1 << 23;
/// Most sets.
const MOST_STATES: usize = 1 << 20;
/// A set counts as one try for each so many nodes, and as one.
const NODES_PER_TRY: usize = 256;

/// What the search found.
pub(crate) struct Searched {
    /// An order with a peak below the one that was given.
    pub(crate) order: Option<Vec<NodeId>>,
    /// No order has a lower peak.
    pub(crate) bound: u64,
}

/// Seeks an order whose peak is below `peak`; none is below `bound`.
pub(crate) fn search(network: &Network, bound: u64, peak: u64, meter: &mut Meter<'_>) -> Searched {
    let mut states = States::new(network, peak);
    states.reach(States::none(bound), &[]);
    while let Some(Reverse(next)) = states.queue.pop() {
        let state = states.all[next.state as usize];
        if states.known.get(state.key) != Some(next.state) {
            continue;
        }
        if next.left == 0 {
            return Searched {
                order: Some(states.way(next.state)),
                bound: state.peak,
            };
        }
        if states.is_full() || meter.is_over() {
            return Searched {
                order: None,
                bound: state.peak,
            };
        }
        states.expand(next.state, meter);
    }
    // Every order comes to a set of that peak.
    Searched {
        order: None,
        bound: peak,
    }
}

/// Seeks an order whose peak is below `peak`, and goes on from so many sets of each size only: those of least peak, of these those with the least
/// memory. Proves nothing.
pub(crate) fn beam(
    network: &Network,
    bound: u64,
    peak: u64,
    width: usize,
    meter: &mut Meter<'_>,
) -> Option<Vec<NodeId>> {
    let mut states = States::new(network, peak);
    states.reach(States::none(bound), &[]);
    let mut by_size: Vec<Vec<Next>> = vec![Vec::new(); network.len() + 1];
    for size in 0..network.len() {
        for Reverse(next) in states.queue.drain() {
            by_size[network.len() - next.left as usize].push(next);
        }
        let mut layer = core::mem::take(&mut by_size[size]);
        layer.retain(|next| states.known.get(states.all[next.state as usize].key) == Some(next.state));
        layer.sort_unstable();
        for next in layer.into_iter().take(width) {
            if states.is_full() || meter.is_over() {
                return None;
            }
            states.expand(next.state, meter);
        }
    }
    let complete = by_size[network.len()].iter().copied();
    let complete = complete.chain(states.queue.iter().map(|&Reverse(next)| next)).min();
    complete.map(|next| states.way(next.state))
}

/// A set of nodes that ran.
#[derive(Clone, Copy)]
struct State {
    /// A number that stands for the set. That two sets have the same by accident has a probability below 2^-80.
    key: u128,
    /// The least peak on the way so far.
    peak: u64,
    /// Bytes of what is there.
    memory: u64,
    /// How many nodes ran.
    len: u32,
    /// The set before, and where the nodes that ran since stand in `runs`.
    from: u32,
    runs: (u32, u32),
}

/// What is to be looked at: least peak first, of these those with the fewest nodes to run, then those with the least memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    peak: u64,
    left: u32,
    memory: u64,
    state: u32,
}

struct States<'a> {
    network: &'a Network,
    /// Only what is below is sought.
    limit: u64,
    words: usize,
    numbers: Table<NodeId, u128>,
    all: Vec<State>,
    /// The sets, one after the other.
    sets: Vec<u64>,
    runs: Vec<NodeId>,
    known: Map<u128, u32>,
    queue: BinaryHeap<Reverse<Next>>,
    /// The set that is being extended.
    set: Vec<u64>,
}

impl<'a> States<'a> {
    fn new(network: &'a Network, limit: u64) -> Self {
        let mut rng = Rng::new(0, 4);
        let mut word = || (rng.unit() * (1u64 << 53) as f64) as u128;
        let words = network.len().div_ceil(64).max(1);
        Self {
            network,
            limit,
            words,
            numbers: network.nodes().map(|_| word() << 80 ^ word() << 40 ^ word()).collect(),
            all: Vec::new(),
            sets: Vec::new(),
            runs: Vec::new(),
            known: Map::default(),
            queue: BinaryHeap::new(),
            set: Vec::new(),
        }
    }

    /// Nothing ran; the peak is at least this.
    fn none(bound: u64) -> State {
        State {
            key: 1,
            peak: bound,
            memory: 0,
            len: 0,
            from: 0,
            runs: (0, 0),
        }
    }

    fn is_full(&self) -> bool {
        self.sets.len() + self.words > MOST_WORDS || self.all.len() >= MOST_STATES
    }

    fn has_run(&self, node: NodeId) -> bool {
        let at = node.position();
        self.set[at / 64] >> (at % 64) & 1 == 1
    }

    fn may_run(&self, node: NodeId) -> bool {
        !self.has_run(node) && self.network.predecessors(node).iter().all(|&other| self.has_run(other))
    }

    /// Bytes that are there once a node has run in the set.
    fn memory_after(&self, memory: u64, node: NodeId) -> u64 {
        let network = self.network;
        let stay = network.values(node).filter(|&value| !network.users(value).is_empty());
        let made: u64 = stay.map(|value| network.bytes(value)).sum();
        let is_last = |&&value: &&_| {
            let mut users = network.users(value).iter();
            users.all(|&user| user == node || self.has_run(user))
        };
        let freed = network.needs(node).iter().filter(is_last);
        let freed: u64 = freed.map(|&value| network.bytes(value)).sum();
        memory + made + network.kept(node) - freed
    }

    fn look_at(&mut self, state: u32) {
        let start = state as usize * self.words;
        self.set.clear();
        self.set.extend_from_slice(&self.sets[start..start + self.words]);
    }

    /// All sets with one more node, and what then runs at once.
    fn expand(&mut self, from: u32, meter: &mut Meter<'_>) {
        let state = self.all[from as usize];
        self.look_at(from);
        let ready: Vec<NodeId> = self.network.nodes().filter(|&node| self.may_run(node)).collect();
        for node in ready {
            self.look_at(from);
            meter.tick(1 + (self.network.len() / NODES_PER_TRY) as u64);
            let mut next = State { from, ..state };
            let mut runs = Vec::new();
            self.run(node, &mut next, &mut runs);
            if next.peak < self.limit {
                self.run_at_once(&mut next, &mut runs);
                self.reach(next, &runs);
            }
        }
    }

    fn run(&mut self, node: NodeId, state: &mut State, runs: &mut Vec<NodeId>) {
        state.peak = state.peak.max(state.memory + self.network.takes(node));
        state.memory = self.memory_after(state.memory, node);
        state.key = state.key.wrapping_add(self.numbers[node]);
        state.len += 1;
        self.set[node.position() / 64] |= 1 << (node.position() % 64);
        runs.push(node);
    }

    /// Runs nodes that fit below the peak and leave no more memory taken, as long as there are any.
    fn run_at_once(&mut self, state: &mut State, runs: &mut Vec<NodeId>) {
        let is_free = |states: &Self, state: &State, node: NodeId| {
            states.may_run(node)
                && state.memory + states.network.takes(node) <= state.peak
                && states.memory_after(state.memory, node) <= state.memory
        };
        // What ran frees others: its successors, and readers of what it reads.
        let mut found = true;
        while found {
            found = false;
            for node in self.network.nodes() {
                if is_free(self, state, node) {
                    self.run(node, state, runs);
                    found = true;
                }
            }
        }
    }

    /// Takes in the set that is being extended, unless it is known with no higher a peak.
    fn reach(&mut self, state: State, runs: &[NodeId]) {
        let known = self.known.get(state.key);
        if known.is_some_and(|known| self.all[known as usize].peak <= state.peak) {
            return;
        }
        self.set.resize(self.words, 0);
        let at = self.all.len() as u32;
        let first = self.runs.len() as u32;
        self.runs.extend_from_slice(runs);
        self.all.push(State {
            runs: (first, self.runs.len() as u32),
            ..state
        });
        self.sets.extend_from_slice(&self.set);
        self.known.insert(state.key, at);
        self.queue.push(Reverse(Next {
            peak: state.peak,
            left: self.network.len() as u32 - state.len,
            memory: state.memory,
            state: at,
        }));
    }

    /// The nodes on the way to a set.
    fn way(&self, end: u32) -> Vec<NodeId> {
        let mut way = Vec::with_capacity(self.network.len());
        let mut state = self.all[end as usize];
        while state.len > 0 {
            let (first, last) = (state.runs.0 as usize, state.runs.1 as usize);
            way.extend(self.runs[first..last].iter().rev());
            state = self.all[state.from as usize];
        }
        way.reverse();
        way
    }
}
