//! A first sequence within a budget where it is exceeded for so long that no frame holds the excess: one walk along an order.
//!
//! Where a run has no room, what is resident and used again last goes first (Belady, *A study of replacement algorithms for a virtual-storage
//! computer*, 1966), and is made again when it is used, with what it needs, in the same room. Of a training step that leaves the first results
//! to be made again at its end, when the others are gone. Where they do not fit then, they would be made several times: so a second walk lets
//! go last what the order needs to go on from each of some positions, as Chen's checkpoints do. Time: (nodes + uses + runs) log nodes.

use std::collections::BinaryHeap;

use remat_plan::{NodeId, ValueId};
use smallvec::SmallVec;
use typed_index_collections::{TiVec, ti_vec};

use crate::dag::Dag;

/// No longer sequence is made than this many times the order.
const LONGEST: usize = 4;

/// Sequences of every node in this order and of what is made again, within the budget where that is found; none where what went cannot be made
/// again, or too often. `peak` is that of the order.
pub(super) fn within(dag: &Dag, budget: i32, peak: i32, order: &[NodeId]) -> impl Iterator<Item = Vec<NodeId>> {
    // Checkpoints take half of the budget, if all results are as large.
    let share = 2 * (peak / budget.max(1)).max(1);
    let strides = [usize::MAX, usize::try_from(share).unwrap_or(1).next_power_of_two()];
    strides.into_iter().filter_map(move |stride| {
        let mut walk = Walk::new(dag, budget, order, stride);
        order.iter().try_for_each(|&node| walk.reach(node))?;
        Some(walk.sequence)
    })
}

/// What is used soon after positions that are so far from each other, and was made soon before.
fn checkpoints(dag: &Dag, order: &[NodeId], stride: usize) -> TiVec<ValueId, bool> {
    let mut checkpoints = ti_vec![false; dag.value_count()];
    let mut positions: TiVec<NodeId, usize> = ti_vec![0; dag.len()];
    for (position, &node) in order.iter().enumerate() {
        positions[node] = position;
        for &value in dag.needs(node) {
            let made = positions[dag.producer(value)];
            checkpoints[value] |= made / stride != position / stride && position - made <= stride;
        }
    }
    checkpoints
}

/// What is resident on the way.
struct Walk<'a> {
    dag: &'a Dag,
    budget: i64,
    sequence: Vec<NodeId>,
    most: usize,
    /// Where each value is still used, as positions in the order, the next one last.
    uses: TiVec<ValueId, SmallVec<[u32; 4]>>,
    runs: TiVec<NodeId, usize>,
    /// Whether a node, and all that it needs, can run at any time after its first run.
    lasting: TiVec<NodeId, bool>,
    resident: TiVec<ValueId, bool>,
    /// How many runs that are due need a value.
    wanted: TiVec<ValueId, u32>,
    /// Sum of what is resident.
    total: i64,
    /// What may go, checkpoints last, then by its next use; entries that no longer hold are passed over.
    last: BinaryHeap<(bool, u32, i32, ValueId)>,
    checkpoints: TiVec<ValueId, bool>,
}

impl<'a> Walk<'a> {
    fn new(dag: &'a Dag, budget: i32, order: &[NodeId], stride: usize) -> Self {
        let mut lasting: TiVec<NodeId, bool> = ti_vec![false; dag.len()];
        for &node in order {
            let needs = dag.needs(node).iter();
            lasting[node] = repeats(dag, node) && needs.map(|&value| dag.producer(value)).all(|node| lasting[node]);
        }
        let mut uses = ti_vec![SmallVec::new(); dag.value_count()];
        for (position, &node) in order.iter().enumerate().rev() {
            dag.needs(node)
                .iter()
                .for_each(|&value| uses[value].push(position as u32));
        }
        Self {
            dag,
            budget: budget.into(),
            sequence: Vec::with_capacity(order.len()),
            most: order.len().saturating_mul(LONGEST),
            uses,
            runs: ti_vec![0; dag.len()],
            lasting,
            resident: ti_vec![false; dag.value_count()],
            wanted: ti_vec![0; dag.value_count()],
            total: 0,
            last: BinaryHeap::new(),
            checkpoints: checkpoints(dag, order, stride),
        }
    }

    /// Runs the next node of the order, after what it needs and is not there.
    fn reach(&mut self, node: NodeId) -> Option<()> {
        let dag = self.dag;
        // Nodes that are due, each with how many of its needs are there.
        let mut due = vec![(node, 0)];
        self.want(node);
        while let Some((top, there)) = due.last_mut() {
            let top = *top;
            let missing = dag.needs(top)[*there..].iter().position(|&value| !self.resident[value]);
            if let Some(missing) = missing {
                *there += missing;
                let producer = dag.producer(dag.needs(top)[*there]);
                let again = self.runs[producer] > 0
                    && self.runs[producer] < dag.max_computes(producer)
                    && dag.may_run_after(producer, |other| self.runs[other] > 0);
                if !again || self.sequence.len() + due.len() >= self.most {
                    return None;
                }
                self.want(producer);
                due.push((producer, 0));
                continue;
            }
            self.run(top);
            due.pop();
            for &value in dag.needs(top) {
                if due.is_empty() {
                    self.uses[value].pop();
                }
                self.wanted[value] -= 1;
                self.offer(value);
            }
        }
        Some(())
    }

