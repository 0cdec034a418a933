//! Every solver, in one list. Code that needs one asks for what it can do, or takes the one that the user named.

use remat_solve::Solver;

use crate::auto::{Auto, parts};
use crate::{Error, SolveError};

/// Names that solvers had in an earlier release, with today's. They are understood for one release more.
const OLD_NAMES: [(&str, &str); 22] = [
    ("checkpoint-all", "checkpoint:all"),
    ("checkpoint-all-ap", "checkpoint:all-ap"),
    ("checkpoint-last", "checkpoint:last"),
    ("chen-sqrt", "chen:sqrt"),
    ("chen-sqrt-ap", "chen:sqrt-ap"),
    ("chen-greedy", "chen:greedy"),
    ("chen-greedy-ap", "chen:greedy-ap"),
    ("gap-highs", "gap:highs"),
    ("gap-scip", "gap:scip"),
    ("checkmate-ilp", "checkmate:ilp"),
    ("checkmate-ilp-scip", "checkmate:ilp-scip"),
    ("checkmate-ilp-cp", "checkmate:ilp-cp-sat"),
    ("checkmate-lp", "checkmate:lp"),
    ("checkmate-lp-half", "checkmate:lp-half"),
    ("checkmate-lp-random", "checkmate:lp-random"),
    ("checkmate-lp-randomized", "checkmate:lp-randomized"),
    ("dtr:dtr-eq", "dtr:eq"),
    ("dtr:dtr-local", "dtr:local"),
    ("paging-only", "paging:transfers"),
    ("remat-only", "paging:recomputes"),
    ("poet-scip", "poet:scip"),
    ("poet-cp", "poet:cp-sat"),
];

/// Every solver, the default one first. Some need a library that may not be there ([`Solver::missing`]).
pub fn solvers() -> impl Iterator<Item = &'static dyn Solver> {
    std::iter::once(default_solver()).chain(parts())
}

/// The solver to use unless told otherwise.
#[must_use]
pub fn default_solver() -> &'static dyn Solver {
    &Auto
}

/// The solver of that name, which may be one of an earlier release.
///
/// # Errors
/// [`SolveError::UnknownSolver`] if there is none of that name.
pub fn solver_named(name: &str) -> Result<&'static dyn Solver, Error> {
    let wanted = renamed(name).unwrap_or(name);
    solvers()
        .find(|solver| solver.name() == wanted)
        .ok_or_else(|| unknown_solver(name).into())
}

/// The solver of that name, with all that it needs.
///
/// # Errors
/// [`SolveError::UnknownSolver`] as [`solver_named`], [`SolveError::Unavailable`] if the solver lacks something.
pub(crate) fn usable_solver(name: &str) -> Result<&'static dyn Solver, Error> {
    let solver = solver_named(name)?;
    solver.missing().map_or(Ok(solver), |missing| {
        let name = solver.name().to_owned();
        Err(SolveError::Unavailable { name, missing }.into())
    })
}

/// The error of a name that no solver has.
pub(crate) fn unknown_solver(name: &str) -> SolveError {
    SolveError::UnknownSolver {
        name: name.to_owned(),
        known: solvers().map(|solver| solver.name().to_owned()).collect(),
    }
}

/// Today's name of a solver that had this one in an earlier release; absent for all other names.
#[must_use]
pub fn renamed(name: &str) -> Option<&'static str> {
    let found = OLD_NAMES.iter().find(|(old, _)| *old == name);
    found.map(|&(_, today)| today)
}
