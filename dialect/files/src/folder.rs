//! Folders that appear whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

/// A folder on its way: files are written into [`OutputFolder::path`], beside its place. It is removed where it is not moved there.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    place: PathBuf,
    is_moved: bool,
}

impl OutputFolder {
    /// Where the files of a folder are written that goes to `place`.
    #[must_use]
    pub fn path_for(place: &Path) -> PathBuf {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        place.with_file_name(format!(".{name}.part"))
    }

    /// An empty folder, for a place where nothing is, an empty folder, or one with a file `mark`, which will be replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something else is there; those of the system.
    pub fn create(place: &Path, mark: &str) -> io::Result<Self> {
        let is_free = match std::fs::read_dir(place) {
            Ok(mut entries) => entries.next().is_none() || place.join(mark).is_file(),
            Err(_) => place.symlink_metadata().is_err(),
        };
        if !is_free {
            let why = format!("it is there already and has no `{mark}`: name another folder");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let path = Self::path_for(place);
        // What a process left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path)?;
        Ok(Self {
            path,
            place: place.to_owned(),
            is_moved: false,
        })
    }

    /// Where files are written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it goes.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Moves it to its place. What was there stays if that fails.
    ///
    /// # Errors
    /// Those of the system.
    pub fn commit(mut self) -> io::Result<()> {
        let old = self.path.with_extension("old");
        let _ = std::fs::remove_dir_all(&old);
        let had_one = std::fs::rename(&self.place, &old).is_ok();
        if let Err(error) = std::fs::rename(&self.path, &self.place) {
            if had_one {
                std::fs::rename(&old, &self.place)?;
            }
            return Err(error);
        }
        self.is_moved = true;
        let _ = std::fs::remove_dir_all(&old);
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if !self.is_moved {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_the_place_of_one_of_its_kind_and_of_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("form");
        let write = |content: &str| {
            let output = OutputFolder::create(&place, "mark")?;
            std::fs::write(output.path().join("mark"), content)?;
            output.commit()
        };
        write("one").expect("nothing is there");
        write("two").expect("one of its kind is there");
        assert_eq!(std::fs::read_to_string(place.join("mark")).expect("it is there"), "two");
        drop(OutputFolder::create(&place, "mark").expect("one of its kind is there"));
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing is left"
        );
        std::fs::rename(place.join("mark"), place.join("other")).expect("it is there");
        let refused = OutputFolder::create(&place, "mark").expect_err("something else is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    }
}
