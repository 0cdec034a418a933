//! What a tiling takes: costs of the tiled graph, and its reference order replayed.

use remat_cost::{Device, ProblemOptions, analytic, problem};
use remat_ir::{Graph, OpId};
use remat_operators::share_overwritten;
use remat_plan::{Accounting, OrderMode, Step, baseline};
use remat_verify::replay;
use typed_index_collections::TiVec;

/// What a tiled graph takes.
#[derive(Clone, Debug)]
pub(super) struct Score {
    /// Bytes.
    pub(super) peak: u64,
    /// Nanoseconds.
    pub(super) time: u64,
    /// By op of the graph before tiling: the most bytes while it or a part of it runs.
    pub(super) levels: Vec<u64>,
    /// A norm of the levels that is close to the largest one but falls with every level that falls, so that plateaus do not stop the search.
    pub(super) norm: f64,
}

/// The larger, the closer to the largest level.
const NORM: i32 = 20;

/// How much a share of time weighs against the same share of memory.
const WEIGHT_OF_TIME: f64 = 0.35;

/// Estimates a graph whose ops come from those of another one; `None` where a size is not known.
pub(super) fn score(mut graph: Graph, origin: &TiVec<OpId, OpId>, ops: usize, device: &Device) -> Option<Score> {
    share_overwritten(&mut graph);
    let profile = analytic(&graph, device);
    let options = ProblemOptions {
        accounting: Accounting::Runtime,
        order: OrderMode::Free,
        max_computes: None,
        alignment: None,
    };
    let problem = problem(&graph, &profile, &options).ok()?;
    let plan = baseline(&problem);
    let replay = replay(&problem, &plan).ok()?;
    let mut levels = vec![0; ops];
    for (step, trace) in plan.steps.iter().zip(&replay.trace) {
        if let Step::Compute(op) = *step {
            let level: &mut u64 = &mut levels[origin[op].index()];
            *level = (*level).max(trace.during);
        }
    }
    let peak = replay.peak.max(1);
    let share = |level: u64| level as f64 / peak as f64;
    let sum: f64 = levels.iter().map(|&level| share(level).powi(NORM)).sum();
    let norm = peak as f64 * sum.powf(1.0 / f64::from(NORM));
    Some(Score {
        peak: replay.peak,
        time: replay.duration,
        levels,
        norm,
    })
}

impl Score {
    /// What the search makes small: memory, and time beyond that of the graph as it came.
    pub(super) fn objective(&self, base: u64) -> f64 {
        self.norm * (1.0 + WEIGHT_OF_TIME * self.overhead(base).max(0.0))
    }

    /// The share of time that was added.
    fn overhead(&self, base: u64) -> f64 {
        self.time as f64 / base.max(1) as f64 - 1.0
    }
}
