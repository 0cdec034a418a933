//! ONNX Runtime as the command line finds it, and the processes that run models in it.

use std::time::Duration;

use remat::Model;
use remat_files::Surroundings;
use remat_onnxruntime_deploy::DeployError;
use remat_onnxruntime_run::{ChildLimits, Host};

use crate::args::RuntimeArgs;
use crate::embedding;
use crate::library::surroundings;

/// Variables that name the runtime's library, the first before the second.
const VARIABLES: [&str; 2] = ["REMAT_ORT_LIBRARY", "ORT_DYLIB_PATH"];

/// Name of the hidden command that runs models for the others.
pub(crate) const CHILD: &str = "measure-child";

/// How long loading a model and running it once takes, as far as can be told from the file. A run that is estimated to take long is not waited
/// for: the estimate of a loop is anything.
pub(crate) fn expected(model: &Model) -> Duration {
    let weights = model.external_bytes().map_or(0, |bytes| bytes.constants);
    Duration::from_nanos(model.baseline().duration).min(LONGEST_RUN) + Duration::from_secs(weights / LOADED_BYTES_PER_S)
}

/// Limits of a process that runs models: it is killed when the program is told to end, and after that time.
pub(crate) fn limits(time: Option<Duration>) -> ChildLimits<'static> {
    ChildLimits {
        time,
        cancel: Some(crate::interrupt::flag()),
    }
}

/// The longest run of which an estimate is believed.
const LONGEST_RUN: Duration = Duration::from_secs(1);

/// A slow disk.
const LOADED_BYTES_PER_S: u64 = 50_000_000;

impl RuntimeArgs {
    /// Looks for the runtime and loads it, in a process of its own.
    ///
    /// # Errors
    /// If there is none that can be loaded.
    pub(crate) fn find(&self) -> anyhow::Result<Host> {
        crate::scratch::prepare()?;
        let child = embedding::child(CHILD)?;
        let surroundings = self.surroundings();
        if surroundings.is_none() {
            return Err(DeployError::NoRuntime.into());
        }
        Ok(Host::find(child, &surroundings).map_err(DeployError::from)?)
    }

    /// Whether the user named a library: then it is an error that it does not load.
    pub(crate) fn is_named(&self) -> bool {
        let surroundings = self.surroundings();
        surroundings.named.is_some() && !surroundings.is_none()
    }

    /// What the library is looked for with.
    fn surroundings(&self) -> Surroundings {
        surroundings(self.ort_library.as_ref(), &VARIABLES)
    }
}
