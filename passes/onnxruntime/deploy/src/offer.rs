//! A lower optimization level, where no file gains at the one that was asked for.

use std::time::Instant;

use remat_onnxruntime_run::{Host, OptimizationLevel};
use remat_solve::SolveControl;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Rejection;
use crate::{DeployError, DeployRequest, Deployment, deploy};

/// A file gains if it takes no more than this share of the peak of the model as it came, in thousandths.
const GAINS_PERMILLE: u128 = 950;

/// What a file takes at another level. Its bits are those of the model at that level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Offer {
    /// The level.
    pub level: OptimizationLevel,
    /// Peak of the model as it came at that level in bytes, with the memory arena off.
    pub before: u64,
    /// Peak of the file.
    pub after: u64,
}

impl Offer {
    /// What can be had at a lower level, within `control`. `None` where `found` gains, where bits are not what it failed on, where the time
    /// is over, and where the lower level gives no more.
    ///
    /// # Errors
    /// Those of [`deploy`].
    pub fn of(
        found: &Deployment,
        request: &DeployRequest<'_>,
        host: Option<&Host>,
        control: &SolveControl<'_>,
    ) -> Result<Option<Self>, DeployError> {
        let level = OptimizationLevel::Extended;
        let has_other_bits = |rejection: &Rejection| matches!(rejection, Rejection::OutputDiffers { .. });
        let is_bits = found.rejected.iter().any(|one| has_other_bits(&one.reason));
        let is_over = control.deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_over || request.level != OptimizationLevel::All || !is_bits || peaks(found).is_none_or(gains) {
            return Ok(None);
        }
        let lower = DeployRequest {
            output: None,
            level,
            ..*request
        };
        let peaks = peaks(&deploy(&lower, host, control)?).filter(|&peaks| gains(peaks));
        Ok(peaks.map(|(before, after)| Self { level, before, after }))
    }
}

/// The measured peaks of the model as it came and of what was written.
fn peaks(found: &Deployment) -> Option<(u64, u64)> {
    let check = found.check.as_ref()?;
    check.before.exact.zip(check.after.exact)
}

fn gains((before, after): (u64, u64)) -> bool {
    u128::from(after) * 1_000 <= u128::from(before) * GAINS_PERMILLE
}
