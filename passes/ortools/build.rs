//! Lets tests find OR-Tools where they link it.

include!("rpath.rs");