    fn want(&mut self, node: NodeId) {
        for &value in self.dag.needs(node) {
            self.wanted[value] += 1;
        }
    }

    fn run(&mut self, node: NodeId) {
        for value in self.dag.values(node) {
            self.drop(value);
        }
        self.make_room(self.dag.local(node).into());
        self.sequence.push(node);
        if self.runs[node] == 0 {
            self.total += i64::from(self.dag.kept(node));
        }
        self.runs[node] += 1;
        for value in self.dag.values(node) {
            self.resident[value] = true;
            self.total += i64::from(self.dag.bytes(value));
            self.offer(value);
        }
    }

    /// Drops what nobody uses any more; what is used later may go where there is no room.
    fn offer(&mut self, value: ValueId) {
        if self.wanted[value] > 0 {
            return;
        }
        match self.uses[value].last() {
            None => self.drop(value),
            Some(&next) => self
                .last
                .push((!self.checkpoints[value], next, self.dag.bytes(value), value)),
        }
    }

    fn drop(&mut self, value: ValueId) {
        if std::mem::take(&mut self.resident[value]) {
            self.total -= i64::from(self.dag.bytes(value));
        }
    }

    /// Lets go what is used last until so much fits.
    fn make_room(&mut self, size: i64) {
        while self.total + size > self.budget
            && let Some((_, next, _, value)) = self.last.pop()
        {
            let is_current = self.resident[value] && self.wanted[value] == 0 && self.uses[value].last() == Some(&next);
            if is_current && self.may_go(value, next) {
                self.drop(value);
            }
        }
    }

    /// Whether the value can be made again at its next use: with what can run at any time, or with what is there until then for certain.
    fn may_go(&self, value: ValueId, next: u32) -> bool {
        let dag = self.dag;
        let node = dag.producer(value);
        let stays = |&value: &ValueId| {
            let producer = dag.producer(value);
            let waits = self.resident[value] && self.uses[value].last().is_some_and(|&use_of_it| use_of_it >= next);
            self.lasting[producer] || waits && !repeats(dag, producer)
        };
        self.runs[node] < dag.max_computes(node) && repeats(dag, node) && dag.needs(node).iter().all(stays)
    }
}

/// Whether a node may run again, whatever ran since.
fn repeats(dag: &Dag, node: NodeId) -> bool {
    dag.max_computes_anywhere(node) > 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remat_plan::{Structure, lower_sequence};
    use remat_testing::net::paper;
    use remat_testing::random::{Features, budgeted};
    use remat_verify::replay;

    use super::*;
    use crate::sequence::Sequence;

    /// A chain whose second half reads the results of the first one, the last of them first.
    fn training(depth: usize) -> Dag {
        let reads: Vec<Vec<usize>> = (0..2 * depth)
            .map(|op| match op {
                0 => vec![],
                op if op <= depth => vec![op - 1],
                op => vec![op - 1, 2 * depth - 1 - op],
            })
            .collect();
        let ops: Vec<(u64, u64, &[usize])> = reads.iter().map(|reads| (1, 1, &reads[..])).collect();
        let problem = paper(&ops);
        Dag::of(&problem, &Structure::of(&problem))
    }

    #[test]
    fn a_training_step_fits_any_budget_above_the_root_of_its_depth_and_runs_forward_twice_at_most() {
        let dag = training(400);
        let order: Vec<NodeId> = dag.nodes().collect();
        let mut state = Sequence::new(&dag, i32::MAX);
        state.load(&order);
        let peak = state.peak();
        for budget in [9 * peak / 10, peak / 2, peak / 5, peak / 8] {
            let sequences = within(&dag, budget, peak, &order);
            let figures = sequences.map(|sequence| {
                state.load(&sequence);
                (state.peak(), sequence.len() - order.len())
            });
            let best = figures
                .filter(|&(peak, _)| peak <= budget)
                .map(|(_, again)| again)
                .min();
            assert!(
                best.is_some_and(|again| 0 < again && again <= 400),
                "{budget} of {peak}: {best:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(remat_testing::cases(256))]

        #[test]
        fn whatever_goes_is_there_when_it_is_used(problem in budgeted(2..40, Features::ALL)) {
            let structure = Structure::of(&problem);
            let dag = Dag::of(&problem, &structure);
            let order: Vec<NodeId> = dag.nodes().collect();
            let budget = dag.scaled_budget(problem.budget);
            for sequence in within(&dag, budget, budget.saturating_mul(4), &order) {
                let plan = lower_sequence(&problem, &structure, sequence.iter().map(|&node| dag.op(node)));
                let plan = plan.expect("every run finds what it needs");
                let unbounded = remat_plan::Problem { budget: None, ..problem.clone() };
                prop_assert!(replay(&unbounded, &plan).is_ok());
            }
        }
    }
}
