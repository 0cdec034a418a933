//! What build scripts share: shared libraries that other programs load ([`cdylib`]), where MLIR lies for what links it ([`rpath`]), and how C++
//! against MLIR is compiled (`cpp`, a feature).

pub mod cdylib;
#[cfg(feature = "cpp")]
pub mod cpp;
mod rpath;

pub use rpath::rpath;
