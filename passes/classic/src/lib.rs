//! Strategies that are older than solvers for the whole problem: the checkpointing of Chen and of Griewank for training steps, as the Checkmate
//! paper compares them, and list scheduling ([`ListScheduler`]) for orders of low peak.
//!
//! Each [`Strategy`] yields matrices `S` of [`remat_solve::stages`], which are completed, turned into sequences and lowered. They need to
//! know what is forward and what is backward ([`Roles`]); what is no training step is refused. [`curve`] gives all plans of a
//! strategy, [`Classic`] the cheapest of them that meets a budget. `docs/solvers/classic.md` says where they follow the paper's
//! artifact and where not.

mod binomial;
mod candidates;
mod curve;
mod fixed_set;
mod griewank;
mod list;
mod roles;
mod solver;
mod strategy;

use remat_solve::{Registry, Solver};

pub use candidates::{Candidates, Walk};
pub use curve::{Point, curve};
pub use list::ListScheduler;
pub use roles::{Roles, RolesError};
pub use solver::Classic;
pub use strategy::{Refusal, Strategy};

/// Adds the solvers of this crate.
pub fn register(registry: &mut Registry) {
    registry.add(Classic::ALL.iter().map(|solver| solver as &dyn Solver));
    registry.add([&ListScheduler as &dyn Solver]);
}
