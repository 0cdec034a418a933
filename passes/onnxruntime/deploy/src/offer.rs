//! A lower optimization level, where no file gains at the one that was asked for.

use std::time::Instant;

use remat_onnxruntime_run::{Host, OptimizationLevel};
use remat_solve::SolveControl;

use crate::{BeforeAfter, DeployRequest, Deployment, LowerLevelResult, deploy};

/// A file gains if it takes no more than this share of the peak of the original model, in thousandths.
const GAINS_PERMILLE: u128 = 950;

/// What can be had at a lower level, within `control`. `None` where `found` gains, where bits are not what it failed on, where the time
/// is over, and where the lower level gives no more, for whatever reason.
pub fn offer(
    found: &Deployment,
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Option<LowerLevelResult> {
    let level = OptimizationLevel::Extended;
    let is_bits = found.rejected.iter().any(|one| one.reason.is_about_bits());
    let is_over = control.deadline.is_some_and(|deadline| deadline <= Instant::now());
    if is_over || request.level != OptimizationLevel::All || !is_bits || peaks(found).is_none_or(gains) {
        return None;
    }
    let lower = DeployRequest {
        output: None,
        level,
        ..*request
    };
    let found = deploy(&lower, host, control);
    let found = found.inspect_err(|why| tracing::info!(%level, "a lower level gives nothing: {why}"));
    let peak = peaks(&found.ok()?).filter(|&peaks| gains(peaks))?;
    Some(LowerLevelResult { level, peak })
}

/// The measured peaks of the original model and of what was written.
fn peaks(found: &Deployment) -> Option<BeforeAfter> {
    let check = found.check.as_ref()?;
    Some(BeforeAfter {
        before_bytes: check.before.arena_off?,
        after_bytes: check.after.arena_off?,
    })
}

fn gains(peaks: BeforeAfter) -> bool {
    u128::from(peaks.after_bytes) * 1_000 <= u128::from(peaks.before_bytes) * GAINS_PERMILLE
}
