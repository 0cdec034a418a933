//! A relaxation of all plans in fixed order: memory is looked at where few nodes run first.
//!
//! Choose some nodes `b(0) < b(1) < ...`, the *ends*. Block `j` is what happens after the first compute of `b(j - 1)` up to and
//! including that of `b(j)`; the last block, after the last end, has none. The variables are `R(j, v)`, whether node `v`, which ran
//! first in an earlier block, runs again in block `j`; and `c(x, j)`, whether value `x` is resident from block `j - 1` into `j`.
//! Blocks in which nobody could touch a value share one variable.
//!
//! 1. What runs in block `j`, first or again, finds each value `x` that it needs: `c(x, j)`, or `R(j, v)` for the node `v` of `x`;
//! 2. `c(x, j + 1)` implies `c(x, j)` or `R(j, v)`;
//! 3. not both `R(j, v)` and `c(x, j)`;
//! 4. at an end: what it needs and makes, and what is resident into the next block, fits the budget;
//! 5. at a rerun in block `j`: its own needs and results, and what is resident *through* the block, fit the budget. Through
//!    means carried into it, resident at its end, and not made again within;
//! 6. each node is recomputed as often as it may at most.
//!
//! # Why a bound on this holds for every plan in fixed order
//! Take any such plan. Let `R(j, v)` say whether `v` runs again within block `j` in it, once or several times, and `c(x, j)` whether
//! `x` is resident right after `b(j - 1)` ran. Then 1, 2, 4, 5 and 6 hold, whatever the order of runs within a block. Where 3 does
//! not, set that `c(x, j)` to 0, and what is carried over the blocks before for its sake: 1 and 2 hold still, since `R(j, v)` serves
//! everything in the block, and in 4 and 5 only less is resident. The objective counts each rerun at most once. So the plan is a
//! solution that costs no more, and a bound on the solutions is one on [`FixedOrder`](remat_plan::BoundCovers::FixedOrder).
//!
//! Where each end is one of the `forced` nodes, the same goes for plans in *any* order: what runs first in each block is the same in all
//! of them.
//!
//! Plans in *stage form*, the space of the gap model, are fewer: there the reruns between two first computes follow the reference
//! order. That excludes plans that are needed: with a large `v` that must not meet a large `x`, `y` of `x` has to be made again
//! before `v` although `v` comes first (a test has the numbers). So no bound on stage forms covers all plans in fixed order.
//!
//! Where each node is an end, a solution read in reference order within each block is a plan but for its memory at reruns.

use std::collections::BTreeSet;

use remat_plan::{NodeId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::{TiVec, ti_vec};

use crate::gap::candidates;
use crate::program::{Literal, Program, Row, Variable};
use crate::scaled::Scaled;

/// Whether a value is resident, as far as it is known beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    No,
    Yes,
    If(Variable),
}

/// What happens to a value in one block.
#[derive(Clone, Debug, Default)]
struct Touch {
    block: usize,
    /// A first compute in this block needs it, other than in the block in which it is made.
    needed: bool,
    /// The end needs it or makes it.
    at_end: bool,
    /// Reruns that need it.
    users: Vec<Variable>,
    /// The rerun that makes it.
    made: Option<Variable>,
}

/// The relaxation over one choice of ends.
pub(super) struct Blocks {
    /// Everything but constraint 5 for single reruns.
    pub(super) program: Program,
    /// Constraint 5 for single reruns.
    pub(super) reruns: Vec<Row>,
    /// Whether there is no solution, as known without solving.
    pub(super) infeasible: bool,
    ends: Vec<NodeId>,
    /// For each block the nodes that may run in it again, ascending.
    again: Vec<Vec<(NodeId, Variable)>>,
    /// The nodes that need a value of each node, ascending.
    readers: TiVec<NodeId, Vec<NodeId>>,
}

impl Blocks {
    /// The relaxation with these ends, ascending, for plans that recompute nothing that takes `longest` or longer.
    pub(super) fn new(instance: &Scaled, ends: Vec<NodeId>, budget: i64, longest: i64) -> Self {
        Builder::new(instance, ends, budget, longest).build()
    }

