//! What bringing a storage back costs, in the senses of [`CostTerm`], and when that changes.

use remat_plan::{OpId, StorageId, TensorId};
use typed_index_collections::TiVec;

use super::classes::Classes;
use crate::heuristic::CostTerm;
use crate::trace::Trace;

/// The graph of the storages called so far, and the cost of each.
#[derive(Debug)]
pub(super) struct Costs {
    term: CostTerm,
    /// Time of the distinct ops that define tensors of the storage.
    own: TiVec<StorageId, u64>,
    parents: TiVec<StorageId, Vec<StorageId>>,
    children: TiVec<StorageId, Vec<StorageId>>,
    /// Whether the storage exists but is not in memory.
    absent: TiVec<StorageId, bool>,
    classes: Classes,
    /// The last cost that was worked out, unless something near the storage changed since.
    known: TiVec<StorageId, Option<u64>>,
    /// Marks of the current walk.
    visited: TiVec<StorageId, u32>,
    seen_class: Vec<u32>,
    walk: u32,
    stack: Vec<StorageId>,
}

/// Which way a walk goes.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl Costs {
    pub(super) fn new(term: CostTerm, storages: usize) -> Self {
        let lists = || TiVec::from(vec![Vec::new(); storages]);
        Self {
            term,
            own: TiVec::from(vec![0; storages]),
            parents: lists(),
            children: lists(),
            absent: TiVec::from(vec![false; storages]),
            classes: Classes::new(storages),
            known: TiVec::from(vec![None; storages]),
            visited: TiVec::from(vec![0; storages]),
            seen_class: Vec::new(),
            walk: 0,
            stack: Vec::new(),
        }
    }

    /// The storages that ops read which define tensors of this one; with repetitions.
    pub(super) fn parents(&self, storage: StorageId) -> &[StorageId] {
        &self.parents[storage]
    }

    /// The storages with tensors that ops define which read this one; with repetitions.
    pub(super) fn children(&self, storage: StorageId) -> &[StorageId] {
        &self.children[storage]
    }

    /// An op is called for the first time: it becomes part of the graph.
    pub(super) fn call(&mut self, trace: &Trace, op: OpId) {
        let entry = &trace.ops[op];
        let looks_into_absent = |&result: &TensorId| self.absent[trace.tensors[result].storage];
        if self.term != CostTerm::Classes && entry.results.iter().any(looks_into_absent) {
            // A view of what is not in memory: the cost of an absent storage changes, and walks find new ways through it.
            self.known.iter_mut().for_each(|cost| *cost = None);
        }
        for (index, &result) in entry.results.iter().enumerate() {
            let storage = trace.tensors[result].storage;
            let earlier = entry.results[..index].iter();
            if !earlier.clone().any(|&other| trace.tensors[other].storage == storage) {
                self.own[storage] += entry.duration;
            }
            self.known[storage] = None;
            for &argument in &entry.arguments {
                let parent = trace.tensors[argument].storage;
                if parent != storage {
                    self.parents[storage].push(parent);
                    self.children[parent].push(storage);
                    self.known[parent] = None;
                    self.join(storage, parent);
                    self.classes.touch(storage);
                    self.classes.touch(parent);
                }
            }
        }
    }

    /// Two storages become neighbours. Walks pass between them where both are absent, so what is remembered must be forgotten together
    /// from now on; the classes of `h_DTR_eq` join at evictions only.
    fn join(&mut self, a: StorageId, b: StorageId) {
        if self.term == CostTerm::Classes {
            return;
        }
        if let (Some(a), Some(b)) = (self.classes.class(a), self.classes.class(b)) {
            self.classes.union(a, b);
        }
    }

    /// A storage leaves memory.
    pub(super) fn evicted(&mut self, storage: StorageId) {
        self.absent[storage] = true;
        if matches!(self.term, CostTerm::Local | CostTerm::None) {
            return;
        }
        let mut class = self.classes.insert(storage, self.own[storage]);
        for index in 0..self.parents[storage].len() + self.children[storage].len() {
            let neighbour = self.neighbour(storage, index);
            if let Some(other) = self.classes.class(neighbour) {
                class = self.classes.union(class, other);
            }
        }
        self.forget_around(class);
    }

    /// A storage is in memory, for the first time or again.
    pub(super) fn returned(&mut self, storage: StorageId) {
        self.absent[storage] = false;
        self.known[storage] = None;
        if let Some(class) = self.classes.remove(storage) {
            self.forget_around(class);
        }
        for index in 0..self.parents[storage].len() + self.children[storage].len() {
            let neighbour = self.neighbour(storage, index);
            self.known[neighbour] = None;
            self.classes.touch(neighbour);
        }
    }

    /// A storage that is not in memory will never come back.
    pub(super) fn forgotten(&mut self, storage: StorageId) {
        self.returned(storage);
    }

    fn neighbour(&self, storage: StorageId, index: usize) -> StorageId {
        let parents = &self.parents[storage];
        parents
            .get(index)
            .copied()
            .unwrap_or_else(|| self.children[storage][index - parents.len()])
    }

    /// The costs of everything in memory next to the class are to be worked out anew. Members that no longer lie next to anything in
    /// memory are passed over from now on, so that what was evicted long ago costs nothing.
    fn forget_around(&mut self, class: u32) {
        let mut border = self.classes.take_border(class);
        self.walk += 1;
        border.retain(|&member| {
            if std::mem::replace(&mut self.visited[member], self.walk) == self.walk
                || self.classes.class(member) != Some(class)
            {
                return false;
            }
            let mut is_border = false;
            for &neighbour in self.parents[member].iter().chain(&self.children[member]) {
                if !self.absent[neighbour] {
                    self.known[neighbour] = None;
                    is_border = true;
                }
            }
            is_border
        });
        self.classes.restore(class, border);
    }

    /// What bringing the storage back would cost if it were evicted now.
    pub(super) fn of(&mut self, storage: StorageId) -> u64 {
        match self.term {
            CostTerm::None => return 1,
            CostTerm::Local => return self.own[storage],
            CostTerm::Neighbourhood | CostTerm::Ancestors | CostTerm::Classes => {}
        }
        if let Some(cost) = self.known[storage] {
            return cost;
        }
        let own = self.own[storage];
        let cost = match self.term {
            CostTerm::Classes => own + self.adjacent_classes(storage),
            CostTerm::Neighbourhood => {
                own + self.closure(storage, Direction::Up) + self.closure(storage, Direction::Down)
            }
            CostTerm::Ancestors | CostTerm::Local | CostTerm::None => own + self.closure(storage, Direction::Up),
        };
        self.known[storage] = Some(cost);
        cost
    }

    /// Sum over the distinct classes next to the storage.
    fn adjacent_classes(&mut self, storage: StorageId) -> u64 {
        self.walk += 1;
        let mut sum = 0;
        for index in 0..self.parents[storage].len() + self.children[storage].len() {
            let neighbour = self.neighbour(storage, index);
            let Some(class) = self.classes.class(neighbour) else {
                continue;
            };
            if self.seen_class.len() <= class as usize {
                self.seen_class.resize(class as usize + 1, 0);
            }
            if std::mem::replace(&mut self.seen_class[class as usize], self.walk) != self.walk {
                sum += self.classes.cost(class);
            }
        }
        sum
    }

    /// Sum over the storages that are reached in one direction through absent storages only.
    fn closure(&mut self, storage: StorageId, direction: Direction) -> u64 {
        self.walk += 1;
        self.visited[storage] = self.walk;
        self.stack.push(storage);
        let mut sum = 0;
        while let Some(at) = self.stack.pop() {
            let next = match direction {
                Direction::Up => &self.parents[at],
                Direction::Down => &self.children[at],
            };
            for &storage in next {
                if self.absent[storage] && std::mem::replace(&mut self.visited[storage], self.walk) != self.walk {
                    sum += self.own[storage];
                    self.stack.push(storage);
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::trace::TraceOp;

    /// One op: time, how far back its arguments lie, and whether it looks into the first one's memory.
    type Draw = (u64, Vec<Index>, bool);

    fn trace(draws: &[Draw]) -> Trace {
        let mut trace = Trace::default();
        trace.call(TraceOp::new("source".to_owned(), 1, Vec::new()), &[(1, None)]);
        for (duration, arguments, is_view) in draws {
            let count = trace.tensors.len();
            let argument = |index: &Index| TensorId::new(count - 1 - index.index(count.min(6)));
            let arguments: Vec<TensorId> = arguments.iter().map(argument).collect();
            let storage = is_view.then(|| trace.tensors[arguments[0]].storage);
            trace.call(TraceOp::new("op".to_owned(), *duration, arguments), &[(1, storage)]);
        }
        trace
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..remat_testing::cases(256) })]

        /// Whatever is called, evicted and brought back: a remembered cost is the cost.
        #[test]
        fn remembered_costs_are_current(
            draws in prop::collection::vec((1u64..50, prop::collection::vec(any::<Index>(), 1..4), prop::bool::weighted(0.2)), 1..40),
            moves in prop::collection::vec(prop::collection::vec(any::<Index>(), 0..4), 41),
        ) {
            let trace = trace(&draws);
            for term in [CostTerm::Neighbourhood, CostTerm::Ancestors, CostTerm::Classes] {
                let mut costs = Costs::new(term, trace.storages.len());
                let mut present: Vec<StorageId> = Vec::new();
                let mut absent: Vec<StorageId> = Vec::new();
                for (op, moves) in trace.ops.keys().zip(&moves) {
                    costs.call(&trace, op);
                    let storage = trace.tensors[trace.ops[op].results[0]].storage;
                    if !present.contains(&storage) && !absent.contains(&storage) {
                        costs.returned(storage);
                        present.push(storage);
                    }
                    for index in moves {
                        let chosen = index.index(present.len() + absent.len());
                        if chosen < present.len() {
                            let storage = present.swap_remove(chosen);
                            costs.evicted(storage);
                            absent.push(storage);
                        } else {
                            let storage = absent.swap_remove(chosen - present.len());
                            costs.returned(storage);
                            present.push(storage);
                        }
                    }
                    for &storage in &present {
                        let remembered = costs.of(storage);
                        costs.known[storage] = None;
                        prop_assert_eq!(remembered, costs.of(storage));
                    }
                }
            }
        }
    }
}
