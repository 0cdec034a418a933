//! The problem as the models see it: nodes, values and who uses them, in flat arrays and units that lose nothing.

use std::ops::Range;

use remat_plan::{BoundCovers, OpId, OrderMode, Plan, Problem, StorageId, StorageRole, Structure, TensorId};
use remat_solve::stages::TooManyStages;
use smallvec::SmallVec;
use thiserror::Error;
use typed_index_collections::TiVec;

/// Position of an op in the order of first computes.
pub(crate) type Node = usize;
/// Index of a transient result that takes memory.
pub(crate) type Value = usize;

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
    /// There are more stages than matrices are built for.
    #[error(transparent)]
    Stages(#[from] TooManyStages),
    /// Stages without a frontier do not fit the problem.
    #[error("stages without a frontier: {0}")]
    Partition(&'static str),
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

/// A problem in one order of first computes.
///
/// *Nodes* are the scheduled ops in that order. *Values* are the transient storages that take memory; node `v` makes the values
/// `values(v)`, which are consecutive. External storages take nothing, empty ones cost nothing to hold, kept ones stay from
/// the first run of their node to the end. Lazy views are left to lowering.
///
/// Bytes are counted in units of the greatest common divisor of all sizes, durations in that of all durations: exact both.
pub(crate) struct Instance {
    ops: Vec<OpId>,
    duration: Vec<i64>,
    workspace: Vec<i64>,
    kept: Vec<i64>,
    max_computes: Vec<u32>,
    value_start: Vec<Value>,
    bytes: Vec<i64>,
    producer: Vec<Node>,
    needs: Vec<Vec<Value>>,
    users: Vec<Vec<Node>>,
    before: Vec<Vec<Node>>,
    size_unit: u64,
    duration_unit: u64,
    views_duration: u64,
    complete: bool,
    order: OrderMode,
}

impl Instance {
    /// Reads a valid problem in the order of first computes of `order` if that is given, else in reference order.
    ///
    /// # Errors
    /// [`Refusal::Range`] if sums are too large to be counted exactly.
    pub(crate) fn of(problem: &Problem, structure: &Structure, order: Option<&[OpId]>) -> Result<Self, Refusal> {
        let ops: Vec<OpId> = order.map_or_else(|| structure.scheduled().collect(), <[OpId]>::to_vec);
        let storages = Storages::of(problem, structure, &ops);
        let workspace: Vec<u64> = ops
            .iter()
            .enumerate()
            .map(|(node, &op)| {
                let made = storages.made(node).map(|value| storages.sizes[value]).sum::<u64>() + storages.kept[node];
                problem.ops[op]
                    .workspace
                    .max(structure.views_workspace(op).saturating_sub(made))
            })
            .collect();
        let durations: Vec<u64> = ops.iter().map(|&op| problem.ops[op].duration).collect();

        // A recompute may hold a twin of what is kept, so kept bytes count twice.
        let bytes = [&storages.sizes, &storages.kept, &storages.kept, &workspace];
        let (size_unit, scaled) = scale("sizes", bytes.iter().flat_map(|sizes| sizes.iter().copied()))?;
        let (sizes, rest) = scaled.split_at(storages.sizes.len());
        let (duration_unit, duration) = scale("durations", durations.iter().copied())?;

        let mut node_of: TiVec<OpId, Option<Node>> = TiVec::from(vec![None; problem.ops.len()]);
        for (node, &op) in ops.iter().enumerate() {
            node_of[op] = Some(node);
        }
        let needs: Vec<Vec<Value>> = ops
            .iter()
            .map(|&op| {
                structure
                    .needs(op)
                    .iter()
                    .filter_map(|&s| storages.value_of[s])
                    .collect()
            })
            .collect();
        let mut users = vec![Vec::new(); sizes.len()];
        for (node, need) in needs.iter().enumerate() {
            for &value in need {
                users[value].push(node);
            }
        }
        let dependencies = dependencies(problem, structure);
        let before = ops.iter().map(|&op| {
            let mut before: Vec<Node> = dependencies[op].iter().filter_map(|&p| node_of[p]).collect();
            before.sort_unstable();
            before
        });
        let most = problem.max_computes.unwrap_or(u32::MAX).max(1);
        let may_repeat = |node: Node| {
            let op = ops[node];
            problem.ops[op].recomputable && !structure.is_pinned(op) && !storages.made(node).is_empty()
        };
        let views = || problem.ops.keys().filter(|&op| structure.is_lazy(op));
        // Each of these is a freedom that the checker grants and the sequences of an instance do not use.
        let complete = problem.paging.is_none()
            && ops
                .iter()
                .all(|&op| !structure.owns(op).is_empty() && !structure.is_pinned(op))
            && views().all(|op| problem.ops[op].workspace == 0 && reads_its_storage_only(problem, op));
        Ok(Self {
            max_computes: (0..ops.len())
                .map(|node| if may_repeat(node) { most } else { 1 })
                .collect(),
            before: before.collect(),
            duration,
            kept: rest[..ops.len()].to_vec(),
            workspace: rest[2 * ops.len()..].to_vec(),
            bytes: sizes.to_vec(),
            value_start: storages.start,
            producer: storages.producer,
            needs,
            users,
            size_unit,
            duration_unit,
            views_duration: views().map(|op| problem.ops[op].duration).sum(),
            complete,
            order: problem.order,
            ops,
        })
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Number of values.
    pub(crate) fn value_count(&self) -> usize {
        self.bytes.len()
    }

    /// The op a node stands for.
    pub(crate) fn op(&self, node: Node) -> OpId {
        self.ops[node]
    }

    /// Time of one run.
    pub(crate) fn duration(&self, node: Node) -> i64 {
        self.duration[node]
    }

    /// Bytes a run takes on top of its operands and results.
    pub(crate) fn workspace(&self, node: Node) -> i64 {
        self.workspace[node]
    }

    /// Bytes of graph outputs: every run takes them, the first one for good.
    pub(crate) fn kept(&self, node: Node) -> i64 {
        self.kept[node]
    }

    /// How often a node may run; 1 where running it again gains nothing.
    pub(crate) fn max_computes(&self, node: Node) -> u32 {
        self.max_computes[node]
    }

    /// The values a run makes.
    pub(crate) fn values(&self, node: Node) -> Range<Value> {
        self.value_start[node]..self.value_start[node + 1]
    }

    /// Size of a value.
    pub(crate) fn bytes(&self, value: Value) -> i64 {
        self.bytes[value]
    }

    /// The node that makes a value.
    pub(crate) fn producer(&self, value: Value) -> Node {
        self.producer[value]
    }

    /// The values that must be resident while a node runs.
    pub(crate) fn needs(&self, node: Node) -> &[Value] {
        &self.needs[node]
    }

    /// The nodes that need a value, ascending.
    pub(crate) fn users(&self, value: Value) -> &[Node] {
        &self.users[value]
    }

    /// The nodes that must have run before a node, ascending.
    pub(crate) fn before(&self, node: Node) -> &[Node] {
        &self.before[node]
    }

    /// Time of running every node once.
    pub(crate) fn total_duration(&self) -> i64 {
        self.duration.iter().sum()
    }

    /// Bytes that one run of a node takes on top of its operands.
    pub(crate) fn bytes_of_run(&self, node: Node) -> i64 {
        let made: i64 = self.values(node).map(|value| self.bytes(value)).sum();
        made + self.workspace(node) + self.kept(node)
    }

    /// A budget in units, rounded down; without limit the largest sum there can be.
    pub(crate) fn scaled_budget(&self, bytes: Option<u64>) -> i64 {
        let scaled = bytes.map_or(MAX_TOTAL, |bytes| bytes / self.size_unit);
        i64::try_from(scaled.min(MAX_TOTAL)).unwrap_or(i64::MAX)
    }

    /// Bytes of a scaled size.
    pub(crate) fn unscaled(&self, units: i64) -> u64 {
        u64::try_from(units).unwrap_or(0).saturating_mul(self.size_unit)
    }

    /// Duration of a plan whose scheduled runs take that long, but for views that run again.
    pub(crate) fn unscaled_duration(&self, units: i64) -> u64 {
        let runs = u64::try_from(units).unwrap_or(0).saturating_mul(self.duration_unit);
        runs.saturating_add(self.views_duration)
    }

    /// What a bound over all stage forms of this instance covers.
    pub(crate) fn stage_form(&self) -> BoundCovers {
        match self.order {
            OrderMode::Fixed if self.complete => BoundCovers::StageForm,
            // In free order, the order of this instance is one of many.
            OrderMode::Fixed | OrderMode::Free => BoundCovers::CandidateSet,
        }
    }

    /// What a bound over all sequences of this instance in which first runs keep its order covers.
    pub(crate) fn fixed_order(&self) -> BoundCovers {
        match self.order {
            OrderMode::Fixed if self.complete => BoundCovers::FixedOrder,
            OrderMode::Fixed | OrderMode::Free => BoundCovers::CandidateSet,
        }
    }

    /// What a bound over all sequences of this instance, in any order, covers.
    pub(crate) fn any_order(&self) -> BoundCovers {
        if self.complete {
            BoundCovers::AllPlans
        } else {
            BoundCovers::CandidateSet
        }
    }

    /// The scheduled runs of a plan up to the last first one, if every node runs, first runs follow the order of the instance, and limits
    /// hold. Nothing needs what runs after the last first run, and models have no place for it.
    pub(crate) fn sequence_of(&self, plan: &Plan) -> Option<Vec<Node>> {
        let most = self
            .ops
            .iter()
            .map(|op| op.index())
            .max()
            .map_or(0, |largest| largest + 1);
        let mut node_of = vec![None; most];
        for (node, op) in self.ops.iter().enumerate() {
            node_of[op.index()] = Some(node);
        }
        let mut counts = vec![0u32; self.len()];
        let (mut sequence, mut first) = (Vec::new(), 0);
        for op in plan.runs() {
            let Some(node) = node_of.get(op.index()).copied().flatten() else {
                continue;
            };
            if counts[node] == 0 && node != first || counts[node] >= self.max_computes[node] {
                return None;
            }
            first += usize::from(counts[node] == 0);
            counts[node] += 1;
            sequence.push(node);
            if first == self.len() {
                return Some(sequence);
            }
        }
        self.ops.is_empty().then_some(sequence)
    }

    /// Peak of a sequence of runs; `None` if a value is used before it is made, or never made.
    pub(crate) fn peak(&self, sequence: &[Node]) -> Option<i64> {
        Some(self.memory(sequence)?.into_iter().max().unwrap_or(0))
    }

    /// Memory at each run of a sequence in which a use is served by the latest run before it; `None` if a value is used before it
    /// is made, or never made.
    pub(crate) fn memory(&self, sequence: &[Node]) -> Option<Vec<i64>> {
        // The run that made each value last, and the position of its last use.
        let mut made: Vec<Option<(usize, usize)>> = vec![None; self.value_count()];
        let mut change = vec![0i64; sequence.len() + 1];
        let mut retire = |value: Value, (from, to): (usize, usize)| {
            change[from] += self.bytes[value];
            change[to + 1] -= self.bytes[value];
        };
        for (position, &node) in sequence.iter().enumerate() {
            for &value in &self.needs[node] {
                made[value].as_mut()?.1 = position;
            }
            for value in self.values(node) {
                if let Some(instance) = made[value].replace((position, position)) {
                    retire(value, instance);
                }
            }
        }
        for (value, instance) in made.iter().enumerate() {
            retire(value, (*instance)?);
        }
        let mut ran = vec![false; self.len()];
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

/// Whether a view needs no more than what it looks at, which whoever reads the view needs too. Of another operand a sequence asks that it
/// is there when the view is read, the checker only that it is there when the view runs.
fn reads_its_storage_only(problem: &Problem, view: OpId) -> bool {
    let entry = &problem.ops[view];
    let storage = |tensor: &TensorId| problem.tensors[*tensor].storage;
    entry.reads.iter().map(storage).all(|read| {
        problem.storages[read].role == StorageRole::External || entry.defines.iter().map(storage).all(|own| own == read)
    })
}

/// Which storages are values, and who makes them.
struct Storages {
    value_of: TiVec<StorageId, Option<Value>>,
    start: Vec<Value>,
    sizes: Vec<u64>,
    producer: Vec<Node>,
    kept: Vec<u64>,
}

impl Storages {
    fn of(problem: &Problem, structure: &Structure, ops: &[OpId]) -> Self {
        let mut storages = Self {
            value_of: TiVec::from(vec![None; problem.storages.len()]),
            start: vec![0],
            sizes: Vec::new(),
            producer: Vec::new(),
            kept: Vec::with_capacity(ops.len()),
        };
        for (node, &op) in ops.iter().enumerate() {
            let mut kept = 0;
            for &id in structure.owns(op) {
                let storage = &problem.storages[id];
                match storage.role {
                    StorageRole::Transient if storage.bytes > 0 => {
                        storages.value_of[id] = Some(storages.sizes.len());
                        storages.sizes.push(storage.bytes);
                        storages.producer.push(node);
                    }
                    StorageRole::Kept => kept += storage.bytes,
                    StorageRole::Transient | StorageRole::External => {}
                }
            }
            storages.kept.push(kept);
            storages.start.push(storages.sizes.len());
        }
        storages
    }

    fn made(&self, node: Node) -> Range<Value> {
        self.start[node]..self.start[node + 1]
    }
}

/// The numbers in units of their greatest common divisor, and that divisor.
fn scale(what: &'static str, numbers: impl Iterator<Item = u64> + Clone) -> Result<(u64, Vec<i64>), Refusal> {
    let unit = numbers.clone().fold(0, gcd).max(1);
    let total = numbers.clone().map(|number| number / unit).fold(0, u64::saturating_add);
    if total > MAX_TOTAL {
        return Err(Refusal::Range { what, total });
    }
    let scaled = numbers.map(|number| i64::try_from(number / unit).unwrap_or(i64::MAX));
    Ok((unit, scaled.collect()))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// For each op the ops that must have run before it, through lazy views.
fn dependencies(problem: &Problem, structure: &Structure) -> TiVec<OpId, SmallVec<[OpId; 4]>> {
    let mut all: TiVec<OpId, SmallVec<[OpId; 4]>> = TiVec::with_capacity(problem.ops.len());
    for op in &problem.ops {
        let mut here = SmallVec::<[OpId; 4]>::new();
        for producer in op.reads.iter().filter_map(|&tensor| problem.tensors[tensor].producer) {
            if structure.is_lazy(producer) {
                here.extend_from_slice(&all[producer]);
            } else {
                here.push(producer);
            }
        }
        here.sort_unstable();
        here.dedup();
        all.push(here);
    }
    all
}
