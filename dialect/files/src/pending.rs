//! Temporary files of outputs that are not complete, for a program that ends before they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all incomplete outputs, so that a process can end at once without leaving any. Outputs that are still
/// being written never appear under their names.
pub fn remove_pending() {
    for path in pending().drain(..) {
        // One that has its name by now is not there.
        let _ = fs::remove_file(path);
    }
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Pending(PathBuf);

impl Pending {
    pub(crate) fn new(path: &Path) -> Self {
        pending().push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        pending().retain(|path| *path != self.0);
    }
}
