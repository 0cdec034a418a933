//! From fractions of `S` to matrices.

use remat_plan::NodeId;
use remat_solve::stages::Node;
use typed_index_collections::{TiVec, ti_vec};

use super::Setting;
use super::layout::complete;
use remat_ortools::run::{Incumbent, Run};

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

/// Rounds `S` at thresholds from 0.1 to 0.9 (section 5.2 of the paper); `R` completes it. What exceeds the budget is dropped, and the cheapest of the
/// rest is the answer, of equals the last. `fraction` is that of a stage and a node.
pub(super) fn round(run: &Run<'_>, setting: &Setting, fraction: &dyn Fn(usize, Node) -> f64) -> Rounded {
    let mut rounded = Rounded::default();
    for tenths in 1..=9 {
        let threshold = f64::from(tenths) / 10.0 - TOLERANCE;
        rounded.consider(run, setting, |stage, node| fraction(stage, node) >= threshold);
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
