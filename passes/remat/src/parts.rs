//! The solvers of all crates, registered in one place.

use std::sync::LazyLock;

use remat_solve::{Registry, Solver};

static PARTS: LazyLock<Registry> = LazyLock::new(|| {
    Registry::of(&[
        remat_solve::register,
        remat_classic::register,
        remat_poet::register,
        remat_ortools::register,
        remat_moccasin::register,
        remat_checkmate::register,
        remat_dtr::register,
    ])
});

/// Every solver that does not call others of this list.
pub(crate) fn parts() -> impl Iterator<Item = &'static dyn Solver> {
    PARTS.solvers()
}
