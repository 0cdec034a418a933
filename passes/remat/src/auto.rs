//! The solver to use unless told otherwise: search first, then proof, within one time limit.

use std::time::{Duration, Instant};

use remat_plan::{BoundCovers, Problem, Status, StopReason};
use remat_solve::{Outcome, Search, SolveControl, Solver};

/// Share of the time for the first search, where an exact solver is there to go on.
const SEARCH_SHARE: f64 = 0.4;
/// Time for the proof where the caller sets no limit and the search was shorter.
const SHORTEST_PROOF: Duration = Duration::from_secs(2);
/// With less time left than this nothing more is started.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// The local search, then the exact solver of `remat-ortools` with the search's plan as its hint, then the search again from the best
/// plan, until the plan is proved optimal or the time is up.
///
/// Each part starts from the best plan so far, so none makes it worse. Without OR-Tools only the search is there, and what is
/// proved is what it proves: that no plan exists, or that nothing has to be recomputed. The certificate names the part that
/// found the plan, and its bound is the strongest one that covers the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn describe(&self) -> &'static str {
        "search, then proof where OR-Tools is there, within one time limit"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let exact = remat_ortools::solvers().iter().find(|solver| solver.name() == "exact");
        portfolio(problem, control, &Search, exact.copied())
    }
}

fn portfolio(
    problem: &Problem,
    control: &SolveControl<'_>,
    search: &dyn Solver,
    exact: Option<&dyn Solver>,
) -> Outcome {
    let started = Instant::now();
    let Some(exact) = exact else {
        return named(search.solve(problem, control), started);
    };
    let mut first = *control;
    first.deadline = control.deadline.map(|deadline| {
        let whole = deadline.saturating_duration_since(started);
        started + whole.mul_f64(SEARCH_SHARE)
    });
    let mut best = search.solve(problem, &first);
    if is_over(&best, control) {
        return named(best, started);
    }
    let mut second = *control;
    if control.deadline.is_none() && control.step_limit.is_none() {
        // The search has converged; a proof may take for ever.
        second.deadline = Instant::now().checked_add((started.elapsed() * 4).max(SHORTEST_PROOF));
    }
    let hint = best.plan.clone();
    second.warm_start = hint.as_ref().or(control.warm_start);
    best = better(best, exact.solve(problem, &second));
    if is_over(&best, control) || control.step_limit.is_some() {
        return named(best, started);
    }
    let mut third = *control;
    let hint = best.plan.clone();
    third.warm_start = hint.as_ref().or(control.warm_start);
    third.seed = control.seed.wrapping_add(1);
    best = better(best, search.solve(problem, &third));
    named(best, started)
}

/// Whether nothing is left to do, or no time to do it.
fn is_over(outcome: &Outcome, control: &SolveControl<'_>) -> bool {
    let proved =
        outcome.certificate.stop == StopReason::Proved && outcome.certificate.bound_covers != BoundCovers::CandidateSet;
    let too_late = |deadline: Instant| deadline.saturating_duration_since(Instant::now()) < TOO_SHORT;
    proved || outcome.certificate.stop == StopReason::Cancelled || control.deadline.is_some_and(too_late)
}

/// The better plan of two answers under the stronger bound.
fn better(a: Outcome, b: Outcome) -> Outcome {
    // Nothing is a proof without a plan but a proof that there is none.
    let by_proof = |outcome: &Outcome| outcome.plan.is_none() && outcome.certificate.status == Status::Infeasible;
    let lowest = a.lowest_peak.into_iter().chain(b.lowest_peak).min();
    let steps = a.certificate.steps.saturating_add(b.certificate.steps);
    let (mut plan, bound) = match (a.certificate.objective, b.certificate.objective) {
        (Some(first), Some(second)) if second < first => (b, a.certificate),
        (Some(_), _) => (a, b.certificate),
        (None, Some(_)) => (b, a.certificate),
        (None, None) if by_proof(&a) => (a, b.certificate),
        (None, None) => (b, a.certificate),
    };
    let own = &mut plan.certificate;
    own.steps = steps;
    if own.objective.is_some() {
        // A refusal, or having stopped early, is not how the whole ended.
        if bound.stop == StopReason::Cancelled || own.stop == StopReason::Refused {
            own.stop = bound.stop;
        }
        let contradicted = own.objective.is_some_and(|objective| objective < bound.bound);
        if bound.bound > own.bound && !contradicted {
            own.bound = bound.bound;
            own.bound_covers = bound.bound_covers;
            own.stop = bound.stop;
        }
        let objective = own.objective.unwrap_or(0);
        own.restate(objective, own.problem.clone());
        if objective <= own.bound {
            own.status = Status::Optimal;
            own.stop = StopReason::Proved;
        }
    } else {
        plan.lowest_peak = lowest;
    }
    plan
}

