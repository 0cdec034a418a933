//! Every solver of this build on tiny problems of all magnitudes, each answer held against the best there is.

use std::time::Duration;

use remat::solver::{SolveControl, Solver};
use remat_truth::judge::audit;
use remat_truth::problems::problem;

/// Problems in every run of the tests; `remat-bench truth` takes as many as it is told.
const PROBLEMS: u64 = if remat_ortools::AVAILABLE { 60 } else { 400 };

/// Problems of which something false was once claimed: views that read more than they look at, an op that owns nothing before an output
/// in fixed order, a cost that floating point cannot count, plans outside stage form.
const ONCE_FALSE: [u64; 9] = [117, 716, 932, 2561, 2873, 3843, 5703, 6625, 6932];

#[test]
fn no_solver_claims_what_is_not_true() {
    let (mut answers, mut proofs) = (0, 0);
    for number in (0..PROBLEMS).chain(ONCE_FALSE) {
        let problem = problem(number);
        let control = |_: &dyn Solver| SolveControl::new().step_limit(1_000).time_limit(Duration::from_secs(1));
        let found = audit(&problem, remat::solvers(), control);
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
