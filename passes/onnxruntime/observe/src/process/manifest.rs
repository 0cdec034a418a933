//! The manifest of a loadable form: a line for each fact, so that a loader of a few lines in any language reads it.
//!
//! ```text
//! remat-process 1
//! runtime 1.31.1                              the version of ONNX Runtime that it was made for
//! processor x86_64 avx2 !avx512f ..           architecture, features that the processor has, and that it lacks
//! model model.onnx 41681 blake3:0f3a..        the optimized model: name, bytes, hash
//! level off                                   its graph optimization level
//! portable portable.onnx 52011 blake3:..      the model for other versions and processors
//! portable-level all                          its graph optimization level
//! file weights.data 98062336 blake3:..        what else has to be there
//! resident 62914560                           bytes of the weights that stay in memory; only where not all of them do
//! promise python 61865984 74448896            what a process takes: bytes that must be there, and that may be dropped
//! ```
//!
//! Beside each model lies its plan of memory (`.arena`), and the library `libremat_arena.so`; both are among the files. Names have no spaces.

use std::fmt;
use std::path::Path;

use super::ledgers::Promise;
use crate::error::ArenaPlanError;
use crate::plan::hash;

/// The name of the manifest.
pub const MANIFEST: &str = "process.remat";
/// What it begins with.
const HEADER: &str = "remat-process 1";

/// What is said of a loadable form.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) runtime: String,
    pub(super) processor: String,
    pub(super) model: Listed,
    pub(super) level: &'static str,
    pub(super) portable: Listed,
    pub(super) portable_level: String,
    pub(super) files: Vec<Listed>,
    pub(super) resident: Option<u64>,
    pub(super) promises: Vec<Promise>,
}

/// A file of the folder.
#[derive(Debug)]
pub(super) struct Listed {
    name: String,
    bytes: u64,
    hash: String,
}

impl Listed {
    pub(super) fn of(path: &Path) -> Result<Self, ArenaPlanError> {
        let length = path.metadata().map_err(|error| ArenaPlanError::File {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: length.len(),
            hash: hash(path)?,
        })
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.bytes, self.hash)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(f, "runtime {}", self.runtime)?;
        writeln!(f, "processor {}", self.processor)?;
        writeln!(f, "model {}", self.model)?;
        writeln!(f, "level {}", self.level)?;
        writeln!(f, "portable {}", self.portable)?;
        writeln!(f, "portable-level {}", self.portable_level)?;
        for file in &self.files {
            writeln!(f, "file {file}")?;
        }
        if let Some(bytes) = self.resident {
            writeln!(f, "resident {bytes}")?;
        }
        for promise in &self.promises {
            let Promise {
                program,
                must_be_there_bytes,
                may_be_dropped_bytes,
            } = promise;
            writeln!(
                f,
                "promise {} {must_be_there_bytes} {may_be_dropped_bytes}",
                program.name()
            )?;
        }
        Ok(())
    }
}
