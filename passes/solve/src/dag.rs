//! The problem as the search sees it: nodes, values and who uses them, in flat arrays and scaled units.

use remat_plan::{OpId, OrderMode, Plan, Problem, StorageId, StorageRole, Structure};
use typed_index_collections::TiVec;

/// Scaled bytes: sums over a whole graph fit `i32`, which lets the memory curve be updated with vector instructions. A curve may also fall
/// by as much from `-MAX_TOTAL`, which stands for nothing (`large::timeline`).
const MAX_TOTAL: u64 = 1 << 30;
/// A plan never runs more than this many times the number of nodes, so sums of durations fit `i64`.
pub(crate) const MAX_RUNS_PER_NODE: usize = 32;

/// A problem in flat arrays.
///
/// *Nodes* are the scheduled ops in reference order. A node *precedes* another if the other reads what it makes, be it through
/// views: in free order this is what the order of first runs must keep to. *Values* are the transient storages that take memory; node `v` makes the
/// values `values(v)`, which are consecutive. What does not appear here needs no decision: external storages take nothing, empty
/// ones cost nothing to hold, kept ones stay from the first run of their node to the end. Lazy views are left to lowering; that they
/// may run again with what they look at is part of the price of a recompute.
///
/// Bytes are counted in units of [`Dag::unit`], rounded up (exact unless the sum of all sizes exceeds 2^30 times their
/// greatest common divisor), durations in units of [`Dag::duration_unit`], rounded up likewise.
pub(crate) struct Dag {
    ops: Vec<OpId>,
    duration: Vec<i64>,
    again: Vec<i64>,
    local: Vec<i32>,
    kept: Vec<i32>,
    max_computes: Vec<u32>,
    value_start: Vec<u32>,
    value_bytes: Vec<i32>,
    value_node: Vec<u32>,
    value_storage: Vec<StorageId>,
    needs: Lists,
    users: Lists,
    predecessors: Lists,
    successors: Lists,
    order: OrderMode,
    kept_total: i32,
    unit: u64,
    duration_unit: u64,
    /// Time of the lazy views, each once, unscaled.
    views_duration: u64,
    floor: i32,
    exact: bool,
}

/// Lists of `u32` of varying length, one after another.
struct Lists {
    start: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn of(lists: impl IntoIterator<Item = Vec<u32>>) -> Self {
        let (mut start, mut items) = (vec![0], Vec::new());
        for list in lists {
            items.extend(list);
            start.push(items.len() as u32);
        }
        Self { start, items }
    }

    #[inline]
    fn get(&self, index: u32) -> &[u32] {
        &self.items[self.start[index as usize] as usize..self.start[index as usize + 1] as usize]
    }
}

