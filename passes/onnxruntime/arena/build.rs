//! Compiles this crate a second time, as the shared library that ONNX Runtime loads, so that every program that writes plans has the
//! library at hand that follows them.

use std::path::PathBuf;

use remat_build::cdylib;

/// How it is compiled: for speed, small, and with a configuration of its own. The runtime's environment refers to it when the session that
/// loaded it is gone, so it is never unloaded.
const OPTIONS: [&str; 12] = [
    "-C",
    "opt-level=3",
    "-C",
    "codegen-units=1",
    "-C",
    "strip=symbols",
    "-C",
    "overflow-checks=on",
    "-C",
    "link-arg=-Wl,-z,nodelete",
    "--cfg",
    "arena_library",
];

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../../../dialect/formula/src");
    println!("cargo::rustc-check-cfg=cfg(arena_library)");
    println!("cargo::rustc-check-cfg=cfg(arena_embedded)");
    match library() {
        Ok(Some(library)) => {
            println!("cargo::rustc-env=REMAT_ARENA_LIBRARY={}", library.display());
            println!("cargo::rustc-cfg=arena_embedded");
        }
        Ok(None) => {}
        Err(why) => println!("cargo::warning=the arena library is left out, memory will not be planned: {why}"),
    }
}

/// The library; `None` where the system has not what it needs.
fn library() -> Result<Option<PathBuf>, String> {
    if !cdylib::is_for_target()? {
        return Ok(None);
    }
    cdylib::compile("remat_arena", "src/lib.rs", &OPTIONS).map(Some)
}
