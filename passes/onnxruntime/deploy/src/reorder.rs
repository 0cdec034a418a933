//! Another order for a plan's file, in which the memory arena holds less.
//!
//! The arena's regions double, and it moves nothing: whether a run needs one more of them depends on the gaps that the order of its nodes leaves. So orders
//! are searched for in which an arena that may not grow so far refuses nothing: simulated annealing (Kirkpatrick et al., Science 220, 1983) over moves of
//! a few nodes to another place, with the bytes that are refused as what is minimized. Each order is simulated as the arena handles it, wherever its
//! regions lie.

use std::sync::atomic::Ordering;
use std::time::Instant;

use remat::Solution;
use remat::plan::{OpId, OrderMode, Structure};
use remat_onnxruntime_sim::{
    Allocation, ArenaSettings, NodeIndex, Program, Requests, Settings, allocate, arena_anywhere,
};
use remat_solve::{Rng, SolveControl};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::DeployError;
use crate::file::{Planned, Task};
use crate::simulate::{executed, places};

/// What the arena must hold at most, in thousandths of what it held before, to be worth the time.
const LEAST_GAIN_PERMILLE: u64 = 900;

/// Share of the load, as a divisor, that gaps take at least: an arena that holds less is not aimed at. Fitting chunks as they come takes 12 % to 19 %
/// beyond the load.
const GAPS_SHARE: u64 = 9;

/// How many orders are simulated at most.
const MOST_ORDERS: u32 = 6_000;
/// How many steps of a search one of them counts as, where steps are counted.
const STEPS_PER_ORDER: u64 = 64;
/// How many units of nodes a move takes along at most.
const LONGEST_MOVE: usize = 12;
/// The temperature at first, as a share of what is refused, and by what power of e it falls.
const FIRST_TEMPERATURE: f64 = 0.05;
const COOLING: f64 = 5.0;

/// Random numbers of their own.
const STREAM: u64 = 0x0061_7265_6e61;

/// A file whose nodes may run in another order.
pub(crate) struct Reordering<'t> {
    task: &'t Task<'t>,
    solution: &'t Solution,
    /// The op of each run of the plan.
    runs: Vec<OpId>,
    /// The runs of each unit of nodes, in order.
    units: Vec<Vec<usize>>,
    requests: Requests,
    settings: ArenaSettings,
    /// What the arena may hold at most.
    most_held: u64,
    /// Bytes of buffers and workspace at most at one time.
    most_load: u64,
}

impl<'t> Reordering<'t> {
    /// `None` where no order is known to lead to an arena that holds less. The file may take `slack` bytes more than it does.
    pub(crate) fn new(task: &'t Task<'t>, planned: &'t Planned, slack: u64) -> Result<Option<Self>, DeployError> {
        let Planned { solution, lowered, .. } = planned;
        if task.portable.is_some() || task.loader.is_some() || solution.problem.order != OrderMode::Free {
            return Ok(None);
        }
        let rewritten = task.rewritten(solution)?;
        let (program, order) = executed(task.model, &rewritten, lowered, task.request.order)?;
        let runs: Vec<OpId> = solution.plan.runs().collect();
        let places = places(&rewritten);
        if program.nodes.iter().any(|node| node.control.is_some()) || places.len() > runs.len() {
            return Ok(None);
        }
        let settings = ArenaSettings {
            pattern: false,
            in_branch: task.may_branch && lowered.fits_in_branch(),
            ..ArenaSettings::default()
        };
        let allocation = allocate(&program, &order, &Settings::default());
        let held = arena_anywhere(&program, &order, &allocation, &settings).steady;
        let Units { nodes, runs: units } = Units::of(&program, &allocation, &order, &places);
        let keeps = keeps(&program, &allocation, &nodes, &units, &runs);
        let requests = Requests::new(&program, &allocation, &nodes, &keeps);
        let as_it_is: Vec<usize> = (0..nodes.len()).collect();
        let load = requests.load(&as_it_is);
        let most_held = held / 1_000 * LEAST_GAIN_PERMILLE;
        let may_fit = requests.fits_regions(&settings, load.saturating_add(load / GAPS_SHARE), most_held);
        tracing::debug!(held, load, may_fit, "orders for the arena");
        Ok(may_fit.then(|| Self {
            task,
            solution,
            runs,
            units,
            requests,
            settings,
            most_held,
            most_load: load.saturating_add(slack),
        }))
    }

