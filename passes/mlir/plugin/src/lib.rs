//! `libremat.so`: the passes and the dialect, for `mlir-opt --load-pass-plugin` and `--load-dialect-plugin`.
//!
//! Without the feature `llvm` the library is empty.

#[cfg(feature = "llvm")]
mod entry;
