//! Logs of the repository to test with.

use std::path::{Path, PathBuf};

use remat_dtr::{Trace, read_log};

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the logs that belong to this repository.
pub(crate) fn folder() -> PathBuf {
    manifest().join("../../test/dtr-logs")
}

/// The training step of this repository.
pub(crate) fn training_step() -> Trace {
    let bytes = std::fs::read(folder().join("training_step.log")).expect("the log is in the repository");
    read_log(&bytes).expect("the log is well formed")
}
