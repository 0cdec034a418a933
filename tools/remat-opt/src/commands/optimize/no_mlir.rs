//! What stands for `mlir.rs` where this program is built without MLIR.

use std::time::Instant;

use anyhow::bail;

use super::args::OptimizeArgs;
use crate::job::Job;

pub(crate) fn run(_args: &OptimizeArgs, job: &Job<'_>, _started: Instant) -> anyhow::Result<()> {
    bail!(
        "`{}` is a module of MLIR, and this program is built without it; `third_party/fetch.sh` installs what it takes, then \
         `cargo build --release -p remat-opt --features mlir`",
        job.input.display()
    );
}
