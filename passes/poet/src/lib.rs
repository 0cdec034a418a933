//! Problems with a second memory, a deadline, or energy as the objective.
//!
//! | module | holds |
//! |---|---|
//! | `paging` | a search over recomputes and transfers, and the policies of the Capuchin and POFO papers that it is measured against |
//! | `program` | the integer program of the POET paper, on OR-Tools |

mod paging;
mod program;

pub use paging::{PagedFigures, PagingSearch, place_transfers, simulate};
pub use program::Poet;

use remat_solve::{Registry, Solver};

/// Adds the solvers of this crate.
pub fn register(registry: &mut Registry) {
    registry.add(PagingSearch::ALL.iter().map(|solver| solver as &dyn Solver));
    registry.add([&Poet as &dyn Solver]);
}
