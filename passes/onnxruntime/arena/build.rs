//! Compiles this crate a second time, as the shared library that ONNX Runtime loads, so that every program that writes plans has the
//! library at hand that follows them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-check-cfg=cfg(arena_library)");
    println!("cargo::rustc-check-cfg=cfg(arena_embedded)");
    match compile() {
        Ok(Some(library)) => {
            println!("cargo::rustc-env=REMAT_ARENA_LIBRARY={}", library.display());
            println!("cargo::rustc-cfg=arena_embedded");
        }
        Ok(None) => {}
        Err(why) => println!("cargo::warning=the arena library is left out, `--arena-plan` will not work: {why}"),
    }
}

/// The library; `None` where the system has not what it needs.
fn compile() -> Result<Option<PathBuf>, String> {
    let variable = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    if variable("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(None);
    }
    let library = Path::new(&variable("OUT_DIR")?).join("libremat_arena.so");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args([
        "--crate-name",
        "remat_arena",
        "--crate-type",
        "cdylib",
        "--edition",
        "2024",
    ]);
    rustc.args([
        "-C",
        "opt-level=3",
        "-C",
        "panic=abort",
        "-C",
        "strip=symbols",
        "-C",
        "codegen-units=1",
    ]);
    rustc.args(["-C", "overflow-checks=on", "--cfg", "arena_library"]);
    // The runtime's environment refers to the library when the session that loaded it is gone.
    rustc.args(["-C", "link-arg=-Wl,-z,nodelete"]);
    rustc.args(["--target", &variable("TARGET")?]);
    if let Ok(linker) = variable("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let output = rustc.arg("-o").arg(&library).arg("src/lib.rs").output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(Some(library));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(words
        .lines()
        .find(|line| line.starts_with("error"))
        .unwrap_or("rustc failed")
        .to_owned())
}
