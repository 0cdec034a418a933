//! From fractions of `S` to matrices.

use remat_plan::NodeId;
use remat_solve::Rng;
use remat_solve::stages::Node;
use typed_index_collections::{TiVec, ti_vec};

use super::Setting;
use super::layout::complete;
use remat_ortools::run::{Incumbent, Run};

/// How the linear relaxation is rounded (section 5 of the paper). `S` is rounded, `R` completes it; what exceeds the budget is dropped,
/// and the cheapest of the rest is the answer, of equals the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// `S` is 1 where it is at least a threshold, which goes from 0.1 to 0.9.
    #[default]
    Sweep,
    /// Each entry of `S` is 1 with itself as probability; a hundred times.
    Randomized,
}

/// How often [`Rounding::Randomized`] is tried.
const ROUNDS: u64 = 100;
/// The fractions of a solver in floating point may be this far off.
const TOLERANCE: f64 = 1e-9;

/// What came of rounding.
#[derive(Default)]
pub(super) struct Rounded {
    /// The cheapest plan within the budget.
    pub(super) best: Option<Incumbent>,
    /// The lowest peak of any plan, in units.
    pub(super) lowest_peak: Option<i64>,
    /// Matrices tried.
    pub(super) tried: u64,
}

/// Rounds; stops early where the clock says so. `fraction` is that of a stage and a node.
pub(super) fn round(
    run: &Run<'_>,
    setting: &Setting,
    rounding: Rounding,
    fraction: &dyn Fn(usize, Node) -> f64,
) -> Rounded {
    let mut rounded = Rounded::default();
    let mut try_threshold = |threshold: f64| {
        rounded.consider(run, setting, |stage, node| {
            fraction(stage, node) >= threshold - TOLERANCE
        });
    };
    match rounding {
        Rounding::Sweep => (1..=9).for_each(|tenths| try_threshold(f64::from(tenths) / 10.0)),
        Rounding::Randomized => {
            let mut random = Rng::new(run.clock.control.seed, 0);
            for _ in 0..ROUNDS {
                let draws: Vec<f64> = (0..setting.instance.len().pow(2)).map(|_| random.unit()).collect();
                let drawn = |stage: usize, node: Node| draws[stage * setting.instance.len() + node];
                rounded.consider(run, setting, |stage, node| drawn(stage, node) < fraction(stage, node));
                if run.clock.ended().is_some() {
                    break;
                }
            }
        }
    }
    rounded
}

impl Rounded {
    fn consider(&mut self, run: &Run<'_>, setting: &Setting, held: impl Fn(usize, Node) -> bool) {
        self.tried += 1;
        let sequence = complete(&setting.graph, held);
        let mut counts: TiVec<NodeId, u32> = ti_vec![0; setting.instance.len()];
        for &node in &sequence {
            counts[node] += 1;
        }
        let most = run.problem.max_computes.unwrap_or(u32::MAX).max(1);
        let Some(peak) = setting
            .instance
            .peak(&sequence)
            .filter(|_| counts.iter().all(|&count| count <= most))
        else {
            return;
        };
        self.lowest_peak = Some(self.lowest_peak.map_or(peak, |lowest| lowest.min(peak)));
        let Some(found) = run.incumbent(&setting.instance, sequence) else {
            return;
        };
        if self.best.as_ref().is_none_or(|best| found.duration <= best.duration) {
            if self.best.as_ref().is_none_or(|best| found.duration < best.duration) {
                run.report(&setting.instance, &found, setting.instance.total_duration(), self.tried);
            }
            self.best = Some(found);
        }
    }
}