    /// The program with all of its rows; those for reruns come last.
    pub(super) fn whole(&self) -> Program {
        let mut whole = self.program.clone();
        whole.rows.extend(self.reruns.iter().cloned());
        whole
    }

    /// The ends, ascending.
    pub(super) fn ends(&self) -> &[NodeId] {
        &self.ends
    }

    /// Roughly how many terms the relaxation has with so many ends.
    pub(super) fn terms(instance: &Scaled, ends: usize, longest: i64) -> u64 {
        let last = candidates::last_stages(instance);
        let per_stage: u64 = instance
            .nodes()
            .filter(|&node| instance.max_computes(node) > 1 && instance.duration(node) < longest)
            .map(|node| (last[node].index() - node.index()) as u64 * (8 + 4 * instance.needs(node).len() as u64))
            .sum();
        let all = instance.len().max(1) as u64;
        per_stage.saturating_mul(ends as u64) / all + all
    }

    /// A sequence with the reruns of a solution, each as late as those that need it allow.
    pub(super) fn sequence(&self, solution: &[i64]) -> Vec<NodeId> {
        let nodes = self.readers.len();
        let mut of_stage: TiVec<NodeId, Vec<NodeId>> = ti_vec![Vec::new(); nodes];
        for (block, again) in self.again.iter().enumerate() {
            let first = block.checked_sub(1).map_or(0, |before| self.ends[before].index() + 1);
            let end = self.ends.get(block).copied().unwrap_or(NodeId::new(nodes - 1));
            let mut place: TiVec<NodeId, NodeId> = ti_vec![end; nodes];
            let on = |variable: Variable| solution.get(variable as usize).is_some_and(|&value| value != 0);
            let mut runs: TiVec<NodeId, bool> = ti_vec![false; nodes];
            for &(node, variable) in again.iter().rev() {
                if !on(variable) {
                    continue;
                }
                let readers = &self.readers[node];
                let main = readers[readers.partition_point(|reader| reader.index() < first)..].first();
                let reruns = readers
                    .iter()
                    .filter(|&&reader| runs[reader])
                    .map(|&reader| place[reader]);
                place[node] = reruns.chain(main.copied()).fold(end, NodeId::min);
                runs[node] = true;
                of_stage[place[node]].push(node);
            }
        }
        let stages = of_stage.into_iter_enumerated();
        stages
            .flat_map(|(stage, mut again)| {
                again.sort_unstable();
                again.push(stage);
                again
            })
            .collect()
    }
}

/// The nodes that may be ends of a relaxation that holds in any order of first runs, ascending: those of which each other node is an
/// ancestor or a descendant. What runs first before and after such a node is the same in every order, and a relaxation does not look at
/// order within a block.
pub(super) fn forced(instance: &Scaled) -> Vec<NodeId> {
    let nodes = instance.len();
    // The first node that depends on each, by position.
    let mut first: TiVec<NodeId, usize> = ti_vec![nodes; nodes];
    for node in instance.nodes().rev() {
        for &before in instance.predecessors(node) {
            first[before] = node.index();
        }
    }
    // Each later node depends on this one if and only if each of them depends on this one or a later one.
    let mut reached: TiVec<NodeId, bool> = ti_vec![true; nodes];
    let mut lowest = nodes;
    for node in instance.nodes().rev() {
        reached[node] = lowest > node.index();
        // One more than the last node before it, so that 0 stands for none.
        lowest = lowest.min(instance.predecessors(node).last().map_or(0, |&last| last.index() + 1));
    }
    let mut furthest = 0;
    let mut forced = Vec::new();
    for node in instance.nodes() {
        // Each earlier node has one that depends on it, up to this one.
        if furthest <= node.index() && reached[node] {
            forced.push(node);
        }
        furthest = furthest.max(first[node]);
    }
    forced
}

