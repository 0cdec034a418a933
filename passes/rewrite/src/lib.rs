//! A plan applied to a graph: every run of an op becomes an op, every free a `dealloc`, every transfer a `page_out` or `page_in`.
//!
//! # Before and after
//! `a` is freed while `relu` runs and computed again for `add`, which reads it through the view `v`:
//!
//! | step | op in the new graph |
//! |---|---|
//! | `compute conv` | `conv`: x → a |
//! | `compute flat` | `flat`: a → v |
//! | `compute gemm` | `gemm`: v → b |
//! | `free a` | `dealloc a` |
//! | `compute relu` | `relu`: b → c |
//! | `free b` | `dealloc b` |
//! | `recompute conv` | `conv__remat1`: x → a__remat1 |
//! | `recompute flat` | `flat__remat1`: a__remat1 → v__remat1 |
//! | `compute add` | `add`: v__remat1, c → y |
//! | `free a` | `dealloc a__remat1` |
//! | `free c` | `dealloc c` |
//!
//! With a second memory `a` can leave and come back instead, with its view:
//!
//! | step | op in the new graph |
//! |---|---|
//! | `compute gemm` | `gemm`: v → b |
//! | `page_out a` | `page_out a` |
//! | `compute relu` | `relu`: b → c |
//! | `free b` | `dealloc b` |
//! | `page_in a` | `page_in a` |
//! | `compute add` | `add`: v, c → y |

mod error;
mod names;
mod rewrite;

pub use error::RewriteError;
pub use rewrite::{rewrite, rewrite_placed};