/// The answer under the name of the portfolio and of its part.
fn named(mut outcome: Outcome, started: Instant) -> Outcome {
    let certificate = &mut outcome.certificate;
    certificate.solver = format!("{}/{}", Auto.name(), certificate.solver);
    certificate.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use remat_plan::{Certificate, Plan};

    use super::*;
    use crate::{LoadOptions, Model};

    /// Answers what it was told to, and remembers what it started from.
    struct Told {
        answer: Outcome,
        starts: Mutex<Vec<bool>>,
    }

    impl Told {
        fn new(answer: Outcome) -> Self {
            let starts = Mutex::default();
            Self { answer, starts }
        }

        fn starts(&self) -> Vec<bool> {
            self.starts.lock().unwrap().clone()
        }
    }

    impl Solver for Told {
        fn name(&self) -> &'static str {
            "told"
        }

        fn describe(&self) -> &'static str {
            "for tests"
        }

        fn solve(&self, _: &Problem, control: &SolveControl<'_>) -> Outcome {
            self.starts.lock().unwrap().push(control.warm_start.is_some());
            self.answer.clone()
        }
    }

    fn problem() -> Problem {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/mlp_tiny_train.onnx");
        let model = Model::open(&path, &LoadOptions::default()).unwrap();
        model.problem().clone()
    }

    fn answer(objective: Option<u64>, bound: u64, covers: BoundCovers, stop: StopReason) -> Outcome {
        Outcome {
            plan: objective.map(|_| Plan { steps: Vec::new() }),
            certificate: Certificate {
                status: if objective.is_some() {
                    Status::Feasible
                } else {
                    Status::Unknown
                },
                objective,
                bound,
                bound_covers: covers,
                gap: None,
                stop,
                solver: format!("by {bound}"),
                seed: 0,
                threads: 1,
                steps: 1,
                elapsed_ms: 0,
                problem: String::new(),
            },
            lowest_peak: Some(bound),
        }
    }

    fn run(search: &Told, exact: &Told) -> Certificate {
        let control = SolveControl::new().time_limit(Duration::from_secs(60));
        portfolio(&problem(), &control, search, Some(exact)).certificate
    }

    #[test]
    fn a_proof_of_the_searchs_plan_ends_the_run() {
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(12), 12, BoundCovers::FixedOrder, StopReason::Proved));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.status, certificate.stop),
            (Status::Optimal, StopReason::Proved)
        );
        assert_eq!(
            (certificate.bound, certificate.bound_covers),
            (12, BoundCovers::FixedOrder)
        );
        assert_eq!((search.starts(), exact.starts()), (vec![false], vec![true]));
    }

    #[test]
    fn without_a_proof_the_search_goes_on_from_the_best_plan_under_the_stronger_bound() {
        let search = Told::new(answer(Some(14), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(13), 11, BoundCovers::StageForm, StopReason::Refused));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.status, certificate.objective),
            (Status::Feasible, Some(13))
        );
        assert_eq!((certificate.bound, certificate.stop), (11, StopReason::Converged));
        assert_eq!(certificate.solver, "auto/by 11");
        assert_eq!(search.starts(), [false, true]);
    }

    #[test]
    fn a_bound_over_other_plans_is_not_claimed_for_a_better_one() {
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(15), 13, BoundCovers::CandidateSet, StopReason::Proved));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.bound, certificate.bound_covers),
            (10, BoundCovers::AllPlans)
        );
        assert_eq!(certificate.status, Status::Feasible);
    }

    #[test]
    fn a_proof_that_there_is_no_plan_is_kept() {
        let mut none = answer(None, 10, BoundCovers::FixedOrder, StopReason::Proved);
        none.certificate.status = Status::Infeasible;
        let search = Told::new(answer(None, 10, BoundCovers::AllPlans, StopReason::TimeLimit));
        let certificate = run(&search, &Told::new(none));
        assert_eq!((certificate.status, certificate.objective), (Status::Infeasible, None));
    }
}