/// Up to `most` of the nodes that may be ends: those that are over the budget when nothing is recomputed, and where there are few
/// of them, others too.
pub(super) fn ends(instance: &Scaled, budget: i64, most: usize, may: &[NodeId]) -> Vec<NodeId> {
    if most >= may.len() {
        return may.to_vec();
    }
    let once: Vec<NodeId> = instance.nodes().collect();
    let memory = instance.memory(&once).unwrap_or_default();
    let over: Vec<NodeId> = may
        .iter()
        .copied()
        .filter(|node| memory[node.index()] > budget)
        .collect();
    let mut ends = BTreeSet::new();
    if over.len() <= most {
        ends.extend(over.iter().copied());
        // The rest of them evenly over the others.
        let left = most - ends.len();
        ends.extend((0..left).map(|index| may[index * may.len() / left]));
    } else {
        // The fullest node of each of so many runs of the nodes over the budget.
        for chunk in over.chunks(over.len().div_ceil(most.max(1))) {
            ends.extend(chunk.iter().copied().max_by_key(|node| memory[node.index()]));
        }
    }
    ends.into_iter().collect()
}

/// One block under construction.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Bytes at its end that are certain, and those that are not.
    at_end: i64,
    terms: Vec<(Variable, i64)>,
    /// Values that are resident through it for sure, and those that may be.
    through: i64,
    surely: Vec<ValueId>,
    maybe: Vec<(ValueId, Variable)>,
}

struct Builder<'a> {
    instance: &'a Scaled,
    budget: i64,
    ends: Vec<NodeId>,
    /// The block of the first compute of each node.
    block_of: TiVec<NodeId, usize>,
    again: Vec<Vec<(NodeId, Variable)>>,
    program: Program,
    reruns: Vec<Row>,
    blocks: Vec<Block>,
    infeasible: bool,
}

impl<'a> Builder<'a> {
    fn new(instance: &'a Scaled, ends: Vec<NodeId>, budget: i64, longest: i64) -> Self {
        let block_of: TiVec<NodeId, usize> = instance
            .nodes()
            .map(|node| ends.partition_point(|&end| end < node))
            .collect();
        let last = candidates::last_stages(instance);
        let mut program = Program::default();
        let mut again = vec![Vec::new(); ends.len() + 1];
        for node in instance.nodes() {
            if instance.max_computes(node) < 2 || instance.duration(node) >= longest {
                continue;
            }
            let blocks = block_of[node] + 1..block_of[last[node]] + 1;
            for block in again.get_mut(blocks).unwrap_or_default() {
                block.push((node, program.variable(instance.duration(node))));
            }
        }
        Self {
            instance,
            budget,
            block_of,
            again,
            program,
            reruns: Vec::new(),
            blocks: vec![Block::default(); ends.len() + 1],
            infeasible: false,
            ends,
        }
    }

    fn build(mut self) -> Blocks {
        self.certain();
        for (value, touches) in self.touches().iter_enumerated() {
            self.value(value, touches);
        }
        for block in 0..self.ends.len() {
            self.end(block);
            self.rerun(block);
        }
        // Constraint 6.
        let mut of_node: TiVec<NodeId, Vec<(Variable, i64)>> = ti_vec![Vec::new(); self.instance.len()];
        for &(node, variable) in self.again.iter().flatten() {
            of_node[node].push((variable, 1));
        }
        for (node, terms) in of_node.into_iter_enumerated() {
            let most = self.instance.max_computes(node) as usize - 1;
            if terms.len() > most {
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                self.program.rows.push(Row { terms, most });
            }
        }
        Blocks {
            readers: self
                .instance
                .nodes()
                .map(|node| candidates::readers(self.instance, node))
                .collect(),
            program: self.program,
            reruns: self.reruns,
            infeasible: self.infeasible,
            ends: self.ends,
            again: self.again,
        }
    }

    /// What every plan holds at the ends: graph outputs made before, needs and results.
    fn certain(&mut self) {
        let instance = self.instance;
        let mut kept = 0;
        let mut next = 0;
        for (block, &end) in self.ends.iter().enumerate() {
            self.blocks[block].through = kept;
            kept += (next..=end.index())
                .map(|node| instance.kept(NodeId::new(node)))
                .sum::<i64>();
            next = end.index() + 1;
            let made = instance.values(end).map(|value| instance.bytes(value));
            let needed = instance.needs(end).iter().map(|&value| instance.bytes(value));
            self.blocks[block].at_end = kept + made.chain(needed).sum::<i64>() + instance.workspace(end);
        }
    }

