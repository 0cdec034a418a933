//! The search for tilings, around the peak.
//!
//! A state is a set of stretches on a graph that may hold clones of stretches. In each round the op of the highest level is looked at: stretches
//! around it begin and end where little is alive, at the ends of plateaus, and as far as their axis reaches; stretches that are there already
//! get other ends. All are tried in one number of tiles, then the best few in every number and mode. A round ends with the move after which the
//! objective is least, if it is less than before: a norm of the levels of all ops, since many moves are needed before a plateau falls, times a
//! charge for time. Where no stretch helps, ops that make a long-lived tensor are cloned before its late reader and tiled with it; where that
//! does not help either, the op is left alone, and after three such ops the search ends.
//!
//! Every tiling that is estimated is offered to a Pareto front. Costs come from `remat-cost`, levels and peak from the replay of the reference
//! order (`remat-verify`). A step is one estimate: under a limit of estimates, and without a deadline, the same graph gives the same front.

mod basis;
mod evaluate;
mod front;
mod moves;
mod options;
mod rounds;

pub use options::{Candidate, SearchOptions, SearchReport};

use remat_ir::Graph;

use crate::FissionError;

/// Finds tilings of `graph`, whose kernels are not told to write over operands.
///
/// # Errors
/// [`FissionError`] if the graph has a plan or tiles already. A graph whose sizes are not known has no tilings.
pub fn search(graph: &Graph, options: &SearchOptions<'_>) -> Result<SearchReport, FissionError> {
    rounds::run(graph, options)
}
