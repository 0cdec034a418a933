//! The runtime at hand: which library there is, and how to run models in it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::PathBuf;
use std::time::Duration;

use remat_files::{SharedLibrary, Surroundings};

use crate::runner::{Runner, Task};
use crate::{ChildCommand, ChildLimits, OptimizationLevel, RuntimeError, SessionSettings};

/// Longest time to load a library.
const LOADING: Duration = Duration::from_secs(60);

/// A library of the runtime that can be loaded. The program itself never loads it, its children do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The library; a bare name is looked up by the system's loader.
    pub library: PathBuf,
    /// The version that it states, `1.31.1` for instance.
    pub version: String,
    /// How to start a process that runs models.
    pub child: ChildCommand,
}

impl Host {
    /// The first of the candidates that can be loaded.
    ///
    /// # Errors
    /// [`RuntimeError::Library`] of the first candidate, if there is none.
    pub fn find(child: ChildCommand, surroundings: &Surroundings) -> Result<Self, RuntimeError> {
        let mut first = None;
        for library in surroundings.candidates(&SharedLibrary::ONNX_RUNTIME) {
            let runner = Runner {
                child: &child,
                library: &library,
                limits: ChildLimits {
                    time: Some(LOADING),
                    cancel: None,
                },
            };
            match runner.ask(&SessionSettings::exact(OptimizationLevel::Off), Task::Version) {
                Ok(version) => {
                    return Ok(Self {
                        library,
                        version,
                        child,
                    });
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| RuntimeError::Library {
            path: format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}").into(),
            why: "it is in none of the places that are looked at".to_owned(),
        }))
    }

    /// What runs models here, within limits.
    #[must_use]
    pub fn runner<'a>(&'a self, limits: ChildLimits<'a>) -> Runner<'a> {
        Runner {
            child: &self.child,
            library: &self.library,
            limits,
        }
    }
}
