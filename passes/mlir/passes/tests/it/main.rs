//! The passes on functions as programs hand them over.
#![cfg(feature = "llvm")]

mod generate;
mod meaning;
mod plugin;
mod schedules;