impl Dag {
    /// Reads a valid problem; its budget is not part of the result.
    pub(crate) fn of(problem: &Problem, structure: &Structure) -> Self {
        let ops: Vec<OpId> = structure.scheduled().collect();
        let transient =
            |s: StorageId| problem.storages[s].role == StorageRole::Transient && problem.storages[s].bytes > 0;
        let mut value_of: TiVec<StorageId, Option<u32>> = TiVec::from(vec![None; problem.storages.len()]);
        let (mut value_start, mut value_node, mut sizes) = (vec![0], Vec::new(), Vec::new());
        let mut value_storage = Vec::new();
        let mut kept = Vec::with_capacity(ops.len());
        for (node, &op) in ops.iter().enumerate() {
            let mut kept_here = 0;
            for &storage in structure.owns(op) {
                if transient(storage) {
                    value_of[storage] = Some(sizes.len() as u32);
                    sizes.push(problem.storages[storage].bytes);
                    value_node.push(node as u32);
                    value_storage.push(storage);
                } else if problem.storages[storage].role == StorageRole::Kept {
                    kept_here += problem.storages[storage].bytes;
                }
            }
            kept.push(kept_here);
            value_start.push(sizes.len() as u32);
        }
        let workspace: Vec<u64> = ops
            .iter()
            .enumerate()
            .map(|(node, &op)| {
                let range = value_start[node] as usize..value_start[node + 1] as usize;
                let made = sizes[range].iter().sum::<u64>() + kept[node];
                problem.ops[op]
                    .workspace
                    .max(structure.views_workspace(op).saturating_sub(made))
            })
            .collect();

        let (divisor, unit) = size_unit(&sizes, &kept, &workspace);
        let scale = |bytes: u64| i32::try_from(bytes.div_ceil(unit)).unwrap_or(i32::MAX);
        let value_bytes: Vec<i32> = sizes.iter().map(|&bytes| scale(bytes)).collect();
        let kept: Vec<i32> = kept.iter().map(|&bytes| scale(bytes)).collect();
        let local: Vec<i32> = (0..ops.len())
            .map(|node| {
                let range = value_start[node] as usize..value_start[node + 1] as usize;
                value_bytes[range].iter().sum::<i32>() + kept[node] + scale(workspace[node])
            })
            .collect();

        let durations: Vec<u64> = ops.iter().map(|&op| problem.ops[op].duration).collect();
        let views_duration = views_duration(problem, structure);
        let again = || ops.iter().map(|&op| problem.ops[op].duration + views_duration[op]);
        let duration_unit = duration_unit(durations.iter().copied().chain(again()), ops.len());
        let scale_duration = |d: u64| i64::try_from(d.div_ceil(duration_unit)).unwrap_or(i64::MAX);
        let needs: Vec<Vec<u32>> = ops
            .iter()
            .map(|&op| structure.needs(op).iter().filter_map(|&s| value_of[s]).collect())
            .collect();
        let mut users = vec![Vec::new(); sizes.len()];
        for (node, need) in needs.iter().enumerate() {
            for &value in need {
                users[value as usize].push(node as u32);
            }
        }
        let predecessors = predecessors(problem, structure, &ops);
        let mut successors = vec![Vec::new(); ops.len()];
        for (node, before) in predecessors.iter().enumerate() {
            for &other in before {
                successors[other as usize].push(node as u32);
            }
        }
        let most = problem.max_computes.unwrap_or(u32::MAX).max(1);
        let max_computes = ops
            .iter()
            .map(|&op| {
                if problem.ops[op].recomputable && !structure.is_pinned(op) {
                    most
                } else {
                    1
                }
            })
            .collect();
        let views = problem.ops.keys().filter(|&op| structure.is_lazy(op));
        let mut dag = Self {
            duration: durations.iter().map(|&d| scale_duration(d)).collect(),
            again: again().map(scale_duration).collect(),
            local,
            kept_total: kept.iter().sum(),
            kept,
            max_computes,
            value_start,
            value_bytes,
            value_node,
            value_storage,
            needs: Lists::of(needs),
            users: Lists::of(users),
            predecessors: Lists::of(predecessors),
            successors: Lists::of(successors),
            order: problem.order,
            unit,
            duration_unit,
            views_duration: views.clone().map(|op| problem.ops[op].duration).sum(),
            floor: 0,
            exact: false,
            ops,
        };
        dag.floor = dag.lowest_conceivable_peak(structure);
        let one_base = |op: OpId| structure.needs(op).len() <= 1;
        let views_exact =
            views.clone().all(one_base) && problem.ops.keys().all(|op| structure.views_workspace(op) == 0);
        dag.exact = dag.unit == divisor && views_exact;
        dag
    }

    /// No plan has a lower peak: the most that one node needs, in fixed order beside what is kept by then. Nodes that own nothing, such as
    /// views of inputs, are exempt from the order.
    fn lowest_conceivable_peak(&self, structure: &Structure) -> i32 {
        let mut kept = 0;
        let mut worst = self.kept_total;
        for node in 0..self.len() as u32 {
            let inputs: i32 = self.needs(node).iter().map(|&x| self.bytes(x)).sum();
            let is_exempt = structure.owns(self.op(node)).is_empty();
            worst = worst.max(if is_exempt { 0 } else { kept } + inputs + self.local(node));
            if !self.is_free() {
                kept += self.kept(node);
            }
        }
        worst
    }

    /// Whether first runs may leave the reference order.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.order == OrderMode::Free
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Number of values.
    pub(crate) fn value_count(&self) -> usize {
        self.value_bytes.len()
    }

    /// The op a node stands for.
    pub(crate) fn op(&self, node: u32) -> OpId {
        self.ops[node as usize]
    }

    /// The node of a scheduled op.
    pub(crate) fn node_of(&self, op: OpId) -> Option<u32> {
        // Ids of scheduled ops ascend.
        let node = self.ops.binary_search(&op).ok()?;
        u32::try_from(node).ok()
    }

