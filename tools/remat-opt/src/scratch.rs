//! The one folder for all temporary files of the program and its children, so that they can be removed wherever it ends.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use remat_files::ScratchFolder;

/// The folder, and what tells other processes that it is in use.
static FOLDER: Mutex<Option<(PathBuf, Option<File>)>> = Mutex::new(None);

/// How often the removal is tried again, because somebody still writes there.
const TRIES: usize = 20;

/// Makes the folder, once, and has everybody who asks for a temporary file put it there.
///
/// # Errors
/// If the system's folder for temporary files cannot be written.
pub(crate) fn prepare() -> anyhow::Result<()> {
    // A call ends by returning, and every temporary file goes with what made it.
    if crate::console::is_captured() {
        return Ok(());
    }
    let mut folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    if folder.is_none() {
        let made = ScratchFolder::new("").context("cannot make a folder for temporary files")?;
        let (path, lock) = made.keep();
        // It is set here and nowhere else.
        let _ = tempfile::env::override_temp_dir(&path);
        *folder = Some((path, lock));
    }
    Ok(())
}

/// Removes the folder with all that is in it.
pub(crate) fn remove() {
    let Some((folder, _lock)) = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return;
    };
    for _ in 0..TRIES {
        match std::fs::remove_dir_all(&folder) {
            Err(_) if folder.exists() => std::thread::yield_now(),
            _ => return,
        }
    }
    tracing::warn!("`{}` could not be removed", folder.display());
}

/// Removes the folder where the program leaves `main`, by a panic too.
pub(crate) struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        remove();
    }
}
