//! `auto` beside the other solvers.

use remat::solver::{SolveControl, Solver};
use remat::{CompareRequest, Model, compare};

pub(crate) fn request(budgets: &[&str], solvers: &[&str]) -> CompareRequest {
    CompareRequest {
        budgets: budgets.iter().map(|text| text.parse().expect("a budget")).collect(),
        solvers: solvers.iter().map(|&name| name.to_owned()).collect(),
        time_per_run: None,
    }
}

/// `auto` and its rivals. Exact solvers are no rivals here: `auto` calls one of them, and they count steps in their own way.
pub(crate) fn field() -> Vec<&'static str> {
    let is_exact = |name: &str| remat_ortools::solvers().iter().any(|solver| solver.name() == name);
    let names = remat::solvers().map(Solver::name);
    names.filter(|name| !is_exact(name)).collect()
}

/// Fails where a rival of `auto` has the shorter plan, or the only one.
pub(crate) fn assert_auto_wins(model: &Model, budgets: &[&str], steps: u64, seed: u64) {
    let control = SolveControl::new().step_limit(steps).seed(seed);
    let comparison = compare(model, &request(budgets, &field()), &control).expect("the comparison runs");
    let beaten = comparison.beaten("auto");
    assert!(beaten.is_empty(), "{}: {beaten:?}", model.problem().name);
}
