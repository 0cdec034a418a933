//! Over rising budgets: every file keeps its budget, measured, and none takes more time than what is found without one and keeps it, too.

use std::path::Path;
use std::time::Duration;

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::{DeployError, DeployRequest, Deployment, deploy};
use remat_onnxruntime_run::Host;
use remat_testing::is_nightly;

use crate::common::models;
use crate::deploy::host;

/// Budgets in hundredths of what the model takes.
fn budgets() -> &'static [u64] {
    if is_nightly() {
        &[40, 50, 60, 70, 80, 90, 100]
    } else {
        &[50, 80]
    }
}

/// What a plan adds to the time, in millionths of it.
fn added(found: &Deployment) -> i64 {
    let overhead = found.solution.overhead;
    let beyond = i128::from(overhead.duration) - i128::from(overhead.baseline);
    i64::try_from(beyond * 1_000_000 / i128::from(overhead.baseline.max(1)))
        .expect("plans take no thousand times as long")
}

fn deployed(input: &Path, budget: BudgetSpec, host: &Host) -> Result<Deployment, DeployError> {
    let load = LoadOptions::default();
    let solve = SolveRequest {
        budget,
        max_overhead: None,
        solver: "auto".to_owned(),
    };
    // Limits in steps: the same on every machine.
    let control = SolveControl::new()
        .step_limit(2_000)
        .time_limit(Duration::from_secs(3_600));
    deploy(&DeployRequest::new(input, None, &load, &solve), Some(host), &control)
}

fn assert_monotone(model: &Path) {
    let (name, host) = (model.display(), host());
    let free = deployed(model, BudgetSpec::Auto, &host).unwrap_or_else(|error| panic!("{name}: {error}"));
    let measured = |found: &Deployment| found.check.as_ref().and_then(|check| check.after.arena_off);
    let lowest = measured(&free).unwrap_or(free.prediction.peak_bytes);
    let whole = free.model.baseline_peak().bytes;
    let mut least = i64::MAX;
    for &percent in budgets() {
        let budget = whole * percent / 100;
        let found = match deployed(model, BudgetSpec::Bytes(budget), &host) {
            Ok(found) => found,
            Err(error) => {
                assert!(least == i64::MAX && budget < lowest, "{name}: {percent} %: {error}");
                continue;
            }
        };
        let (time, peak) = (added(&found), measured(&found).unwrap_or(found.prediction.peak_bytes));
        assert!(peak <= budget, "{name}: {percent} % gives {peak} of {budget}");
        if lowest <= budget {
            let free = added(&free);
            assert!(
                time <= free,
                "{name}: {percent} % adds {time}, no budget {free} millionths"
            );
        }
        least = least.min(time);
    }
    assert!(
        least < i64::MAX,
        "{name}: no budget is kept, and the test shows nothing"
    );
}

pub(crate) fn no_budget_is_answered_by_more_time_than_none_is_in_own_models() {
    models("test/models").iter().for_each(|model| assert_monotone(model));
}

pub(crate) fn no_budget_is_answered_by_more_time_than_none_is_in_larger_models() {
    models("../shared/models")
        .iter()
        .for_each(|model| assert_monotone(model));
}
