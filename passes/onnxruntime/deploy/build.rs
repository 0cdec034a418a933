//! Lets tests find OR-Tools where they link it.

include!("../../ortools/rpath.rs");
