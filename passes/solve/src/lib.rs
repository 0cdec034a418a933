//! Solvers for the rematerialization problem, in pure Rust.
//!
//! A [`Solver`] takes a [`Problem`](remat_plan::Problem) and returns an [`Outcome`]: a plan, where one was found, and a
//! certificate of what is claimed about it. A [`Registry`] holds the solvers of a program. [`SolveControl`] says how long and how
//! hard to search. [`minimize_peak`] answers the questions that come without a budget.
//!
//! # The local search
//! [`Search`] works on a sequence of runs: every scheduled op once, in reference order or another, with further runs of some of
//! them in between. One file holds one part of it, in the order in which a search meets them:
//!
//! 1. `dag`: the problem in flat arrays and scaled units;
//! 2. `sequence`: a sequence and the memory at each of its places, kept current while runs come, go and move, and the frame that is
//!    worked on;
//! 3. `repair`: recomputes are added, cheapest first, until the budget holds;
//! 4. `lns`: recomputes that became superfluous go; large neighbourhood search, some recomputes are removed and the rest is repaired
//!    again;
//! 5. `anneal`: simulated annealing with a `price` on excess memory, of recomputes and, in free order, of the order;
//! 6. `sink`: the way into a tight budget where repair alone fails, and to the lowest peak; `descent`: to the lowest peak within a
//!    duration;
//! 7. `rounds`: sequences that differ, of which stretches are put into each other, in a `pool` that all threads share;
//! 8. `search` and `strategy`: what ties them, and `minimum`: the same with the budget as the objective;
//! 9. `repeat`: blocks alike are found; `contract`: a network of few of them, whose sequences are done in all; `replicate`: the start that
//!    this gives;
//! 10. `large`: the search on very large graphs, frame by frame.
//!
//! `profile` says where the time of all this went.
//!
//! # Small problems
//! [`Small`] goes through all states of memory that plans of a small problem can come to, and proves what it finds (`small`). The lowest peak of
//! such a problem, and the floor, are what it says.
//!
//! # Series-parallel problems
//! Where a problem is made in series and in parallel, [`once_order`] finds an order without recomputes in polynomial time, often the one of least peak
//! (`series_parallel`, of `remat-planner`). Searches in free order begin from it.
//!
//! # Offsets
//! [`Packer`] is what `remat-place` asks for offsets where its own search gets no further; `remat-ortools` has one.
//!
//! # For solvers of other crates
//! [`stages`] has the stage form of the Checkmate paper for those that work on its matrices, [`Dag`] a problem in small integers and [`Meter`]
//! the limits of one thread for those that search, [`Call`] what is certified without a bound of one's own, [`network`] a problem for the orders of
//! `remat-planner`.

mod anneal;
mod best;
mod claim;
mod contract;
mod control;
mod curve;
mod dag;
mod descent;
mod floor;
mod large;
mod lns;
mod measure;
mod minimum;
mod network;
mod packer;
mod pool;
mod price;
mod profile;
mod registry;
mod repair;
mod repeat;
mod replicate;
mod rounds;
mod search;
mod sequence;
mod series_parallel;
mod sink;
mod small;
mod solver;
pub mod stages;
mod strategy;

pub use claim::Call;
pub use control::{Activity, Doing, MAX_THREADS, Meter, Observer, Patience, Phase, Progress, SolveControl};
pub use dag::Dag;
pub use floor::{LeastPeak, least_peak};
pub use measure::{Figures, measure};
pub use minimum::minimize_peak;
pub use network::network;
pub use packer::{Packed, Packer, Packing};
pub use profile::{Profile, Round, Spent};
pub use registry::{Registry, register};
pub use remat_planner::Rng;
pub use search::Search;
pub use series_parallel::{OnceOrder, once_order};
pub use small::Small;
pub use solver::{Domain, External, Outcome, Proves, Solver};
