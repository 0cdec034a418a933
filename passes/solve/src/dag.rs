//! The problem as the search sees it: an instance in scaled units.

use std::ops::Deref;

use remat_plan::{Instance, NodeId, OrderMode, Plan, Problem, Structure, ValueId, gcd};
use typed_index_collections::{TiVec, ti_vec};

/// Scaled bytes: sums over a whole graph fit `i32`, which lets the memory curve be updated with vector instructions. A curve may also fall
/// by as much from `-MAX_TOTAL`, which stands for nothing (`sequence`).
const MAX_TOTAL: u64 = 1 << 30;
/// A plan never runs more than this many times the number of nodes, so sums of durations fit `i64`.
pub(crate) const MAX_RUNS_PER_NODE: usize = 32;

/// An [`Instance`] in reference order whose numbers are small enough to be added fast.
///
/// Bytes are counted in units of [`Dag::unit`], rounded up (exact unless the sum of all sizes exceeds 2^30 times their
/// greatest common divisor), durations in units of [`Dag::duration_unit`], rounded up likewise. Lazy views are left to lowering; that
/// they may run again with what they look at is part of the price of a recompute. Nodes, values and edges are those of the instance, which
/// this dereferences to; its figures stand here in units, as `i32` and `i64`.
pub struct Dag {
    instance: Instance,
    duration: TiVec<NodeId, i64>,
    again: TiVec<NodeId, i64>,
    local: TiVec<NodeId, i32>,
    kept: TiVec<NodeId, i32>,
    bytes: TiVec<ValueId, i32>,
    kept_total: i32,
    unit: u64,
    duration_unit: u64,
    total_duration: i64,
}

impl Deref for Dag {
    type Target = Instance;

    #[inline]
    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Dag {
    /// Reads a valid problem; its budget is not part of the result.
    #[must_use]
    pub fn of(problem: &Problem, structure: &Structure) -> Self {
        Self::of_instance(Instance::of(problem, structure))
    }

    /// The same of an instance.
    pub(crate) fn of_instance(instance: Instance) -> Self {
        let unit = size_unit(&instance);
        let scale = |bytes: u64| i32::try_from(bytes.div_ceil(unit)).unwrap_or(i32::MAX);
        let bytes: TiVec<ValueId, i32> = instance
            .all_values()
            .map(|value| scale(instance.bytes(value)))
            .collect();
        let kept: TiVec<NodeId, i32> = instance.nodes().map(|node| scale(instance.kept(node))).collect();
        let local = |node| {
            let made = instance.values(node).map(|value| bytes[value]).sum::<i32>();
            made + kept[node] + scale(instance.workspace(node))
        };
        let again = |node| instance.duration(node) + instance.views_duration(node);
        let duration_unit = duration_unit(&instance);
        let scale_duration = |d: u64| i64::try_from(d.div_ceil(duration_unit)).unwrap_or(i64::MAX);
        let duration = instance.nodes().map(|node| scale_duration(instance.duration(node)));
        let duration: TiVec<NodeId, i64> = duration.collect();
        Self {
            total_duration: duration.iter().sum(),
            duration,
            again: instance.nodes().map(|node| scale_duration(again(node))).collect(),
            local: instance.nodes().map(local).collect(),
            kept_total: kept.iter().sum(),
            kept,
            bytes,
            unit,
            duration_unit,
            instance,
        }
    }

    /// Whether first runs may leave the reference order.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.instance.order() == OrderMode::Free
    }

    /// Time of a further run, and of running again every lazy view that looks at its results, whether it has a reader left or not.
    #[inline]
    pub(crate) fn again(&self, node: NodeId) -> i64 {
        self.again[node]
    }

    /// Time of the first run.
    #[inline]
    pub(crate) fn duration(&self, node: NodeId) -> i64 {
        self.duration[node]
    }

    /// What a run takes at its own step on top of what crosses it: all its results and its workspace.
    #[inline]
    #[must_use]
    pub fn local(&self, node: NodeId) -> i32 {
        self.local[node]
    }

    /// What the first run leaves behind for good.
    #[inline]
    #[must_use]
    pub fn kept(&self, node: NodeId) -> i32 {
        self.kept[node]
    }

    /// What all nodes leave behind for good.
    #[inline]
    pub(crate) fn kept_total(&self) -> i32 {
        self.kept_total
    }

