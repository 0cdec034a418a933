//! All plans of a strategy.

use remat_plan::{Plan, Problem, Structure, lower_sequence};

use super::candidates::{every_kth, greedy};
use super::fixed_set::{fixed_set, last_only};
use super::griewank::{Chain, MOST_CHECKPOINTS};
use super::{Candidates, Refusal, Roles, Strategy, Walk};
use remat_solve::stages::{Node, StageGraph, StageMatrix, Stages};
use remat_solve::{Figures, measure};

/// Sizes of segments that are tried, in hundredths of the peak of Chen's strategy for `sqrt(n)` memory.
const GREEDY_SIZES: u64 = 300;

/// One plan of a strategy.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// What was varied: for [`Strategy::ChenGreedy`] the size of a segment in hundredths of the peak of Chen's strategy for
    /// `sqrt(n)` memory, for [`Strategy::Griewank`] the number of checkpoints, for the others 0.
    pub parameter: u64,
    /// The plan; the checker accepts it under a budget of `peak` or more.
    pub plan: Plan,
    /// Time of the plan.
    pub duration: u64,
    /// Peak of the plan in bytes, as the checker finds it.
    pub peak: u64,
    /// Peak in bytes as the paper counts it: [`Stages::schedule_peak`].
    pub schedule_peak: u64,
}

/// All plans of a strategy, by ascending parameter, whatever the budget; of several parameters with the same plan the lowest.
/// Plans that run an op more often than the problem allows are left out.
///
/// The problem must be valid.
///
/// # Errors
/// [`Refusal`] if the strategy cannot be tried on this problem.
pub fn curve(problem: &Problem, strategy: Strategy) -> Result<Vec<Point>, Refusal> {
    let structure = Structure::of(problem);
    let mut points = Vec::new();
    explore(problem, &structure, strategy, |point| {
        points.push(point);
        true
    })?;
    Ok(points)
}

/// Passes the plans of a strategy to `visit`, until it returns `false`.
pub(super) fn explore(
    problem: &Problem,
    structure: &Structure,
    strategy: Strategy,
    mut visit: impl FnMut(Point) -> bool,
) -> Result<(), Refusal> {
    let graph = StageGraph::of(problem, structure)?;
    let mut offer = |parameter: u64, retained: StageMatrix| {
        let stages = Stages::complete(&graph, retained);
        point(problem, structure, &graph, &stages, parameter).is_none_or(&mut visit)
    };
    if strategy == Strategy::Last {
        offer(0, last_only(&graph));
        return Ok(());
    }
    let roles = Roles::find(&graph)?;
    let all = |candidates: Candidates| candidates.of(&graph, &roles);
    let fixed = |checkpoints: &[Node]| fixed_set(&graph, &roles, checkpoints);
    match strategy {
        Strategy::Last => {}
        // Every forward op, those without an edge too.
        Strategy::All(Candidates::All) => {
            let checkpoints: Vec<Node> = (0..roles.loss()).collect();
            offer(0, fixed(&checkpoints));
        }
        Strategy::All(candidates) => {
            offer(0, fixed(&all(candidates)));
        }
        Strategy::ChenSqrt(candidates) => {
            offer(0, fixed(&every_kth(&all(candidates))));
        }
        Strategy::ChenGreedy(candidates, walk) => {
            let segments = Segments::of(&graph, &roles, candidates, walk);
            for (parameter, checkpoints) in segments.distinct() {
                if !offer(parameter, fixed(&checkpoints)) {
                    break;
                }
            }
        }
        Strategy::Griewank => {
            let chain = Chain::of(&graph, &roles)?;
            for checkpoints in 0..=roles.loss().saturating_sub(1).min(MOST_CHECKPOINTS) {
                if !offer(checkpoints as u64, chain.retained(checkpoints)) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The sweep of Chen's greedy strategy.
struct Segments<'a> {
    graph: &'a StageGraph,
    candidates: Vec<Node>,
    walk: Vec<Node>,
    /// The peak of Chen's strategy for `sqrt(n)` memory on all candidates, as the paper counts it.
    unit: u64,
}

impl<'a> Segments<'a> {
    fn of(graph: &'a StageGraph, roles: &Roles, candidates: Candidates, walk: Walk) -> Self {
        let sqrt = fixed_set(graph, roles, &every_kth(&Candidates::All.of(graph, roles)));
        Self {
            graph,
            candidates: candidates.of(graph, roles),
            walk: walk.of(graph, roles),
            unit: Stages::complete(graph, sqrt).schedule_peak(graph),
        }
    }

    /// The sets of checkpoints, each once, with the smallest size in hundredths that leads to it.
    fn distinct(self) -> impl Iterator<Item = (u64, Vec<Node>)> + 'a {
        let mut seen: Vec<Vec<Node>> = Vec::new();
        (0..GREEDY_SIZES).filter_map(move |size| {
            let bytes = u128::from(self.unit) * u128::from(size) / 100;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            let checkpoints = greedy(self.graph, &self.walk, &self.candidates, bytes);
            if seen.contains(&checkpoints) {
                return None;
            }
            seen.push(checkpoints.clone());
            Some((size, checkpoints))
        })
    }
}

/// The plan of completed stages, unless it runs an op too often.
fn point(
    problem: &Problem,
    structure: &Structure,
    graph: &StageGraph,
    stages: &Stages,
    parameter: u64,
) -> Option<Point> {
    let sequence = stages.sequence(graph);
    if let Some(most) = problem.max_computes {
        let mut runs = vec![0u32; problem.ops.len()];
        for op in &sequence {
            runs[op.index()] += 1;
        }
        if runs.iter().any(|&count| count > most.max(1)) {
            return None;
        }
    }
    let plan = lower_sequence(problem, structure, sequence)
        .inspect_err(|error| tracing::error!(%error, "a plan in stage form could not be lowered"))
        .ok()?;
    let Figures { duration, peak } = measure(problem, structure, &plan);
    Some(Point {
        parameter,
        plan,
        duration,
        peak,
        schedule_peak: stages.schedule_peak(graph),
    })
}
