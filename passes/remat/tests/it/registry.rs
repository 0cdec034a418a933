//! The registry of solvers: names of one spelling, and capabilities that answers agree with.

use std::collections::BTreeSet;

use crate::support::open;
use remat::solver::{Domain, Solver};
use remat::{Error, SolveError, solver_named, solvers};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(names_are_unique_and_of_one_spelling),
        trial!(a_name_that_no_solver_has_is_an_error),
        trial!(the_default_solver_is_first_and_the_only_one_that_calls_others),
        trial!(every_kind_of_problem_has_solvers_and_the_default_one_supports_all),
    ]
}

fn names_are_unique_and_of_one_spelling() {
    let mut seen = BTreeSet::new();
    for solver in solvers() {
        let name = solver.name();
        assert!(seen.insert(name), "`{name}` twice");
        let words: Vec<_> = name.split(':').collect();
        assert!(words.len() <= 2, "{name}");
        let is_word = |word: &&str| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        assert!(words.iter().all(is_word) && !words.contains(&""), "{name}");
        assert!(!words[0].contains('-'), "a family is one word: {name}");
        assert_eq!(solver_named(name).unwrap().name(), name);
    }
}

fn a_name_that_no_solver_has_is_an_error() {
    assert!(
        matches!(solver_named("chen-cube"), Err(Error::Solve(SolveError::UnknownSolver { name, .. })) if name == "chen-cube")
    );
}

fn the_default_solver_is_first_and_the_only_one_that_calls_others() {
    let calling: Vec<_> = solvers()
        .filter(|solver| solver.calls_others())
        .map(Solver::name)
        .collect();
    assert_eq!(calling, [remat::default_solver().name()]);
    assert_eq!(solvers().next().map(Solver::name), Some(remat::default_solver().name()));
}

fn every_kind_of_problem_has_solvers_and_the_default_one_supports_all() {
    let mut problem = open("cli/training_chain.json").problem().clone();
    assert!(solvers().all(|solver| solver.supports(&problem)));
    problem.deadline = Some(u64::MAX);
    assert!(remat::default_solver().supports(&problem));
    for solver in solvers() {
        assert_eq!(
            solver.supports(&problem),
            solver.domain() != Domain::Time,
            "{}",
            solver.name()
        );
    }
}
