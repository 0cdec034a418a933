//! ONNX Runtime as the command line finds it, and the processes that run models in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::Model;
use remat_onnxruntime_deploy::DeployError;
use remat_onnxruntime_run::{ChildLimits, Host, Surroundings};

use crate::args::RuntimeArgs;
use crate::embedding;

/// Variables that name the runtime's library, the first before the second.
const VARIABLES: [&str; 2] = ["REMAT_ORT_LIBRARY", "ORT_DYLIB_PATH"];

/// Variables that name an active environment of Python or Conda.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// What stands for a library where none is to be used.
const NO_LIBRARY: &str = "none";

/// Name of the hidden command that runs models for the others.
pub(crate) const CHILD: &str = "measure-child";

/// How long loading a model and running it once takes, as far as can be told from the file.
pub(crate) fn expected(model: &Model) -> Duration {
    let weights = model.external_bytes().map_or(0, |bytes| bytes.constants);
    Duration::from_nanos(model.baseline().duration) + Duration::from_secs(weights / LOADED_BYTES_PER_S)
}

/// Limits of a process that runs models: it is killed when the program is told to end, and after that time.
pub(crate) fn limits(time: Option<Duration>) -> ChildLimits<'static> {
    ChildLimits {
        time,
        cancel: Some(crate::interrupt::flag()),
    }
}

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
        if surroundings.named.as_deref() == Some(Path::new(NO_LIBRARY)) {
            return Err(DeployError::NoRuntime.into());
        }
        Ok(Host::find(child, &surroundings).map_err(DeployError::from)?)
    }

    /// Whether the user named a library: then it is an error that it does not load.
    pub(crate) fn is_named(&self) -> bool {
        let named = self.surroundings().named;
        named.is_some_and(|named| named != Path::new(NO_LIBRARY))
    }

    /// What the library is looked for with.
    fn surroundings(&self) -> Surroundings {
        let variable = |name: &&str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = || std::env::home_dir().map(|home| home.join(".local"));
        Surroundings {
            named: self.ort_library.clone().or_else(|| VARIABLES.iter().find_map(variable)),
            checkout: checkout(),
            environments: embedding::environments()
                .into_iter()
                .chain(ENVIRONMENTS.iter().filter_map(variable))
                .collect(),
            search_path: std::env::var_os("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect()),
            user_base: variable(&"PYTHONUSERBASE").or_else(home),
        }
    }
}

/// The checkout that the program was built from, if it is run by cargo or from the build folder there.
fn checkout() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2)?;
    let is_run_by_cargo = std::env::var_os("CARGO_MANIFEST_DIR").is_some_and(|run| Path::new(&run) == package);
    let executable = std::env::current_exe().ok()?.canonicalize().ok()?;
    let is_in_build_folder = executable.starts_with(root.canonicalize().ok()?.join("target"));
    (is_run_by_cargo || is_in_build_folder).then(|| root.to_owned())
}
