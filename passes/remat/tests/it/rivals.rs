//! `auto` beside the other solvers.

use remat::solver::{Domain, SolveControl, Solver};
use remat::{CompareRequest, ComparisonFile, Model, compare};

pub(crate) fn request(budgets: &[&str], solvers: &[&str]) -> CompareRequest {
    CompareRequest {
        budgets: budgets.iter().map(|text| text.parse().expect("a budget")).collect(),
        solvers: solvers.iter().map(|&name| name.to_owned()).collect(),
        time_per_run: None,
    }
}

/// `auto` and its rivals. What counts no steps is no rival here: `auto` calls one of them, and their limit is time.
pub(crate) fn field() -> Vec<&'static str> {
    let is_rival = |solver: &&dyn Solver| solver.counts_steps() && solver.domain() != Domain::Goals;
    remat::solvers().filter(is_rival).map(Solver::name).collect()
}

/// Fails where a rival of `auto` has the shorter plan, or the only one.
pub(crate) fn assert_auto_wins(model: &Model, budgets: &[&str], steps: u64, seed: u64) {
    let control = SolveControl::new().step_limit(steps).seed(seed);
    let request = request(budgets, &field());
    let comparison = compare(model, &request, &control).expect("the comparison runs");
    let figures = ComparisonFile::new(model, &comparison, &request, &control);
    let beaten: Vec<_> = figures.beaten("auto").collect();
    assert!(beaten.is_empty(), "{}: {beaten:?}", model.problem().name);
}
