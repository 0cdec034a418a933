//! Lets binaries and tests find OR-Tools where they link it.

include!("../../passes/ortools/rpath.rs");
