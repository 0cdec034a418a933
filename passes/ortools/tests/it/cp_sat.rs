//! The builder of the crate `cp_sat` on the library that is loaded at run time.

use cp_sat::builder::{BoolVar, CpModelBuilder, LinearExpr};
use cp_sat::proto::CpSolverStatus;
use remat_ortools::Gap;
use remat_plan::OrderMode;
use remat_solve::{SolveControl, Solver};
use remat_testing::net::{Net, at_most_twice, transient};
use remat_testing::{Need, Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial!(
        a_model_of_the_builder_has_the_optimum_of_our_solver,
        Need::OrTools
    )]
}

/// Three results are read at the end, past the peak of the op between; which of them to make again is a knapsack.
fn a_model_of_the_builder_has_the_optimum_of_our_solver() {
    const RESULTS: [(&str, u64, u64); 3] = [("a", 5, 4), ("b", 4, 3), ("c", 7, 5)];
    const BETWEEN: u64 = 10;
    const BUDGET: u64 = 17;
    // Takes the library that is loaded already.
    assert!(remat_ortools::loaded().is_ok());

    let mut builder = CpModelBuilder::default();
    let held: Vec<(BoolVar, u64, u64)> = RESULTS
        .iter()
        .map(|&(_, duration, bytes)| (builder.new_bool_var(), duration, bytes))
        .collect();
    let sum = |weight: fn(&(BoolVar, u64, u64)) -> u64| -> LinearExpr {
        let terms = held
            .iter()
            .map(|entry| (i64::try_from(weight(entry)).unwrap(), entry.0));
        terms.collect()
    };
    builder.add_le(sum(|&(_, _, bytes)| bytes), i64::try_from(BUDGET - BETWEEN).unwrap());
    builder.maximize(sum(|&(_, duration, _)| duration));
    let response = builder.solve();
    assert_eq!(response.status(), CpSolverStatus::Optimal);
    let kept: u64 = held
        .iter()
        .filter(|(variable, ..)| variable.solution_value(&response))
        .map(|&(_, duration, _)| duration)
        .sum();

    let mut net = Net::new();
    for (name, duration, bytes) in RESULTS {
        net = net.op(&format!("make {name}"), duration, &[], &[(name, transient(bytes))]);
    }
    let net = net
        .op("between", 1, &[], &[("large", transient(BETWEEN))])
        .op("shrink", 1, &["large"], &[("small", transient(0))])
        .op("last", 1, &["a", "b", "c", "small"], &[("end", transient(0))]);
    let mut problem = at_most_twice(net.done());
    problem.order = OrderMode::Fixed;
    problem.budget = Some(BUDGET);
    let all: u64 = RESULTS.iter().map(|&(_, duration, _)| duration).sum();
    let certificate = Gap::NEW.solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.objective, Some(problem.total_duration() + all - kept));
}
