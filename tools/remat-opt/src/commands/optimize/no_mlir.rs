//! What stands for `mlir.rs` where this program is built without MLIR.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;

use crate::cli::OptimizeArgs;

pub(crate) fn run(_args: &OptimizeArgs, input: &Path, _started: Instant) -> anyhow::Result<()> {
    bail!(
        "`{}` is a module of MLIR, and this program is built without it; `third_party/fetch.sh` installs what it takes, then \
         `cargo build --release -p remat-opt --features mlir`",
        input.display()
    );
}
