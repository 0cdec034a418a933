//! A shared library that other programs load, compiled of one file and what it names, with the standard library alone.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A variable that cargo sets for build scripts.
///
/// # Errors
/// It is not set.
pub fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// The library `libNAME.so` in the folder of the build script's outputs, compiled of `source` with these options of rustc.
///
/// # Errors
/// The first error of rustc.
pub fn compile(name: &str, source: &str, options: &[&str]) -> Result<PathBuf, String> {
    let library = Path::new(&variable("OUT_DIR")?).join(format!("lib{name}.so"));
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--crate-name", name, "--crate-type", "cdylib", "--edition", "2024"]);
    // A panic must not reach the program that loaded it.
    rustc.args(["-C", "panic=abort", "--target", &variable("TARGET")?]);
    if let Ok(linker) = variable("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let output = rustc.args(options).arg("-o").arg(&library).arg(source).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(library);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let first = words.lines().find(|line| line.starts_with("error"));
    Err(first.unwrap_or("rustc failed").to_owned())
}

/// Whether the target is Linux with glibc, for which such libraries are made.
///
/// # Errors
/// That of [`variable`].
pub fn is_for_target() -> Result<bool, String> {
    Ok(variable("CARGO_CFG_TARGET_OS")? == "linux" && variable("CARGO_CFG_TARGET_ENV")? == "gnu")
}
