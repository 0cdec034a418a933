//! Runs that a plan does not need.

use remat_plan::{OrderMode, Plan, Problem, Step, Structure, lower_sequence, prune_sequence};

/// Where the order is free, runs that only the reference order asked for are dropped.
pub(crate) fn prune(problem: Problem, plan: Plan) -> (Problem, Plan) {
    let pages = |step: &Step| matches!(step, Step::PageOut(_) | Step::PageIn(_));
    if problem.order == OrderMode::Fixed || plan.steps.iter().any(pages) {
        return (problem, plan);
    }
    let structure = Structure::of(&problem);
    let sequence: Vec<_> = plan.runs().filter(|&op| !structure.is_lazy(op)).collect();
    let useful = prune_sequence(&problem, &structure, &sequence);
    if useful.len() == sequence.len() {
        return (problem, plan);
    }
    match lower_sequence(&problem, &structure, useful) {
        Ok(pruned) => (problem, pruned),
        Err(error) => {
            tracing::warn!("a plan could not be pruned: {error}");
            (problem, plan)
        }
    }
}
