//! Compiles the heap meter where it can be preloaded.

use std::path::PathBuf;

use remat_build::cdylib;

/// The meter's source.
const METER: &str = "meter/heap_meter.rs";

fn main() {
    println!("cargo::rerun-if-changed={METER}");
    println!("cargo::rustc-check-cfg=cfg(heap_meter)");
    match meter() {
        Ok(Some(library)) => {
            println!("cargo::rustc-env=REMAT_HEAP_METER={}", library.display());
            println!("cargo::rustc-cfg=heap_meter");
        }
        Ok(None) => {}
        Err(why) => println!("cargo::warning=the heap meter is left out, memory peaks will not be measured: {why}"),
    }
}

/// The meter as a shared library; `None` where the system cannot preload it.
fn meter() -> Result<Option<PathBuf>, String> {
    if !cdylib::is_for_target()? {
        return Ok(None);
    }
    cdylib::compile("remat_heap_meter", METER, &["-C", "opt-level=2"]).map(Some)
}