    /// For each value the blocks in which something happens to it, ascending; the first is that in which it is made.
    fn touches(&self) -> TiVec<ValueId, Vec<Touch>> {
        let instance = self.instance;
        let mut touches: TiVec<ValueId, Vec<Touch>> = instance
            .all_values()
            .map(|value| vec![self.touch(self.block_of[instance.producer(value)])])
            .collect();
        fn at<'t>(builder: &Builder<'_>, touches: &'t mut Vec<Touch>, block: usize) -> &'t mut Touch {
            if touches.last().is_none_or(|last| last.block != block) {
                touches.push(builder.touch(block));
            }
            touches
                .last_mut()
                .expect("each list starts with the block of its producer")
        }
        let mut next = 0;
        for block in 0..=self.ends.len() {
            for &(node, variable) in &self.again[block] {
                for &value in instance.needs(node) {
                    at(self, &mut touches[value], block).users.push(variable);
                }
                for value in instance.values(node) {
                    at(self, &mut touches[value], block).made = Some(variable);
                }
            }
            let end = self.ends.get(block).copied();
            let until = end.map_or(instance.len(), |end| end.index() + 1);
            for node in (next..until).map(NodeId::new) {
                for &value in instance.needs(node) {
                    let touch = at(self, &mut touches[value], block);
                    touch.needed = true;
                    touch.at_end |= end == Some(node);
                }
            }
            if let Some(end) = end {
                for value in instance.values(end) {
                    at(self, &mut touches[value], block).at_end = true;
                }
            }
            next = until;
        }
        touches
    }

    fn touch(&self, block: usize) -> Touch {
        Touch {
            block,
            ..Touch::default()
        }
    }

    /// Whether a value is carried out of each touch to the next: never after the last.
    fn carried(&mut self, touches: &[Touch]) -> Vec<Held> {
        let mut carried = vec![Held::No; touches.len()];
        for index in (1..touches.len()).rev() {
            let (touch, out) = (&touches[index], carried[index]);
            let read = touch.needed || !touch.users.is_empty();
            carried[index - 1] = match (touch.made, read, out) {
                // Nobody needs it before it is made again, if ever.
                (_, false, Held::No) => Held::No,
                (None, _, Held::Yes) => Held::Yes,
                (None, _, _) if touch.needed => Held::Yes,
                _ => Held::If(self.program.variable(0)),
            };
        }
        carried
    }

    /// Constraints 1 to 3 for a value, and its part in 4 and 5.
    fn value(&mut self, value: ValueId, touches: &[Touch]) {
        let carried = self.carried(touches);
        for (index, touch) in touches.iter().enumerate() {
            let out = carried[index];
            let into = index.checked_sub(1).map(|before| carried[before]);
            if let Some(into) = into {
                self.serve(touch, into, out);
                self.through(value, touch, into, out);
            }
            if !touch.at_end {
                self.resident(value, touch.block, out);
            }
            let until = touches.get(index + 1).map_or(touch.block + 1, |next| next.block);
            for block in touch.block + 1..until {
                self.resident(value, block, out);
                self.pass(value, block, out);
            }
        }
    }

    fn serve(&mut self, touch: &Touch, into: Held, out: Held) {
        if let (Some(made), Held::If(into)) = (touch.made, into) {
            self.program.exclusions.push((made, into));
        }
        if into == Held::Yes {
            return;
        }
        let served = [touch.made, if let Held::If(into) = into { Some(into) } else { None }];
        let mut require = |given: Option<Variable>| {
            let served = served.iter().flatten().map(|&variable| Literal::is(variable));
            let clause: Vec<Literal> = given.map(Literal::not).into_iter().chain(served).collect();
            self.infeasible |= clause.is_empty();
            self.program.clauses.push(clause);
        };
        touch.users.iter().for_each(|&user| require(Some(user)));
        if touch.needed || out == Held::Yes {
            require(None);
        } else if let Held::If(out) = out {
            require(Some(out));
        }
    }

