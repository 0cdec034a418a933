//! The problem as the models see it: an instance in units that lose nothing.

use std::ops::Deref;

use remat_plan::{
    BoundCovers, Instance, NodeId, OpId, OrderMode, Plan, Problem, StorageRole, Structure, TensorId, ValueId, gcd,
};
use remat_solve::stages::TooManyStages;
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

use crate::library::LibraryError;

/// Sums of scaled sizes and durations stay below this, far enough from 2^63 for what CP-SAT does with them.
const MAX_TOTAL: u64 = 1 << 58;

/// Why a problem is not given to a model.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Sums would leave the range in which CP-SAT counts.
    #[error("the sum of all {what} is {total} times their greatest common divisor: CP-SAT counts up to {MAX_TOTAL}")]
    Range {
        /// `sizes` or `durations`.
        what: &'static str,
        /// The sum, in units of the divisor.
        total: u64,
    },
    /// There is no OR-Tools to solve it.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// There are more stages than matrices are built for.
    #[error(transparent)]
    Stages(#[from] TooManyStages),
    /// The model would take too much memory.
    #[error("the model would have {terms} terms, the limit is {limit}")]
    TooLarge {
        /// An estimate of its terms.
        terms: u64,
        /// The limit.
        limit: u64,
    },
    /// The caller allows less memory than the model would take.
    #[error("the model would take about {bytes} bytes, the limit is {limit}")]
    Memory {
        /// An estimate of what the model takes together with what solves it.
        bytes: u64,
        /// The caller's limit.
        limit: u64,
    },
}

/// An [`Instance`] in one order of first computes, with numbers as CP-SAT takes them.
///
/// Bytes are counted in units of the greatest common divisor of all sizes, durations in that of all durations: exact both. Nodes, values and
/// edges are those of the instance, which this dereferences to; its figures stand here in units, as `i64`.
pub struct Scaled {
    instance: Instance,
    duration: TiVec<NodeId, i64>,
    workspace: TiVec<NodeId, i64>,
    kept: TiVec<NodeId, i64>,
    bytes: TiVec<ValueId, i64>,
    size_unit: u64,
    duration_unit: u64,
    complete: bool,
}

impl Deref for Scaled {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Scaled {
    /// Reads a valid problem in the order of first computes of `order` if that is given, else in reference order.
    ///
    /// # Errors
    /// [`Refusal::Range`] if sums are too large to be counted exactly.
    pub fn of(problem: &Problem, structure: &Structure, order: Option<Vec<OpId>>) -> Result<Self, Refusal> {
        let instance = match order {
            Some(order) => Instance::in_order(problem, structure, order),
            None => Instance::of(problem, structure),
        };
        let size_unit = unit("sizes", instance.sizes())?;
        let duration_unit = unit("durations", instance.nodes().map(|node| instance.duration(node)))?;
        let count = |number: u64, unit: u64| i64::try_from(number / unit).unwrap_or(i64::MAX);
        let of_nodes = |unit: u64, figure: fn(&Instance, NodeId) -> u64| -> TiVec<NodeId, i64> {
            instance
                .nodes()
                .map(|node| count(figure(&instance, node), unit))
                .collect()
        };
        // Each of these is a freedom that the checker grants and the sequences of an instance do not use.
        let mut views = problem.ops.keys().filter(|&op| structure.is_lazy(op));
        let complete = problem.paging.is_none()
            && structure
                .scheduled()
                .all(|op| !structure.owns(op).is_empty() && !structure.is_pinned(op))
            && views.all(|op| problem.ops[op].workspace == 0 && reads_its_storage_only(problem, op));
        Ok(Self {
            duration: of_nodes(duration_unit, Instance::duration),
            workspace: of_nodes(size_unit, Instance::workspace),
            kept: of_nodes(size_unit, Instance::kept),
            bytes: instance
                .all_values()
                .map(|value| count(instance.bytes(value), size_unit))
                .collect(),
            size_unit,
            duration_unit,
            complete,
            instance,
        })
    }

    /// Time of one run.
    pub fn duration(&self, node: NodeId) -> i64 {
        self.duration[node]
    }

    /// Bytes a run takes on top of its operands and results.
    pub fn workspace(&self, node: NodeId) -> i64 {
        self.workspace[node]
    }

    /// Bytes of graph outputs: every run takes them, the first one for good.
    pub fn kept(&self, node: NodeId) -> i64 {
        self.kept[node]
    }

    /// How often a node may run; 1 where running it again gains nothing.
    pub fn max_computes(&self, node: NodeId) -> u32 {
        if self.values(node).len() == 0 {
            return 1;
        }
        self.instance.max_computes(node)
    }

    /// The last stage in which a node may run, where there is a limit: that which the first run ends of the first node that it must not
    /// follow.
    pub fn last_stage(&self, node: NodeId) -> Option<NodeId> {
        self.anti_successors(node).first().copied()
    }

    /// Size of a value.
    pub fn bytes(&self, value: ValueId) -> i64 {
        self.bytes[value]
    }

    /// Time of running every node once.
    pub fn total_duration(&self) -> i64 {
        self.duration.iter().sum()
    }

    /// Bytes that one run of a node takes on top of its operands.
    pub fn bytes_of_run(&self, node: NodeId) -> i64 {
        let made: i64 = self.values(node).map(|value| self.bytes(value)).sum();
        made + self.workspace(node) + self.kept(node)
    }

    /// A budget in units, rounded down; without limit the largest sum there can be.
    pub fn scaled_budget(&self, bytes: Option<u64>) -> i64 {
        let scaled = bytes.map_or(MAX_TOTAL, |bytes| bytes / self.size_unit);
        i64::try_from(scaled.min(MAX_TOTAL)).unwrap_or(i64::MAX)
    }

