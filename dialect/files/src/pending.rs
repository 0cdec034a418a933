//! The files that are on their way, for a program that ends before they have their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that are on their way, so that a process that ends at once leaves none of them. Those whose writing goes on do not
/// get their names any more.
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
