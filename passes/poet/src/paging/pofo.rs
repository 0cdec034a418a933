//! A dynamic program over chains, after POFO (Beaumont, Eyraud-Dubois, Shilova, "Efficient Combination of Rematerialization and
//! Offloading for Training DNNs", NeurIPS 2021).
//!
//! A training step whose forward pass is a chain is cut into a checkpoint `i`, the layers up to a second checkpoint `k`, and the rest.
//! The forward pass runs to `k`; the rest is done with what memory is left; then the part before `k` is done again from `i`. While
//! the rest is done, the result of `i` stays in memory or is moved out and back. Each part is cut further in the same way, so that a
//! table over first layer, last layer and memory has the cheapest way for all of them.
//!
//! Unlike POFO, which hides transfers behind runs under a model of bandwidth, this one prices them: a transfer costs what the objective
//! says of it. Memory is counted in slots, rounded up; the sequence is judged exactly afterwards, and a few larger tables are tried where
//! rounding costs too much.

use remat_plan::{NodeId, ValueId};

use super::candidates::Allowed;
use super::model::{Cost, Model};
use super::sequence::Item;

/// Slots of memory in the table.
const SLOTS: usize = 240;
/// Memory of the tables that are tried, in per cent of the budget.
const BUDGETS: [u64; 6] = [100, 102, 105, 110, 90, 80];
/// Longest forward pass.
const LONGEST: usize = 64;

/// The sequences of all tables for a training step whose forward pass is a chain; none for other problems.
pub(super) fn pofo(model: &Model<'_>, allowed: Allowed) -> Vec<Vec<Item>> {
    let Some(layers) = chain_length(model) else {
        return Vec::new();
    };
    let budgets = BUDGETS
        .iter()
        .map(|percent| u64::try_from(model.budget.max(0)).unwrap_or(0) * percent / 100);
    let tables = budgets.map(|budget| Table::fill(model, layers, budget, allowed));
    tables.filter_map(|table| table.sequence(model)).collect()
}

/// Layers of the forward pass: each reads the one before it, and gradients read their layer, the one after it, and the gradient before.
fn chain_length(model: &Model<'_>) -> Option<usize> {
    let nodes = model.dag.len();
    let layers = nodes.div_ceil(2);
    if nodes.is_multiple_of(2) || !(2..=LONGEST).contains(&layers) || model.dag.value_count() != nodes {
        return None;
    }
    let is_step = |node: usize| {
        let id = NodeId::new(node);
        let needs = model.dag.needs(id);
        let makes_one = model.dag.values(id).len() == 1 && model.dag.kept(id) == 0;
        let reads = |read: usize| needs.contains(&ValueId::new(read));
        makes_one
            && match node.checked_sub(layers) {
                None => needs.len() == node.min(1) && (node == 0 || reads(node - 1)),
                Some(step) => {
                    let of = layers - 2 - step;
                    let known = |need: &ValueId| [of, of + 1, node - 1].contains(&need.index());
                    reads(of) && needs.iter().all(known)
                }
            }
    };
    (0..nodes).all(is_step).then_some(layers)
}

/// How a part is cut.
#[derive(Clone, Copy)]
struct Cut {
    at: u16,
    moves: bool,
}

/// The cheapest way to do each part in each amount of memory. A part `(i, j)` begins with the result of layer `i` in memory, as well as
/// that of `j + 1` and its gradient, and ends with the gradient of `i`; its memory is what is left beside these.
struct Table {
    layers: usize,
    slots: usize,
    /// Bytes of a slot, in units of the graph.
    slot: u64,
    cost: Vec<u64>,
    cuts: Vec<Cut>,
    /// Slots of each layer's result, and of the gradient that a part ends with.
    results: Vec<usize>,
    gradients: Vec<usize>,
}

impl Table {
    fn fill(model: &Model<'_>, layers: usize, budget: u64, allowed: Allowed) -> Self {
        let slot = budget.div_ceil(SLOTS as u64).max(1);
        let slots_of = |value: usize| {
            let units = u64::try_from(model.dag.bytes(ValueId::new(value))).unwrap_or(0);
            usize::try_from(units.div_ceil(slot)).unwrap_or(usize::MAX / 4)
        };
        let gradient = |of: usize| 2 * layers - 2 - of;
        let slots = SLOTS + 1;
        let mut table = Self {
            layers,
            slots,
            slot,
            cost: vec![u64::MAX; layers * layers * slots],
            cuts: vec![Cut { at: 0, moves: false }; layers * layers * slots],
            results: (0..layers).map(slots_of).collect(),
            // Behind the last layer there is no gradient.
            gradients: (0..layers)
                .map(|of| if of + 1 < layers { slots_of(gradient(of)) } else { 0 })
                .collect(),
        };
        let runs: Vec<u64> = (0..layers)
            .map(|layer| model.price(model.run(NodeId::new(layer))))
            .collect();
        let moves: Vec<u64> = (0..layers)
            .map(|value| price_of_moving(model, ValueId::new(value), allowed))
            .collect();
        for length in 0..layers - 1 {
            for first in 0..layers - 1 - length {
                table.fill_part(first, first + length, &runs, &moves);
            }
        }
        table
    }

