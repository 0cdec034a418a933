//! The files that a command reads and writes: no output may overwrite an input, or another output.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::escape::shown;
use crate::write::destination;

/// Why a path is not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The output is a file that the command reads, whatever name or link it is given by.
    #[error("refusing to write {what} to `{}`: it is {input_what} (`{}`)", shown(path.display()), shown(input.display()))]
    IsInput {
        /// What would be written.
        what: String,
        /// Where.
        path: PathBuf,
        /// What the file is to the command.
        input_what: String,
        /// The name that the command reads it by.
        input: PathBuf,
    },
    /// Two outputs are one file.
    #[error("`{}` cannot be both {first} and {second}: give each a file of its own", shown(path.display()))]
    Twice {
        /// The file.
        path: PathBuf,
        /// One output.
        first: String,
        /// The other.
        second: String,
    },
    /// The output is not a regular file, or cannot become one.
    #[error("cannot write {what} to `{}`: {source}", shown(path.display()))]
    Unwritable {
        /// What would be written.
        what: String,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The files that one command reads and writes.
#[derive(Debug, Default)]
pub struct Outputs {
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

#[derive(Clone, Debug)]
struct Named {
    what: String,
    path: PathBuf,
    identity: Identity,
}

/// What makes two paths the same file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    /// The path with links resolved.
    place: PathBuf,
    /// Device and number of the file on it, where it exists and the system has such.
    inode: Option<(u64, u64)>,
}

impl Identity {
    fn is(&self, other: &Self) -> bool {
        self.place == other.place || self.inode.is_some() && self.inode == other.inode
    }
}

impl Outputs {
    /// Adds a file that is read; `what` names it for messages, such as `the model`. A path without a file is ignored: nothing can be destroyed there.
    ///
    /// # Errors
    /// [`OutputError::IsInput`] if it is one of the outputs.
    pub fn reads(&mut self, what: &str, path: &Path) -> Result<(), OutputError> {
        let Ok(place) = path.canonicalize() else { return Ok(()) };
        let input = Named {
            what: what.to_owned(),
            path: path.to_owned(),
            identity: Identity {
                inode: inode(path),
                place,
            },
        };
        if let Some(output) = self.outputs.iter().find(|output| output.identity.is(&input.identity)) {
            return Err(is_input(output, &input));
        }
        self.inputs.push(input);
        Ok(())
    }

    /// Adds a file that will be written; `what` names it for messages, such as `the plan`.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn writes(&mut self, what: &str, path: &Path) -> Result<(), OutputError> {
        let (place, there) = destination(path).map_err(|source| OutputError::Unwritable {
            what: what.to_owned(),
            path: path.to_owned(),
            source,
        })?;
        let output = Named {
            what: what.to_owned(),
            path: path.to_owned(),
            identity: Identity {
                inode: there.and_then(|_| inode(path)),
                place,
            },
        };
        if let Some(input) = self.inputs.iter().find(|input| input.identity.is(&output.identity)) {
            return Err(is_input(&output, input));
        }
        if let Some(first) = self.outputs.iter().find(|first| first.identity.is(&output.identity)) {
            return Err(OutputError::Twice {
                path: output.path,
                first: first.what.clone(),
                second: output.what,
            });
        }
        self.outputs.push(output);
        Ok(())
    }
}

fn is_input(output: &Named, input: &Named) -> OutputError {
    OutputError::IsInput {
        what: output.what.clone(),
        path: output.path.clone(),
        input_what: input.what.clone(),
        input: input.path.clone(),
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<(u64, u64)> {
    None
}