    /// How often a node may run.
    #[inline]
    #[must_use]
    pub fn max_computes(&self, node: NodeId) -> usize {
        self.instance.max_computes(node) as usize
    }

    /// Size of a value.
    #[inline]
    #[must_use]
    pub fn bytes(&self, value: ValueId) -> i32 {
        self.bytes[value]
    }

    /// A budget in units, rounded down; without limit the largest number.
    #[must_use]
    pub fn scaled_budget(&self, bytes: Option<u64>) -> i32 {
        bytes.map_or(i32::MAX, |bytes| i32::try_from(bytes / self.unit).unwrap_or(i32::MAX))
    }

    /// Bytes in units, rounded up.
    pub(crate) fn scaled_up(&self, bytes: u64) -> i32 {
        i32::try_from(bytes.div_ceil(self.unit)).unwrap_or(i32::MAX)
    }

    /// The scheduled runs of a plan, if every node runs, first runs follow the order asked for, and the limits on repetitions
    /// hold.
    pub(crate) fn sequence_of(&self, plan: &Plan) -> Option<Vec<NodeId>> {
        let mut counts: TiVec<NodeId, usize> = ti_vec![0; self.len()];
        let (mut sequence, mut first) = (Vec::new(), 0);
        for node in plan.runs().filter_map(|op| self.node_of(op)) {
            let ran = counts[node];
            counts[node] = ran.saturating_add(1);
            if ran >= self.max_computes(node) || !self.may_run_after(node, |other| counts[other] > 0) {
                return None;
            }
            if ran == 0 {
                let in_order = if self.is_free() {
                    self.predecessors(node).iter().all(|&other| counts[other] > 0)
                } else {
                    node.index() == first
                };
                if !in_order {
                    return None;
                }
                first += 1;
            }
            sequence.push(node);
        }
        let too_long = sequence.len() > self.len().saturating_mul(MAX_RUNS_PER_NODE);
        (first == self.len() && !too_long).then_some(sequence)
    }

    /// Bytes of a scaled size: exact, or rounded up.
    #[must_use]
    pub fn unscaled(&self, units: i32) -> u64 {
        u64::try_from(units).unwrap_or(0).saturating_mul(self.unit)
    }

    /// Duration of a plan whose scheduled runs take that long, lazy views included: exact, or an upper bound.
    pub(crate) fn unscaled_duration(&self, units: i64) -> u64 {
        let runs = u64::try_from(units).unwrap_or(0).saturating_mul(self.duration_unit);
        runs.saturating_add(self.instance.all_views_duration())
    }

    /// The longest time of scheduled runs that keeps a plan within a duration.
    pub(crate) fn scaled_duration(&self, duration: u64) -> Option<i64> {
        let runs = duration.checked_sub(self.instance.all_views_duration())? / self.duration_unit;
        Some(i64::try_from(runs).unwrap_or(i64::MAX))
    }

    /// Time of running every node once.
    pub(crate) fn total_duration(&self) -> i64 {
        self.total_duration
    }

    /// The largest change of memory that moving one run makes at a position: at most all it makes.
    #[must_use]
    pub fn largest_change(&self) -> i32 {
        self.local.iter().copied().max().unwrap_or(0)
    }
}

/// The unit in which sizes are counted: their greatest common divisor, enlarged until sums fit.
fn size_unit(instance: &Instance) -> u64 {
    let divisor = gcd(instance.sizes()).max(1);
    let most = instance.sizes().fold(0, u64::saturating_add) / divisor;
    if most <= MAX_TOTAL {
        return divisor;
    }
    // Rounding adds up to one unit to each number.
    let room = MAX_TOTAL.saturating_sub(instance.sizes().count() as u64).max(1);
    divisor.saturating_mul(most.div_ceil(room))
}

/// The unit in which durations are counted, such that no sequence of allowed length overflows.
fn duration_unit(instance: &Instance) -> u64 {
    let first = instance.nodes().map(|node| instance.duration(node));
    let again = instance
        .nodes()
        .map(|node| instance.duration(node) + instance.views_duration(node));
    let durations = first.chain(again);
    let divisor = gcd(durations.clone()).max(1);
    let longest = durations.max().unwrap_or(0);
    let runs = (instance.len() as u64 + 2) * MAX_RUNS_PER_NODE as u64;
    divisor.saturating_mul((longest / divisor).div_ceil((1 << 62) / runs).max(1))
}
