//! Where MLIR lies, for what links it.

use std::env;
use std::path::Path;

/// Tells the libraries, binaries and tests of a crate where MLIR's library lies: the build script of every crate whose libraries, binaries or
/// tests link it. Harmless where nothing does.
pub fn rpath() {
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    if env::var_os("CARGO_CFG_UNIX").is_none() {
        return;
    }
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    println!(
        "cargo::rustc-link-arg=-Wl,-rpath,{}",
        Path::new(&prefix).join("lib").display()
    );
}
