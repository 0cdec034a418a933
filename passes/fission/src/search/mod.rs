//! The search for tilings, around the peak.
//!
//! A state is a set of fused chains on a graph that may hold clones of fused chains. In each round the op of the highest level is looked at: fused chains
//! around it begin and end where little is alive, at the ends of plateaus, and as far as their axis reaches; a bound on what each can reach says
//! which are tried. Those that are there already get other ends, numbers of tiles, axes and modes. All are tried in one number of tiles, then the
//! best few in every number and mode, these in all equal blocks of the graph (`repeats`), and pairs of moves that help only together. A round ends with the move after which the objective is least,
//! if it is less than before: a norm of the levels of all ops, since many moves are needed before a plateau falls, times a charge for time. Where
//! no fused chain helps, ops that make a long-lived tensor are cloned before its late reader and tiled with it, or a fused chain is dropped; where that does
//! not help either, the op is left alone. When nothing helps any more, the search starts again without one of the fused chains, and looks wider.
//!
//! Before the rounds the best sets of fused chains are found as paths, from estimates of fused chains by themselves (`path`); the rounds begin with the
//! best one of them.
//!
//! Where every bit stays, fused chains that go along two axes in turns are tried, too, with all large tensors of a part of the graph in pieces. Their
//! peak in reference order says little, because plans lower what stands in pieces: the one of which each op needs least is reported by itself.
//!
//! Fused chains, and ops outside of them, are written once for every way in which their operands are held (`stretches`). An estimate puts together
//! what of them counts (`sketch`, `evaluate`).
//!
//! Every tiling that is estimated is offered to a Pareto front. Costs come from `remat-cost`, levels and peak from one pass over the reference
//! order. A step is one estimate: under a limit of estimates, and without a deadline, the same graph gives the same front.

mod attempts;
mod basis;
mod changes;
mod costs;
mod courses;
mod evaluate;
mod front;
mod moves;
mod options;
mod path;
mod repeats;
mod rounds;
mod sketch;
mod stretches;
#[cfg(test)]
mod tests;
mod window;

pub use options::{Candidate, SearchOptions, SearchReport, more_loaded};

use remat_ir::Graph;

use crate::FissionError;

/// Finds tilings of `graph`, whose kernels are not told to write over operands.
///
/// # Errors
/// [`FissionError`] if the graph has a plan or tiles already. A graph whose sizes are not known has no tilings.
pub fn search(graph: &Graph, options: &SearchOptions<'_>) -> Result<SearchReport, FissionError> {
    rounds::run(graph, options)
}
