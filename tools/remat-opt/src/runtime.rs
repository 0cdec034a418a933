//! ONNX Runtime as the command line finds it, and how models are run in it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use remat::Model;
use remat_onnxruntime_deploy::DeployError;
use remat_onnxruntime_run::{
    ChildCommand, ChildLimits, Host, OptimizationLevel, Provider, SessionSettings, Surroundings,
};

use crate::cli::{RUNTIME, Switch};

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

/// Where the runtime is.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// Shared library of ONNX Runtime, or `none` to do without it [default: `REMAT_ORT_LIBRARY`, `ORT_DYLIB_PATH`, that of the checkout the
    /// program runs from, the wheel in `VIRTUAL_ENV`, `CONDA_PREFIX` or the python on `PATH`, the system's].
    #[arg(long, value_name = "PATH", help_heading = RUNTIME, hide_short_help = true)]
    pub(crate) ort_library: Option<PathBuf>,
    /// What was found, so that it is looked for once.
    #[arg(skip)]
    found: OnceLock<Box<Host>>,
}

impl RuntimeArgs {
    /// The runtime at hand.
    ///
    /// # Errors
    /// If there is none that can be loaded.
    pub(crate) fn host(&self) -> anyhow::Result<Host> {
        crate::scratch::prepare()?;
        let child = ChildCommand {
            program: std::env::current_exe().context("cannot find the program's own file")?,
            arguments: vec![CHILD.into()],
        };
        if let Some(found) = self.found.get() {
            return Ok(Host::clone(found));
        }
        let surroundings = self.surroundings();
        if surroundings.named.as_deref() == Some(Path::new(NO_LIBRARY)) {
            return Err(DeployError::NoRuntime.into());
        }
        let host = Host::find(child, &surroundings).map_err(DeployError::from)?;
        Ok(Host::clone(self.found.get_or_init(|| Box::new(host))))
    }

    /// Whether the user named a library: then it is an error that it does not load.
    pub(crate) fn is_named(&self) -> bool {
        let named = self.surroundings().named;
        named.is_some_and(|named| named != Path::new(NO_LIBRARY))
    }

    /// A library that the command line names is one that loads, whether or not the command comes to use it.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.ort_library.is_some() && self.is_named() {
            self.host()?;
        }
        Ok(())
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
            environments: ENVIRONMENTS.iter().filter_map(variable).collect(),
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

/// How sessions are made.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Graph optimization level: `off`, `basic`, `extended`, `all`.
    ///
    /// Outputs are comparable within one level only.
    #[arg(long, value_name = "LEVEL", default_value = "all", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) level: LevelArg,
    /// Whether the runtime's memory arena is on.
    ///
    /// It is where nothing is set; off, the peak is exact.
    #[arg(long, value_name = "on|off", default_value = "off", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) arena: Switch,
    /// Whether the runtime's memory pattern is on.
    ///
    /// It is where nothing is set; off, the peak is exact.
    #[arg(long, value_name = "on|off", default_value = "off", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) pattern: Switch,
    /// Threads within one node; 0 for as many as the runtime wants.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::cli::parse_intra_threads, help_heading = RUNTIME,
        hide_short_help = true)]
    pub(crate) intra_threads: usize,
}

/// The runtime's words for its levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LevelArg {
    /// Nodes run as they stand in the file.
    Off,
    /// Constant folding, common subexpressions, redundant nodes.
    Basic,
    /// Basic, and fusion.
    Extended,
    /// Extended, and layouts: the runtime's default.
    All,
}

impl LevelArg {
    pub(crate) fn level(self) -> OptimizationLevel {
        match self {
            Self::Off => OptimizationLevel::Off,
            Self::Basic => OptimizationLevel::Basic,
            Self::Extended => OptimizationLevel::Extended,
            Self::All => OptimizationLevel::All,
        }
    }
}

impl SessionArgs {
    /// The library's settings; `device` is that of the command line, `dims` its dimensions.
    pub(crate) fn settings(&self, device: Option<&str>, dims: &[(String, u64)]) -> anyhow::Result<SessionSettings> {
        Ok(SessionSettings {
            level: self.level.level(),
            arena: self.arena.is_on(),
            memory_pattern: self.pattern.is_on(),
            threads: self.intra_threads,
            dims: dims.iter().cloned().collect(),
            provider: device.map_or(Ok(Provider::Cpu), provider)?,
        })
    }
}

/// `cpu`, `cuda` or `cuda:N`.
pub(crate) fn provider(device: &str) -> anyhow::Result<Provider> {
    let number = match device {
        "cpu" => return Ok(Provider::Cpu),
        "cuda" => Some(0),
        _ => device.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
    };
    let unknown = || anyhow::anyhow!("models run on `cpu`, `cuda` or `cuda:N`, not on `{device}`");
    number.map(Provider::Cuda).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_and_others_refused() {
        assert_eq!(provider("cpu").ok(), Some(Provider::Cpu));
        assert_eq!(provider("cuda").ok(), Some(Provider::Cuda(0)));
        assert_eq!(provider("cuda:3").ok(), Some(Provider::Cuda(3)));
        assert!(provider("cuda:").is_err());
        assert!(provider("gpu").is_err());
    }
}