    /// The storage of a value.
    pub(crate) fn storage(&self, value: u32) -> StorageId {
        self.value_storage[value as usize]
    }

    /// Time of a further run, and of running again every lazy view that looks at its results, whether it has a reader left or not.
    #[inline]
    pub(crate) fn again(&self, node: u32) -> i64 {
        self.again[node as usize]
    }

    /// Time of the first run.
    #[inline]
    pub(crate) fn duration(&self, node: u32) -> i64 {
        self.duration[node as usize]
    }

    /// What a run takes at its own step on top of what crosses it: all its results and its workspace.
    #[inline]
    pub(crate) fn local(&self, node: u32) -> i32 {
        self.local[node as usize]
    }

    /// What the first run leaves behind for good.
    #[inline]
    pub(crate) fn kept(&self, node: u32) -> i32 {
        self.kept[node as usize]
    }

    /// What all nodes leave behind for good.
    #[inline]
    pub(crate) fn kept_total(&self) -> i32 {
        self.kept_total
    }

    /// How often a node may run.
    #[inline]
    pub(crate) fn max_computes(&self, node: u32) -> usize {
        self.max_computes[node as usize] as usize
    }

    /// The values a run makes.
    #[inline]
    pub(crate) fn values(&self, node: u32) -> std::ops::Range<u32> {
        self.value_start[node as usize]..self.value_start[node as usize + 1]
    }

    /// Size of a value.
    #[inline]
    pub(crate) fn bytes(&self, value: u32) -> i32 {
        self.value_bytes[value as usize]
    }

    /// The node that makes a value.
    #[inline]
    pub(crate) fn producer(&self, value: u32) -> u32 {
        self.value_node[value as usize]
    }

    /// Position of a value among those of its node.
    #[inline]
    pub(crate) fn rank(&self, value: u32) -> u32 {
        value - self.value_start[self.producer(value) as usize]
    }

    /// The values that must be resident while a node runs.
    #[inline]
    pub(crate) fn needs(&self, node: u32) -> &[u32] {
        self.needs.get(node)
    }

    /// The nodes that need a value.
    #[inline]
    pub(crate) fn users(&self, value: u32) -> &[u32] {
        self.users.get(value)
    }

    /// The nodes whose first run must stand before that of a node; ascending.
    #[inline]
    pub(crate) fn predecessors(&self, node: u32) -> &[u32] {
        self.predecessors.get(node)
    }

    /// The nodes whose first run must stand behind that of a node; ascending.
    #[inline]
    pub(crate) fn successors(&self, node: u32) -> &[u32] {
        self.successors.get(node)
    }

    /// A budget in units, rounded down; without limit the largest number.
    pub(crate) fn scaled_budget(&self, bytes: Option<u64>) -> i32 {
        bytes.map_or(i32::MAX, |bytes| i32::try_from(bytes / self.unit).unwrap_or(i32::MAX))
    }

    /// The scheduled runs of a plan, if every node runs, first runs follow the order asked for, and the limits on repetitions
    /// hold.
    pub(crate) fn sequence_of(&self, plan: &Plan) -> Option<Vec<u32>> {
        let mut counts = vec![0u32; self.len()];
        let (mut sequence, mut first) = (Vec::new(), 0);
        for op in plan.runs() {
            // Lazy views are not among the ops; ids ascend.
            let Ok(node) = self.ops.binary_search(&op) else {
                continue;
            };
            let ran = counts[node];
            counts[node] = ran.saturating_add(1);
            if ran >= self.max_computes[node] {
                return None;
            }
            if ran == 0 {
                let in_order = if self.is_free() {
                    let mut before = self.predecessors(node as u32).iter();
                    before.all(|&other| counts[other as usize] > 0)
                } else {
                    node == first
                };
                if !in_order {
                    return None;
                }
                first += 1;
            }
            sequence.push(node as u32);
        }
        let too_long = sequence.len() > self.len().saturating_mul(MAX_RUNS_PER_NODE);
        (first == self.len() && !too_long).then_some(sequence)
    }

    /// Bytes of a scaled size: exact, or rounded up.
    pub(crate) fn unscaled(&self, units: i32) -> u64 {
        u64::try_from(units).unwrap_or(0).saturating_mul(self.unit)
    }

