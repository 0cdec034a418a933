//! Folders for temporary files that never stay for good: one that was left behind, because its process was killed, is removed by a later
//! process of the same user.
//!
//! Every folder has a file that its process holds locked (`flock`) as long as it lives. Whoever gets that lock knows that the folder is
//! abandoned. A lock is of the open file, so a process keeps it across a fork, and loses it however it ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;
#[cfg(unix)]
use std::time::Duration;

use tempfile::TempDir;

/// What the names of all folders begin with.
const PREFIX: &str = "remat-";
/// The file that is locked.
pub const LOCK: &str = ".lock";
/// A folder that is younger is left alone: its process may be about to lock it.
#[cfg(unix)]
const YOUNG: Duration = Duration::from_secs(60);

/// A folder for temporary files, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    /// Absent where files cannot be locked.
    lock: Option<File>,
}

impl ScratchFolder {
    /// A new folder; `kind` is a part of its name. The first one of a process removes folders that processes of this user left behind.
    ///
    /// # Errors
    /// If none can be made.
    pub fn new(kind: &str) -> std::io::Result<Self> {
        static CLEARED: Once = Once::new();
        let folder = tempfile::Builder::new().prefix(&format!("{PREFIX}{kind}")).tempdir()?;
        let lock = File::create_new(folder.path().join(LOCK)).ok();
        let lock = lock.filter(|file| file.try_lock().is_ok());
        CLEARED.call_once(|| clear(folder.path()));
        Ok(Self { folder, lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder, for the caller to remove; it counts as in use until the lock is dropped.
    #[must_use]
    pub fn keep(self) -> (PathBuf, Option<File>) {
        (self.folder.keep(), self.lock)
    }
}

/// Removes what was left behind beside a folder of this process.
#[cfg(unix)]
fn clear(own: &Path) {
    use std::os::unix::fs::MetadataExt;
    let (Some(parent), Ok(metadata)) = (own.parent(), own.symlink_metadata()) else {
        return;
    };
    let owner = metadata.uid();
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let is_owned = |metadata: std::fs::Metadata| metadata.is_dir() && metadata.uid() == owner;
        path != own && path.symlink_metadata().is_ok_and(is_owned)
    };
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for folder in named.map(|entry| entry.path()).filter(is_ours) {
        if let Some(_lock) = abandoned(&folder) {
            // Another process may be at the same folder.
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Without owners and this kind of locks, nothing is removed.
#[cfg(not(unix))]
fn clear(_own: &Path) {}

/// The lock of a folder whose process is gone.
#[cfg(unix)]
fn abandoned(folder: &Path) -> Option<File> {
    let path = folder.join(LOCK);
    let metadata = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let age = metadata.modified().ok()?.elapsed().ok()?;
    let lock = File::open(&path).ok().filter(|_| age >= YOUNG)?;
    lock.try_lock().is_ok().then_some(lock)
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// What a process leaves in `parent` that is killed; `age` old.
    fn left(parent: &Path, name: &str, age: Duration) -> (PathBuf, File) {
        let folder = parent.join(name);
        std::fs::create_dir(&folder).expect("it can be made");
        std::fs::write(folder.join("model.onnx"), "content").expect("it can be written");
        let lock = File::create_new(folder.join(LOCK)).expect("it can be written");
        lock.set_modified(SystemTime::now() - age).expect("its time can be set");
        (folder, lock)
    }

    #[test]
    fn folders_go_whose_process_is_gone_and_no_others() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = |name: &str| parent.path().join(name);
        let hour = Duration::from_secs(3_600);
        let (own, _) = left(parent.path(), "remat-own", hour);
        let (dead, _) = left(parent.path(), "remat-dead", hour);
        let (run, _) = left(parent.path(), "remat-run-dead", hour);
        let (alive, lock) = left(parent.path(), "remat-alive", hour);
        lock.lock().expect("it can be locked");
        let (young, _) = left(parent.path(), "remat-young", Duration::ZERO);
        let (other, _) = left(parent.path(), "other-dead", hour);
        std::fs::create_dir(path("remat-without-lock")).expect("it can be made");
        std::os::unix::fs::symlink(&other, path("remat-link")).expect("it can be made");
        clear(&own);
        for (folder, stays) in [
            (&own, true),
            (&dead, false),
            (&run, false),
            (&alive, true),
            (&young, true),
            (&other, true),
        ] {
            assert_eq!(folder.exists(), stays, "{}", folder.display());
        }
        assert!(path("remat-without-lock").exists());
        assert!(path("remat-link").exists());
        drop(lock);
        clear(&own);
        assert!(!alive.exists());
    }

    #[test]
    fn a_folder_is_in_use_until_it_is_dropped() {
        let folder = ScratchFolder::new("test-").expect("it can be made");
        let path = folder.path().to_owned();
        let other = File::open(path.join(LOCK)).expect("it is there");
        assert!(other.try_lock().is_err());
        drop(folder);
        assert!(!path.exists());
        let (path, lock) = ScratchFolder::new("test-").expect("it can be made").keep();
        drop(lock);
        let other = File::open(path.join(LOCK)).expect("it is there");
        assert!(other.try_lock().is_ok());
        std::fs::remove_dir_all(path).expect("it can be removed");
    }
}