    fn index(&self, first: usize, last: usize, memory: usize) -> usize {
        (first * self.layers + last) * self.slots + memory
    }

    fn fill_part(&mut self, first: usize, last: usize, runs: &[u64], moves: &[u64]) {
        for memory in 0..self.slots {
            let here = self.index(first, last, memory);
            if first == last {
                if self.gradients[first] <= memory {
                    self.cost[here] = 0;
                }
                continue;
            }
            let (mut forward, mut most) = (0u64, 0usize);
            for (cut, &run) in (first + 1..=last).zip(&runs[first + 1..=last]) {
                forward = forward.saturating_add(run);
                let before = if cut - 1 > first { self.results[cut - 1] } else { 0 };
                most = most.max(before + self.results[cut]);
                if most > memory {
                    break;
                }
                for moved in [false, true] {
                    let (rest, part) = self.memories(first, last, cut, moved, memory);
                    let (Some(rest), Some(part)) = (rest, part) else {
                        continue;
                    };
                    let rest = self.cost[self.index(cut, last, rest)];
                    let part = self.cost[self.index(first, cut - 1, part)];
                    let moving = if moved { moves[first] } else { 0 };
                    let sum = [rest, part, moving]
                        .iter()
                        .fold(forward, |sum, &cost| sum.saturating_add(cost));
                    if sum < self.cost[here] {
                        self.cost[here] = sum;
                        self.cuts[here] = Cut {
                            at: u16::try_from(cut).unwrap_or(u16::MAX),
                            moves: moved,
                        };
                    }
                }
            }
        }
    }

    /// Slots that the rest and the part before the cut may take.
    fn memories(
        &self,
        first: usize,
        last: usize,
        cut: usize,
        moves: bool,
        memory: usize,
    ) -> (Option<usize>, Option<usize>) {
        let freed = if moves { self.results[first] } else { 0 };
        let rest = (memory + freed).checked_sub(self.results[cut]);
        let ended = self.results[last + 1] + self.gradients[last + 1];
        let part = (memory + ended).checked_sub(self.results[cut] + self.gradients[cut]);
        let within = |memory: usize| memory.min(self.slots - 1);
        (rest.map(within), part.map(within))
    }

    /// The items of the whole step; `None` if it does not fit.
    fn sequence(&self, model: &Model<'_>) -> Option<Vec<Item>> {
        let budget = u64::try_from(model.budget.max(0)).unwrap_or(0).div_ceil(self.slot);
        let last = self.layers - 2;
        let beside = self.results[0] + self.results[last + 1];
        let memory = usize::try_from(budget).ok()?.min(SLOTS).checked_sub(beside)?;
        if self.cost[self.index(0, last, memory)] == u64::MAX {
            return None;
        }
        let mut items = vec![Item::Run(NodeId::new(0))];
        // Parts to do, the next one last; `None` is the return of a value.
        let mut stack = vec![Work::Part(0, last, memory)];
        while let Some(work) = stack.pop() {
            let (first, last, memory) = match work {
                Work::Fetch(value) => {
                    items.push(Item::Fetch(value));
                    continue;
                }
                Work::Part(first, last, memory) => (first, last, memory),
            };
            if first == last {
                if last == self.layers - 2 {
                    items.push(Item::Run(NodeId::new(last + 1)));
                }
                items.push(Item::Run(NodeId::new(2 * self.layers - 2 - first)));
                continue;
            }
            let cut = self.cuts[self.index(first, last, memory)];
            let at = usize::from(cut.at);
            let (rest, part) = self.memories(first, last, at, cut.moves, memory);
            items.extend((first + 1..=at).map(|layer| Item::Run(NodeId::new(layer))));
            stack.push(Work::Part(first, at - 1, part?));
            if cut.moves {
                stack.push(Work::Fetch(ValueId::new(first)));
            }
            stack.push(Work::Part(at, last, rest?));
        }
        Some(items)
    }
}

/// What is left to do of a step.
enum Work {
    Part(usize, usize, usize),
    Fetch(ValueId),
}

/// Out and back.
fn price_of_moving(model: &Model<'_>, value: ValueId, allowed: Allowed) -> u64 {
    if !allowed.pages || !model.has_second_memory() {
        return u64::MAX;
    }
    let mut cost: Cost = model.out(value);
    cost.add(model.back(value));
    model.price(cost)
}
