//! How C++ against MLIR is compiled.

use std::env;
use std::path::{Path, PathBuf};

/// Where LLVM lies.
#[must_use]
pub fn prefix() -> PathBuf {
    PathBuf::from(env::var_os("MLIR_SYS_220_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into()))
}

/// Compiles as LLVM's libraries are compiled, with the headers of the dialect: `include`, and those that TableGen made, `generated`.
#[must_use]
pub fn build(prefix: &Path, include: &Path, generated: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .compiler(prefix.join("bin/clang++"))
        .std("c++17")
        .include(include)
        .flag("-isystem")
        .flag(generated)
        .flag("-isystem")
        .flag(prefix.join("include"))
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility=hidden")
        // What `mlir::Pass` holds depends on it.
        .define("NDEBUG", None)
        .opt_level(2)
        .debug(false);
    build
}
