//! The Checkmate paper (Jain et al., `MLSys` 2020): its integer program, and rounding its linear relaxation.
//!
//! # The program
//! `T` nodes in reference order and as many stages; the symbols are the paper's, sections 4.3 to 4.8:
//!
//! | symbol | value | meaning |
//! |---|---|---|
//! | `R[t,i]` | 0/1 | node `i` runs in stage `t` |
//! | `S[t,i]` | 0/1 | the results of `i` are held from stage `t - 1` into stage `t` |
//! | `FREE[t,i,k]` | 0/1 | in stage `t` the results of `i` are freed right after `k`, a node that needs them |
//! | `U[t,k]` | `0..=budget` | memory while `k` runs in stage `t`: its operands and its results both counted |
//!
//! Minimize the sum of `R[t,i]` times the duration of `i`, such that
//!
//! 1. what runs finds its operands: `R[t,v] <= R[t,u] + S[t,u]` for each edge from `u` to `v`;
//! 2. what is held was held or made: `S[t+1,i] <= S[t,i] + R[t,i]`;
//! 3. every node is computed: stage `t` ends with the first run of node `t` (section 4.6), so `R` and `S` are triangular and the
//!    linear relaxation is strong;
//! 4. `U[t,0] = R[t,0] m[0] + sum of S[t,i] m[i]`, and `U[t,k+1] = U[t,k] + R[t,k+1] m[k+1] -` the sum of `m[i] FREE[t,i,k]`;
//! 5. `FREE[t,i,k]` is 1 exactly if `k` runs in `t`, `i` is not held into `t + 1`, and nothing after `k` in `t` needs `i`
//!    ([`Freeing`]).
//!
//! First runs are left out of the objective: they take the same time in every plan. Equalities in 4 are inequalities here, since memory only has to be large enough. Rows fix what an op may not do: run again
//! (not recomputable), or run more often than the problem allows. Graph outputs are added to `U` of the stages after their own,
//! workspace and the duplicate of an output that is made again to `U[t,k]` of a run.
//!
//! With [`pages`] the program is that of the POET paper.
//!
//! A node with several results holds all of them or none, as in the paper; then the program does not cover all stage forms.

mod ilp;
mod layout;
mod lp;
pub mod model;
pub mod pages;
mod round;
mod setting;
mod size;
pub mod start;

pub use ilp::CheckmateIlp;
pub use layout::{Freeing, Layout};
pub use lp::CheckmateLp;
pub use setting::Setting;

use remat_solve::{Registry, Solver};

/// Adds the solvers of this crate.
pub fn register(registry: &mut Registry) {
    registry.add([&CheckmateIlp::NEW as &dyn Solver, &CheckmateLp]);
}
