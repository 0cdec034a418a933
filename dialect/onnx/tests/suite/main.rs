//! Models in, graphs and models out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

mod best;
mod common;
mod export;
mod exports;
mod external;
mod formulas;
mod hostile;
mod import;
mod in_place;
mod sizes;
mod streamed;
mod two_passes;