    /// Its part in constraint 5 of a block in which it is touched.
    fn through(&mut self, value: ValueId, touch: &Touch, into: Held, out: Held) {
        match (touch.made, into) {
            (None, _) if touch.at_end => self.pass(value, touch.block, Held::Yes),
            (None, _) => self.pass(value, touch.block, out),
            (Some(_), into) if touch.at_end => self.pass(value, touch.block, into),
            (Some(made), Held::If(_)) if touch.block < self.ends.len() => {
                // Resident at the end and not made again.
                let mut clause = vec![Literal::is(made)];
                match out {
                    Held::No => return,
                    Held::If(out) => clause.push(Literal::not(out)),
                    Held::Yes => {}
                }
                let through = self.program.variable(0);
                clause.push(Literal::is(through));
                self.program.clauses.push(clause);
                self.pass(value, touch.block, Held::If(through));
            }
            (Some(_), _) => {}
        }
    }

    fn pass(&mut self, value: ValueId, block: usize, held: Held) {
        let here = &mut self.blocks[block];
        match held {
            Held::No => {}
            Held::Yes => {
                here.through += self.instance.bytes(value);
                here.surely.push(value);
            }
            Held::If(variable) => here.maybe.push((value, variable)),
        }
    }

    fn resident(&mut self, value: ValueId, block: usize, held: Held) {
        let here = &mut self.blocks[block];
        match held {
            Held::No => {}
            Held::Yes => here.at_end += self.instance.bytes(value),
            Held::If(variable) => here.terms.push((variable, self.instance.bytes(value))),
        }
    }

    /// Constraint 4.
    fn end(&mut self, block: usize) {
        let here = &mut self.blocks[block];
        let most = self.budget - here.at_end;
        self.infeasible |= most < 0;
        let terms = std::mem::take(&mut here.terms);
        if terms.iter().map(|&(_, bytes)| bytes).sum::<i64>() > most {
            self.program.rows.push(Row { terms, most });
        }
    }

    /// Constraint 5. The sum over what may be resident through the block is a variable of its own, so that the rows are short.
    fn rerun(&mut self, block: usize) {
        let instance = self.instance;
        let here = std::mem::take(&mut self.blocks[block]);
        let left = self.budget - here.through;
        let sum: i64 = here.maybe.iter().map(|&(value, _)| instance.bytes(value)).sum();
        // Thousands of values pass a block of a large graph, and as many nodes may run in it again.
        let surely: FxHashSet<ValueId> = here.surely.iter().copied().collect();
        let place: FxHashMap<ValueId, usize> = (0..)
            .zip(&here.maybe)
            .map(|(place, &(value, _))| (value, place))
            .collect();
        let mut all: Option<Variable> = None;
        for &(node, variable) in &self.again[block] {
            let needs = instance.needs(node);
            let needed = needs.iter().filter(|&value| !surely.contains(value));
            let needed: i64 = needed.map(|&value| instance.bytes(value)).sum();
            let own = needed + instance.bytes_of_run(node);
            let mut places: Vec<usize> = needs.iter().filter_map(|value| place.get(value).copied()).collect();
            places.sort_unstable();
            places.dedup();
            let both: Vec<(Variable, i64)> = places
                .into_iter()
                .map(|place| here.maybe[place])
                .map(|(value, through)| (through, -instance.bytes(value)))
                .collect();
            let others = sum + both.iter().map(|&(_, bytes)| bytes).sum::<i64>();
            if others + own <= left {
                continue;
            }
            let mut terms = vec![(variable, own)];
            if sum > 0 {
                let all = *all.get_or_insert_with(|| self.program.bounded(sum.min(left.max(0))));
                terms.push((all, 1));
            }
            terms.extend(both);
            self.reruns.push(Row { terms, most: left });
        }
        if let Some(all) = all {
            let terms = here
                .maybe
                .iter()
                .map(|&(value, through)| (through, instance.bytes(value)));
            let terms = terms.chain([(all, -1)]).collect();
            self.program.rows.push(Row { terms, most: 0 });
        }
    }
}
