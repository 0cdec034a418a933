//! Compiles the heap meter where it can be preloaded, and lets tests find OR-Tools where they link it.

use std::path::{Path, PathBuf};
use std::process::Command;

mod rpath {
    include!("../../ortools/rpath.rs");

    pub(super) fn run() {
        main();
    }
}

/// The meter's source.
const METER: &str = "meter/heap_meter.rs";

fn main() {
    rpath::run();
    println!("cargo::rerun-if-changed={METER}");
    println!("cargo::rustc-check-cfg=cfg(heap_meter)");
    match compile_meter() {
        Ok(Some(library)) => {
            println!("cargo::rustc-env=REMAT_HEAP_METER={}", library.display());
            println!("cargo::rustc-cfg=heap_meter");
        }
        Ok(None) => {}
        Err(why) => println!("cargo::warning=the heap meter is left out, memory peaks will not be measured: {why}"),
    }
}

/// The meter as a shared library; `None` where the system cannot preload it.
fn compile_meter() -> Result<Option<PathBuf>, String> {
    let variable = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let is_glibc = variable("CARGO_CFG_TARGET_OS")? == "linux" && variable("CARGO_CFG_TARGET_ENV")? == "gnu";
    if !is_glibc {
        return Ok(None);
    }
    let library = Path::new(&variable("OUT_DIR")?).join("libremat_heap_meter.so");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--crate-name", "remat_heap_meter", "--crate-type", "cdylib"]);
    rustc.args(["--edition", "2024", "-C", "opt-level=2", "-C", "panic=abort"]);
    rustc.args(["--target", &variable("TARGET")?]);
    if let Ok(linker) = variable("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let output = rustc.arg("-o").arg(&library).arg(METER).output();
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
