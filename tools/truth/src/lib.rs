//! The best plans of tiny problems, by trying everything, and what solvers claim held against them.
//!
//! | module | holds |
//! |---|---|
//! | [`least`](crate::least()) | the least duration of all plans, of those in fixed order, of those in stage form: by Dijkstra's algorithm over all states of memory, from the rules of the checker alone |
//! | [`sequences`] | the same by enumerating sequences of scheduled ops, for tests of models that are defined by them |
//! | [`paging`] | the least energy of plans with a second memory |
//! | [`problems`] | random tiny problems with sizes and durations of all magnitudes |
//! | [`offsets`] | the least height of buffers in one block |
//! | [`answers`] | answers of one solver, replayed and held against the best plan |
//! | [`judge`] | whether an answer and its certificate are true |
//!
//! Only tests and `remat-bench truth` use this crate.

pub mod answers;
pub mod judge;
mod least;
pub mod offsets;
pub mod paging;
pub mod problems;
pub mod sequences;

pub use least::{Space, least};
