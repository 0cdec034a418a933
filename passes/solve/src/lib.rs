//! Solvers for the rematerialization problem, in pure Rust.
//!
//! A [`Solver`] takes a [`Problem`](remat_plan::Problem) and returns an [`Outcome`]: a plan, where one was found, and a
//! certificate of what is claimed about it. [`solvers`] lists those of this crate. [`SolveControl`] says how long and how
//! hard to search. [`minimize_peak`] answers the questions that come without a budget.
//!
//! # The local search
//! [`Search`] works on a sequence of runs: every scheduled op once, in reference order or another, with further runs of some of
//! them in between. One file holds one part of it, in the order in which a search meets them:
//!
//! 1. `dag`: the problem in flat arrays and scaled units;
//! 2. `sequence`: a sequence and the memory at each of its places, kept current while runs come, go and move; `frame`: a segment
//!    of it, or the whole, that is worked on;
//! 3. `chain`: a recompute and the recomputes of its dead inputs;
//! 4. `repair`: recomputes are added, cheapest first, until the budget holds;
//! 5. `cleanup`: recomputes that became superfluous go;
//! 6. `lns`: large neighbourhood search, some recomputes are removed and the rest is repaired again;
//! 7. `anneal`: simulated annealing with a `price` on excess memory; `moves`: the changes that it proposes;
//! 8. `descent`: the peak is lowered stage by stage; `any_order`: what the search does in free order;
//! 9. `segments`: the search segment by segment on very large graphs; on smaller ones it finds a first sequence where the direct way
//!    fails;
//! 10. `strategy`: what one thread does with its time; `search` and `minimum`: the solver, and the same with the budget as the objective.
//!
//! There is one form of a sequence for graphs of all sizes, with room between its runs. Where runs stand one beside the other, inserting
//! and removing one takes 1.3 times as long on 100 nodes, 2.2 times on 1,000 and 4.4 times on 10,000; moving one takes as long on 100 nodes
//! and 1.6 times as long on 10,000; building a sequence is a tenth faster at most. `benches/sequence.rs` measures these moves.
//!
//! # The second memory
//! [`paging`] has a search of its own for problems with a second memory, a deadline, or energy as the objective, and the policies it
//! is measured against.
//!
//! # The classics
//! [`classic`] has the checkpointing strategies of Chen and Griewank for training steps, in the stage form of the Checkmate paper,
//! which [`stages`] provides for solvers that work on its matrices.

mod anneal;
mod any_order;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
mod chain;
mod claim;
pub mod classic;
mod cleanup;
mod control;
mod curve;
mod dag;
mod descent;
mod floor;
mod frame;
pub mod list;
mod lns;
mod measure;
mod minimum;
mod moves;
pub mod paging;
mod price;
mod registry;
mod repair;
mod rng;
mod search;
mod segments;
mod sequence;
mod solver;
pub mod stages;
mod strategy;

pub use claim::Call;
pub use control::{Activity, Doing, MAX_THREADS, Observer, Patience, Phase, Progress, SolveControl};
pub use measure::{Figures, measure};
pub use minimum::minimize_peak;
pub use registry::solvers;
pub use rng::Rng;
pub use search::Search;
pub use solver::{Domain, Outcome, Proves, Solver};
