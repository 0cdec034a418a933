//! The simulator, the format's corners, and the plans of the staged solvers against the checker.

mod import;
mod linear;
mod logs;
mod options;
mod staged;
mod support;