    /// The plan in such an order, if one is found; it may take `budget` bytes.
    pub(crate) fn search(&self, control: &SolveControl<'_>, budget: u64) -> Result<Option<Solution>, DeployError> {
        let Some(order) = self.anneal(control) else {
            return Ok(None);
        };
        let structure = Structure::of(&self.solution.problem);
        let reordered: Vec<usize> = order.iter().flat_map(|&unit| &self.units[unit]).copied().collect();
        let moved: FxHashSet<usize> = reordered.iter().copied().collect();
        // Constants are no nodes when the file is loaded.
        let constants = (0..self.runs.len()).filter(|place| !moved.contains(place));
        let sequence = constants.chain(reordered).map(|place| self.runs[place]);
        let scheduled = sequence.filter(|&op| !structure.is_lazy(op));
        Ok(self.solution.reordered(self.task.model, scheduled, budget)?)
    }

    /// An order in which nothing is refused.
    fn anneal(&self, control: &SolveControl<'_>) -> Option<Vec<usize>> {
        let mut rng = Rng::new(control.seed, STREAM);
        let mut order: Vec<usize> = (0..self.requests.units()).collect();
        let mut places = order.clone();
        let refused = |order: &[usize], enough| self.requests.refused(order, &self.settings, self.most_held, enough);
        let mut least = refused(&order, u64::MAX);
        let steps = control.step_limit.map_or(u64::MAX, |steps| steps / STEPS_PER_ORDER);
        let orders = u32::try_from(steps).unwrap_or(u32::MAX).min(MOST_ORDERS);
        let first = least as f64 * FIRST_TEMPERATURE;
        for place in 0..orders {
            if least == 0 {
                return Some(order);
            }
            if is_over(control) {
                return None;
            }
            let Some(other) = self.moved(&order, &places, &mut rng) else {
                continue;
            };
            if self.requests.load(&other) > self.most_load {
                continue;
            }
            let temperature = first * (-COOLING * f64::from(place) / f64::from(orders)).exp();
            let enough = least.saturating_add((-(1.0 - rng.unit()).ln() * temperature) as u64);
            let found = refused(&other, enough);
            if found <= enough {
                (least, order) = (found, other);
                for (place, &unit) in order.iter().enumerate() {
                    places[unit] = place;
                }
            }
        }
        (least == 0).then_some(order)
    }

    /// The order with a few neighbours at another place; `None` where those that were chosen cannot move.
    fn moved(&self, order: &[usize], places: &[usize], rng: &mut Rng) -> Option<Vec<usize>> {
        let start = rng.below(order.len());
        let length = if rng.unit() < 0.5 {
            1
        } else {
            1 + rng.below(LONGEST_MOVE)
        };
        let end = order.len().min(start + length);
        let outside = |place: &usize| !(start..end).contains(place);
        let (mut first, mut last) = (0, order.len());
        for &unit in &order[start..end] {
            let before = self.requests.before(unit).iter().map(|&unit| places[unit]);
            let after = self.requests.after(unit).iter().map(|&unit| places[unit]);
            first = before.filter(outside).map(|place| place + 1).fold(first, usize::max);
            last = after.filter(outside).fold(last, usize::min);
        }
        let room = (start - first.min(start)) + (last.max(end) - end);
        if room == 0 {
            return None;
        }
        let target = first + rng.below(room);
        let mut moved = order.to_vec();
        if target < start {
            moved[target..end].rotate_right(end - start);
        } else {
            let new_end = end + 1 + (target - start);
            moved[start..new_end].rotate_left(end - start);
        }
        Some(moved)
    }
}

/// Nodes of a file that are moved together.
#[derive(Default)]
struct Units {
    nodes: Vec<Vec<NodeIndex>>,
    /// Which runs of the plan they are.
    runs: Vec<Vec<usize>>,
}