    /// Bytes of a scaled size.
    pub fn unscaled(&self, units: i64) -> u64 {
        u64::try_from(units).unwrap_or(0).saturating_mul(self.size_unit)
    }

    /// Duration of a plan whose scheduled runs take that long, but for views that run again.
    pub fn unscaled_duration(&self, units: i64) -> u64 {
        let runs = u64::try_from(units).unwrap_or(0).saturating_mul(self.duration_unit);
        runs.saturating_add(self.instance.all_views_duration())
    }

    /// What a bound over all stage forms of this instance covers.
    pub fn stage_form(&self) -> BoundCovers {
        match self.instance.order() {
            OrderMode::Fixed if self.complete => BoundCovers::StageForm,
            // In free order, the order of this instance is one of many.
            OrderMode::Fixed | OrderMode::Free => BoundCovers::CandidateSet,
        }
    }

    /// What a bound over all sequences of this instance in which first runs keep its order covers.
    pub fn fixed_order(&self) -> BoundCovers {
        match self.instance.order() {
            OrderMode::Fixed if self.complete => BoundCovers::FixedOrder,
            OrderMode::Fixed | OrderMode::Free => BoundCovers::CandidateSet,
        }
    }

    /// What a bound over all sequences of this instance, in any order, covers.
    pub fn any_order(&self) -> BoundCovers {
        if self.complete {
            BoundCovers::AllPlans
        } else {
            BoundCovers::CandidateSet
        }
    }

    /// The scheduled runs of a plan up to the last first one, if every node runs, first runs follow the order of the instance, and limits
    /// hold. Nothing needs what runs after the last first run, and models have no place for it.
    pub fn sequence_of(&self, plan: &Plan) -> Option<Vec<NodeId>> {
        let mut counts: TiVec<NodeId, u32> = ti_vec![0; self.len()];
        let (mut sequence, mut first) = (Vec::new(), 0);
        for node in plan.runs().filter_map(|op| self.node_of(op)) {
            if counts[node] == 0 && node.index() != first || counts[node] >= self.max_computes(node) {
                return None;
            }
            first += usize::from(counts[node] == 0);
            counts[node] += 1;
            sequence.push(node);
            if first == self.len() {
                return self.keeps_anti_dependences(&sequence).then_some(sequence);
            }
        }
        self.is_empty().then_some(sequence)
    }

    fn keeps_anti_dependences(&self, sequence: &[NodeId]) -> bool {
        let mut ran: TiVec<NodeId, bool> = ti_vec![false; self.len()];
        sequence.iter().all(|&node| {
            ran[node] = true;
            self.may_run_after(node, |other| ran[other])
        })
    }

    /// Peak of a sequence of runs; `None` if a value is used before it is made, or never made, or a node follows one that it must not.
    pub fn peak(&self, sequence: &[NodeId]) -> Option<i64> {
        Some(self.memory(sequence)?.into_iter().max().unwrap_or(0))
    }

    /// Memory at each run of a sequence in which a use is served by the latest run before it; `None` if a value is used before it
    /// is made, or never made, or a node follows one that it must not.
    pub fn memory(&self, sequence: &[NodeId]) -> Option<Vec<i64>> {
        if !self.keeps_anti_dependences(sequence) {
            return None;
        }
        // The run that made each value last, and the position of its last use.
        let mut made: TiVec<ValueId, Option<(usize, usize)>> = ti_vec![None; self.value_count()];
        let mut change = vec![0i64; sequence.len() + 1];
        let mut retire = |value: ValueId, (from, to): (usize, usize)| {
            change[from] += self.bytes[value];
            change[to + 1] -= self.bytes[value];
        };
        for (position, &node) in sequence.iter().enumerate() {
            for &value in self.needs(node) {
                made[value].as_mut()?.1 = position;
            }
            for value in self.values(node) {
                if let Some(instance) = made[value].replace((position, position)) {
                    retire(value, instance);
                }
            }
        }
        for (value, instance) in made.iter_enumerated() {
            retire(value, (*instance)?);
        }
        let mut ran: TiVec<NodeId, bool> = ti_vec![false; self.len()];
        let mut resident = 0;
        let memory = sequence.iter().zip(&change).map(|(&node, change)| {
            resident += change;
            let here = resident + self.workspace[node] + self.kept[node];
            if !std::mem::replace(&mut ran[node], true) {
                resident += self.kept[node];
            }
            here
        });
        Some(memory.collect())
    }
}

/// Whether a view needs no more than what it looks at, which readers of the view need too. Of another operand a sequence asks that it
/// is there when the view is read, the checker only that it is there when the view runs.
fn reads_its_storage_only(problem: &Problem, view: OpId) -> bool {
    let entry = &problem.ops[view];
    let storage = |tensor: &TensorId| problem.tensors[*tensor].storage;
    entry.reads.iter().map(storage).all(|read| {
        problem.storages[read].role == StorageRole::External || entry.defines.iter().map(storage).all(|own| own == read)
    })
}

/// The greatest common divisor of the numbers, if their sum in that unit can be counted.
fn unit(what: &'static str, numbers: impl Iterator<Item = u64> + Clone) -> Result<u64, Refusal> {
    let unit = gcd(numbers.clone()).max(1);
    let total = numbers.map(|number| number / unit).fold(0, u64::saturating_add);
    if total > MAX_TOTAL {
        return Err(Refusal::Range { what, total });
    }
    Ok(unit)
}
