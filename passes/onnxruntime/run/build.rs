//! Compiles the heap meter where it can be preloaded.

use std::path::PathBuf;

mod cdylib {
    include!("../cdylib.rs");
}

/// The meter's source.
const METER: &str = "meter/heap_meter.rs";

fn main() {
    println!("cargo::rerun-if-changed={METER}");
    println!("cargo::rerun-if-changed=../cdylib.rs");
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
    let is_linux = cdylib::variable("CARGO_CFG_TARGET_OS")? == "linux";
    if !is_linux || cdylib::variable("CARGO_CFG_TARGET_ENV")? != "gnu" {
        return Ok(None);
    }
    cdylib::compile("remat_heap_meter", METER, &["-C", "opt-level=2"]).map(Some)
}