impl Units {
    /// What was added to a file, and views, stand with the run of the plan that they serve: order anchors with the one before, others with the
    /// one after. What comes before all runs stays there.
    fn of(
        program: &Program,
        allocation: &Allocation,
        order: &[NodeIndex],
        places: &std::collections::HashMap<&str, usize>,
    ) -> Self {
        let mut is_used: FxHashSet<usize> = program.outputs.iter().map(|output| output.index()).collect();
        is_used.extend(program.nodes.iter().flat_map(|node| {
            node.reads()
                .map(remat_onnxruntime_sim::ValueId::index)
                .collect::<Vec<_>>()
        }));
        let mut units = Self::default();
        let (mut nodes, mut runs) = (Vec::new(), Vec::new());
        for &index in order {
            let node = &program.nodes[index];
            let first = node.results().next();
            let run = first.and_then(|value| places.get(program.values[value].name.as_str()).copied());
            let is_anchor = run.is_none() && node.results().all(|value| !is_used.contains(&value.index()));
            if is_anchor
                && nodes.is_empty()
                && let Some(last) = units.nodes.last_mut()
            {
                last.push(index);
                continue;
            }
            if let Some(run) = run {
                if units.nodes.is_empty() && runs.is_empty() && !nodes.is_empty() {
                    units.push(&mut nodes, &mut runs);
                }
                runs.push(run);
            }
            nodes.push(index);
            let is_view = node.workspace == 0 && node.results().all(|value| allocation.buffer[value] != value);
            if run.is_some() && !is_view {
                units.push(&mut nodes, &mut runs);
            }
        }
        if !nodes.is_empty() {
            units.push(&mut nodes, &mut runs);
        }
        units
    }

    fn push(&mut self, nodes: &mut Vec<NodeIndex>, runs: &mut Vec<usize>) {
        self.nodes.push(std::mem::take(nodes));
        self.runs.push(std::mem::take(runs));
    }
}

/// Pairs of units of which the first one is to stay before the second one: what comes before all runs; and of several runs of an op each one, with
/// what reads its results, before the next one.
fn keeps(
    program: &Program,
    allocation: &Allocation,
    nodes: &[Vec<NodeIndex>],
    units: &[Vec<usize>],
    runs: &[OpId],
) -> Vec<(usize, usize)> {
    let mut keeps = Vec::new();
    if units.first().is_some_and(Vec::is_empty) {
        keeps.extend((1..nodes.len()).map(|unit| (0, unit)));
    }
    let mut readers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (unit, nodes) in nodes.iter().enumerate() {
        for value in nodes.iter().flat_map(|&node| program.nodes[node].reads()) {
            readers.entry(allocation.buffer[value].index()).or_default().push(unit);
        }
    }
    let mut latest: FxHashMap<OpId, usize> = FxHashMap::default();
    for (unit, places) in units.iter().enumerate() {
        for &place in places {
            let Some(before) = latest.insert(runs[place], unit) else {
                continue;
            };
            keeps.push((before, unit));
            let results = nodes[before].iter().flat_map(|&node| program.nodes[node].results());
            let read = results.filter_map(|value| readers.get(&allocation.buffer[value].index()));
            let earlier = read.flatten().filter(|&&reader| reader < unit);
            keeps.extend(earlier.map(|&reader| (reader, unit)));
        }
    }
    keeps
}

/// Whether the time is over.
fn is_over(control: &SolveControl<'_>) -> bool {
    control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
        || control.deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use remat::plan::BudgetSpec;
    use remat::{LoadOptions, Model, SolveRequest};

    use super::*;

    #[test]
    fn a_plan_in_its_own_order_is_accepted_and_one_that_reads_what_is_not_there_is_not() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test/models/mlp_tiny_train.onnx");
        let model = Model::open(&path, &LoadOptions::default()).expect("the model opens");
        let request = SolveRequest {
            budget: BudgetSpec::None,
            max_overhead: None,
            solver: "search".to_owned(),
        };
        let solution = remat::solve(&model, &request, &SolveControl::new().step_limit(1_000)).expect("there is a plan");
        let structure = Structure::of(&solution.problem);
        let runs: Vec<OpId> = solution.plan.runs().filter(|&op| !structure.is_lazy(op)).collect();
        let same = solution.reordered(&model, runs.iter().copied(), u64::MAX);
        let same = same.expect("no claim is refuted").expect("the checker accepts it");
        assert!(same.plan.runs().eq(solution.plan.runs()));
        let reversed = solution.reordered(&model, runs.iter().rev().copied(), u64::MAX);
        assert!(reversed.expect("no claim is refuted").is_none());
    }
}
