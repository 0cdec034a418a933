//! Schedules with a second memory: what is recomputed, what is moved out and back, and when.
//!
//! A schedule is a sequence of items: a node runs, or a value comes back from the second memory. An instance of a value lasts from
//! the item that brings it into memory to its last use before the next such item; [`remat_plan::lower_events`] turns sequences into
//! plans by that rule. So every sequence of the first runs in reference order with items added anywhere behind the first run of what
//! they need is a schedule, and what is left to decide is what to add.
//!
//! | file | holds |
//! |---|---|
//! | `model` | nodes and values with their times, energies and transfers; what a schedule is to be good at |
//! | `sequence` | items, and instances with their uses |
//! | `evaluate` | memory, time, energy and second memory of a sequence |
//! | `bus` | time with DMA: what overlaps and what waits |
//! | `candidates` | what may be added to lower the memory at a place |
//! | `repair` | items are added, the cheapest for what they save first, until the budget holds; cleanup |
//! | `capuchin` | the policy of the Capuchin paper |
//! | `pofo` | a dynamic program over chains, after the POFO paper |
//! | `anneal` | simulated annealing over all of it, with prices on what exceeds the limits |
//! | `planner` | when values come back, so that transfers hide behind runs |
//! | `simulate` | exact figures of a plan |
//! | `solver` | the solvers |
//! | `work` | one call of a solver: the parts of the search and the best that they find |

mod anneal;
mod bus;
mod candidates;
mod capuchin;
mod evaluate;
mod model;
mod planner;
mod pofo;
mod repair;
mod sequence;
mod simulate;
mod solver;
mod work;

pub use planner::place_transfers;
pub use simulate::{PagedFigures, simulate};
pub use solver::PagingSearch;
