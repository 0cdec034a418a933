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

/// The columns for users who set nothing: budget `auto`, memory arena on.
pub(super) const BRIEF_HEADER: &[&str] = &["model", "peak before, MB", "peak after, MB", "added time, %"];

/// The row under [`BRIEF_HEADER`] of one under [`HEADER`]; none for other budgets and for models that were not measured.
pub(super) fn brief(row: &[String]) -> Option<Vec<String>> {
    let cell = |name: &str| row.get(HEADER.iter().position(|column| *column == name)?).cloned();
    let measured = ["model", "arena: before MB", "arena: after MB", "measured %"].map(cell);
    let cells: Vec<String> = measured.into_iter().collect::<Option<_>>()?;
    (cell("budget")? == "auto").then_some(cells)
}

/// What stands where nothing was measured.
const UNKNOWN: &str = "?";

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}

/// All columns after the budget.
pub(super) fn figures(deployment: &Deployment) -> Vec<String> {
    let check = deployment.check.as_ref();
    let before = check.map(|check| check.before);
    let after = check.map(|check| check.after);
    vec![
        megabytes(before.and_then(|before| before.exact)),
        megabytes(Some(deployment.prediction.peak_bytes)),
        megabytes(after.and_then(|after| after.exact)),
        megabytes(before.and_then(|before| before.stock)),
        megabytes(Some(deployment.prediction.arena_bytes)),
        megabytes(after.and_then(|after| after.stock)),
        format!("{:+.1}", deployment.solution.overhead.percent()),
        check
            .and_then(|check| check.time_ratio)
            .map_or_else(|| UNKNOWN.to_owned(), |ratio| format!("{:+.1}", 100.0 * (ratio - 1.0))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brief_row_has_the_arena_and_the_measured_time_of_the_default_budget() {
        let row = |cells: &str| cells.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let measured = row("m auto 1.0 2.0 3.0 4.0 5.0 6.0 +7.0 +8.0 same");
        assert_eq!(measured.len(), HEADER.len());
        assert_eq!(brief(&measured), Some(row("m 4.0 6.0 +8.0")));
        assert_eq!(brief(&row("m 60% 1.0 2.0 3.0 4.0 5.0 6.0 +7.0 +8.0 same")), None);
        assert_eq!(brief(&row("m auto  impossible")), None);
    }
}
