//! What solvers say of their answers and of themselves: on tiny problems of all magnitudes, each answer held against the best there is, and
//! against what the solver says that it can do.

use std::time::Duration;

use crate::support::open;
use remat::plan::{BoundCovers, StopReason};
use remat::solver::{Proves, SolveControl, Solver};
use remat::solvers;
use remat_testing::{Need, Trial, trial};
use remat_truth::judge::audit;
use remat_truth::problems::{plain, problem};

/// Problems in every run of the tests, for solvers that are done in a moment and for the others; `remat-bench truth` takes as many as it is told.
const MANY: u64 = 400;
const FEW: u64 = 60;

/// Problems of which something false was once claimed: views that read more than they look at, an op that owns nothing before an output
/// in fixed order, a cost that floating point cannot count, plans outside stage form.
const ONCE_FALSE: [u64; 9] = [117, 716, 932, 2561, 2873, 3843, 5703, 6625, 6932];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(no_solver_claims_what_is_not_true),
        trial!(no_solver_on_or_tools_claims_what_is_not_true, Need::OrTools),
        trial!(answers_agree_with_the_capabilities),
        trial!(answers_on_or_tools_agree_with_the_capabilities, Need::OrTools),
    ]
}

/// Solvers that need nothing from outside, the default one among them where it goes without as well.
fn of_our_own() -> impl Iterator<Item = &'static dyn Solver> {
    solvers().filter(|solver| !is_on_or_tools(*solver))
}

/// Solvers on OR-Tools, and the default one where it calls them.
fn on_or_tools() -> impl Iterator<Item = &'static dyn Solver> {
    solvers().filter(|solver| is_on_or_tools(*solver))
}

fn is_on_or_tools(solver: &dyn Solver) -> bool {
    solver.external().is_some() || solver.calls_others() && remat::ortools::loaded().is_ok()
}

fn no_solver_claims_what_is_not_true() {
    assert_true(MANY, of_our_own);
}

fn no_solver_on_or_tools_claims_what_is_not_true() {
    assert_true(FEW, on_or_tools);
}

fn assert_true<I: Iterator<Item = &'static dyn Solver>>(problems: u64, solvers: fn() -> I) {
    let (mut answers, mut proofs) = (0, 0);
    let numbers = (0..problems).map(|number| (number, problem(number)));
    for (number, problem) in numbers.chain(ONCE_FALSE.map(|number| (number, plain(number)))) {
        let control = |_: &dyn Solver| SolveControl::new().step_limit(1_000).time_limit(Duration::from_secs(1));
        let found = audit(&problem, solvers(), control);
        if let Some(falsehood) = found.false_claims.first() {
            panic!(
                "problem {number}, `{}`: {}\n{}",
                falsehood.solver,
                falsehood.what,
                problem.to_json()
            );
        }
        answers += found.answers;
        proofs += found.proofs;
    }
    assert!(
        proofs * 5 > answers,
        "the test would show little: {proofs} proofs in {answers} answers"
    );
}

fn answers_agree_with_the_capabilities() {
    assert_capable(of_our_own());
}

fn answers_on_or_tools_agree_with_the_capabilities() {
    assert_capable(on_or_tools());
}

/// A limit on steps ends those that count them, and a bound above the trivial one, of every plan, comes from those that say so.
fn assert_capable(solvers: impl Iterator<Item = &'static dyn Solver>) {
    let model = open("cli/training_chain.json");
    let mut problem = model.problem().clone();
    problem.budget = Some(model.baseline().peak * 7 / 10);
    let trivial = problem.total_duration();
    for solver in solvers {
        let name = solver.name();
        let mut control = SolveControl::new().step_limit(500);
        if !solver.counts_steps() {
            control = control.time_limit(Duration::from_secs(1));
        }
        let first = solver.solve(&problem, &control);
        assert_ne!(first.certificate.stop, StopReason::Cancelled);
        if solver.counts_steps() {
            assert_eq!(solver.solve(&problem, &control).plan, first.plan, "{name}");
        }
        let certificate = &first.certificate;
        let is_trivial = certificate.bound <= trivial;
        match solver.proves() {
            Proves::Trivial => assert!(is_trivial, "{name}: {certificate:?}"),
            Proves::OwnForm => assert!(
                is_trivial || certificate.bound_covers != BoundCovers::AllPlans,
                "{name}"
            ),
            Proves::EveryPlan => assert!(certificate.bound_covers.is_every_plan(problem.order), "{name}"),
        }
    }
}
