//! Logs to test with: those beside the workspace, where they are at hand, and those of the repository.

use std::path::{Path, PathBuf};

use remat_dtr::{Trace, read_log};

/// The logs of the DTR paper, which belong to its authors and are no part of this repository.
pub(crate) const PAPER_LOGS: [&str; 4] = ["resnet32", "unet", "densenet121", "lstm"];

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A log of the paper, if the folder `shared/dtr-logs` lies beside the workspace.
#[expect(clippy::print_stderr, reason = "says why a test was skipped")]
pub(crate) fn paper_log(name: &str) -> Option<Trace> {
    let path = manifest().join(format!("../../../shared/dtr-logs/{name}.log.gz"));
    match std::fs::read(&path) {
        Ok(bytes) => Some(read_log(&bytes).expect("the logs of the paper are well formed")),
        Err(error) => {
            eprintln!("skipped: `{}` cannot be read: {error}", path.display());
            None
        }
    }
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
