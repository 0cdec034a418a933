//! Every solver, in one list. Code that needs one asks for what it can do, or takes the one that the user named.

use remat_solve::Solver;

use crate::auto::Auto;
use crate::parts::parts;
use crate::{Error, SolveError};

/// Every solver, the default one first. Some need a library that may not be there ([`Solver::missing`]).
pub fn solvers() -> impl Iterator<Item = &'static dyn Solver> {
    std::iter::once(default_solver()).chain(parts())
}

/// The solver to use unless told otherwise.
#[must_use]
pub fn default_solver() -> &'static dyn Solver {
    &Auto
}

/// The solver of that name.
///
/// # Errors
/// [`SolveError::UnknownSolver`] if there is none of that name.
pub fn solver_named(name: &str) -> Result<&'static dyn Solver, Error> {
    solvers()
        .find(|solver| solver.name() == name)
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
