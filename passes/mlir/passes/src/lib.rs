//! Passes on MLIR functions.
//!
//! [`rematerialize`], [`annotate`], [`place`] and [`verify`] are what the passes `remat`, `remat-annotate`, `remat-place` and `remat-verify`
//! do, for programs that hold functions themselves; [`register_passes`] makes MLIR know the passes by name. Both ways run the same code.
//!
//! Without the feature `llvm` the crate is empty.

#[cfg(feature = "llvm")]
mod annotate;
#[cfg(feature = "llvm")]
mod blocks;
#[cfg(feature = "llvm")]
mod bodies;
#[cfg(feature = "llvm")]
mod bridge;
#[cfg(feature = "llvm")]
mod error;
#[cfg(feature = "llvm")]
mod lowered;
#[cfg(feature = "llvm")]
mod module;
#[cfg(feature = "llvm")]
mod options;
#[cfg(feature = "llvm")]
mod place;
#[cfg(feature = "llvm")]
mod planned;
#[cfg(feature = "llvm")]
mod planner;
#[cfg(feature = "llvm")]
mod rematerialize;
#[cfg(feature = "llvm")]
mod report;
#[cfg(feature = "llvm")]
mod standing;
#[cfg(feature = "llvm")]
mod tiles;
#[cfg(feature = "llvm")]
mod verify;

#[cfg(feature = "llvm")]
pub use annotate::annotate;
#[cfg(feature = "llvm")]
pub use bridge::{prove_with, register_dialect, register_passes};
#[cfg(feature = "llvm")]
pub use error::PassError;
#[cfg(feature = "llvm")]
pub use module::rematerialize_module;
#[cfg(feature = "llvm")]
pub use options::{ModelOptions, OptionError, PassOptions, PlaceOptions, VerifyOptions};
#[cfg(feature = "llvm")]
pub use place::{PlaceReport, place};
#[cfg(feature = "llvm")]
pub use remat_mlir as mlir;
#[cfg(feature = "llvm")]
pub use rematerialize::rematerialize;
#[cfg(feature = "llvm")]
pub use report::FunctionReport;
#[cfg(feature = "llvm")]
pub use verify::verify;