    /// Duration of a plan whose scheduled runs take that long, lazy views included: exact, or an upper bound.
    pub(crate) fn unscaled_duration(&self, units: i64) -> u64 {
        let runs = u64::try_from(units).unwrap_or(0).saturating_mul(self.duration_unit);
        runs.saturating_add(self.views_duration)
    }

    /// The longest time of scheduled runs that keeps a plan within a duration.
    pub(crate) fn scaled_duration(&self, duration: u64) -> Option<i64> {
        let runs = duration.checked_sub(self.views_duration)? / self.duration_unit;
        Some(i64::try_from(runs).unwrap_or(i64::MAX))
    }

    /// Time of running every node once.
    pub(crate) fn total_duration(&self) -> i64 {
        self.duration.iter().sum()
    }

    /// No plan has a lower peak than this, in units.
    pub(crate) fn floor(&self) -> i32 {
        self.floor
    }

    /// Whether the memory of a sequence is that of its plan, not an upper bound: sizes are not rounded, and no view needs more than
    /// what it looks at, which it might need earlier only.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// The largest change of memory that moving one run makes at a position: at most all it makes.
    pub(crate) fn largest_change(&self) -> i32 {
        self.local.iter().copied().max().unwrap_or(0)
    }
}

/// The greatest common divisor of all sizes, and the unit in which they are counted: the divisor, enlarged until sums fit.
fn size_unit(sizes: &[u64], kept: &[u64], workspace: &[u64]) -> (u64, u64) {
    let all = || sizes.iter().chain(kept).chain(workspace).copied();
    let divisor = all().fold(0, gcd).max(1);
    // A recompute may hold a twin of what is kept, so kept bytes count twice.
    let twice = || all().chain(kept.iter().copied());
    let most = twice().fold(0, u64::saturating_add) / divisor;
    if most <= MAX_TOTAL {
        return (divisor, divisor);
    }
    // Rounding adds up to one unit to each number.
    let room = MAX_TOTAL.saturating_sub(twice().count() as u64).max(1);
    (divisor, divisor.saturating_mul(most.div_ceil(room)))
}

/// For each node those that define what it reads, itself or through lazy views: scheduled ops in reference order have ascending
/// ids.
fn predecessors(problem: &Problem, structure: &Structure, ops: &[OpId]) -> Vec<Vec<u32>> {
    // Per lazy view, the nodes it stands for.
    let mut behind: TiVec<OpId, Vec<u32>> = TiVec::from(vec![Vec::new(); problem.ops.len()]);
    let mut lists = Vec::with_capacity(ops.len());
    for (id, op) in problem.ops.iter_enumerated() {
        let mut list: Vec<u32> = Vec::new();
        for producer in op.reads.iter().filter_map(|&t| problem.tensors[t].producer) {
            match ops.binary_search(&producer) {
                Ok(node) => list.push(node as u32),
                Err(_) => list.extend_from_slice(&behind[producer]),
            }
        }
        list.sort_unstable();
        list.dedup();
        if structure.is_lazy(id) {
            behind[id] = list;
        } else {
            lists.push(list);
        }
    }
    lists
}

/// For each op the time of the lazy views that look into memory it creates.
fn views_duration(problem: &Problem, structure: &Structure) -> TiVec<OpId, u64> {
    let mut sum = TiVec::from(vec![0; problem.ops.len()]);
    for (id, op) in problem.ops.iter_enumerated().filter(|&(id, _)| structure.is_lazy(id)) {
        let storages = op.defines.iter().map(|&t| problem.tensors[t].storage);
        let mut creators: Vec<OpId> = storages
            .filter_map(|s| problem.tensors[problem.storages[s].root].producer)
            .collect();
        creators.sort_unstable();
        creators.dedup();
        for creator in creators.into_iter().filter(|&creator| creator != id) {
            sum[creator] += op.duration;
        }
    }
    sum
}

/// The unit in which durations are counted, such that no sequence of allowed length overflows.
fn duration_unit(durations: impl Iterator<Item = u64>, nodes: usize) -> u64 {
    let (divisor, longest) = durations.fold((0, 0), |(divisor, longest), d| (gcd(divisor, d), d.max(longest)));
    let divisor = divisor.max(1);
    let runs = (nodes as u64 + 2) * MAX_RUNS_PER_NODE as u64;
    divisor.saturating_mul((longest / divisor).div_ceil((1 << 62) / runs).max(1))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
