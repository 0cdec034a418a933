//! Inputs to start from: the files of other tests, and the corpus of each target.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

/// Longest seed: what is longer makes fuzzing slow and finds no more.
const MOST_BYTES: u64 = 40_000;

/// One input.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub data: Vec<u8>,
}

/// The seeds of a target, ordered by path. `root` is the repository.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn seeds(target: &Target, root: &Path) -> io::Result<Vec<Seed>> {
    let own = format!("test/fuzz/{}", target.name);
    let mut paths = Vec::new();
    for place in target.seeds.iter().copied().chain([own.as_str()]) {
        let place = root.join(place);
        if place.is_dir() {
            for entry in fs::read_dir(&place)? {
                paths.push(entry?.path());
            }
        } else {
            paths.push(place);
        }
    }
    paths.retain(|path| {
        let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
        let is_input = path.extension().is_none_or(|kind| kind != "md" && kind != "py");
        is_small && is_input
    });
    paths.sort();
    let read = |path: PathBuf| {
        let data = fs::read(&path)?;
        Ok(Seed { path, data })
    };
    paths.into_iter().map(read).collect()
}
