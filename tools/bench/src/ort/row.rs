//! A row of the table: figures of one model at one budget.

use remat::ErrorKind;
use remat_onnxruntime_deploy::{DeployError, Deployment};

/// The columns. Peaks are those of the process's heap while the model runs once, above what its weights and inputs take, under the
/// runtime's default optimization level and order; with the arena on, the first run. Per cent are those of added time.
pub(super) const HEADER: &[&str] = &[
    "model",
    "budget",
    "before MB",
    "predicted MB",
    "after MB",
    "arena: before MB",
    "arena: predicted MB",
    "arena: after MB",
    "predicted %",
    "measured %",
    "bits",
];

/// What stands where nothing was measured.
const UNKNOWN: &str = "?";

pub(super) fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}

/// Measured time beyond the original model where nothing is set, in per cent.
pub(super) fn added_time(deployment: &Deployment) -> String {
    let ratio = deployment.check.as_ref().and_then(|check| check.time_ratio);
    ratio.map_or_else(|| UNKNOWN.to_owned(), |ratio| format!("{:+.1}", 100.0 * (ratio - 1.0)))
}

/// All columns after the budget.
pub(super) fn figures(deployment: &Deployment) -> Vec<String> {
    let check = deployment.check.as_ref();
    let before = check.map(|check| check.before);
    let after = check.map(|check| check.after);
    vec![
        megabytes(before.and_then(|before| before.arena_off)),
        megabytes(Some(deployment.prediction.peak_bytes)),
        megabytes(after.and_then(|after| after.arena_off)),
        megabytes(before.and_then(|before| before.first_run)),
        megabytes(Some(deployment.prediction.arena_bytes)),
        megabytes(after.and_then(|after| after.first_run)),
        format!("{:+.1}", deployment.solution.overhead.percent()),
        added_time(deployment),
        // A model with other bits is never written.
        check.map_or(UNKNOWN, |_| "same").to_owned(),
    ]
}

/// The columns after the budget where there is no model to measure.
///
/// # Errors
/// The error itself, where it is about the input or a defect.
pub(super) fn refusal(error: DeployError) -> Result<Vec<String>, DeployError> {
    let why = match error.kind() {
        ErrorKind::Negative => "impossible",
        ErrorKind::Limit => "none found",
        ErrorKind::Input | ErrorKind::Internal => return Err(error),
    };
    Ok(vec![String::new(), why.to_owned()])
}
