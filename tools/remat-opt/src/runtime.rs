//! ONNX Runtime as the command line finds it, and how models are run in it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use remat::ort::{ChildCommand, Host, OptimizationLevel, Provider, SessionSettings, Surroundings};

/// Variables that name the runtime's library, the first before the second.
const VARIABLES: [&str; 2] = ["REMAT_ORT_LIBRARY", "ORT_DYLIB_PATH"];

/// Name of the hidden command that runs models for the others.
pub(crate) const CHILD: &str = "measure-child";

/// Where the runtime is.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// Shared library of ONNX Runtime [default: `REMAT_ORT_LIBRARY`, `ORT_DYLIB_PATH`, `third_party/onnxruntime/lib` here or beside
    /// the program, the wheel in the active virtual environment, the system's].
    #[arg(long, value_name = "PATH")]
    pub(crate) ort_library: Option<PathBuf>,
}

impl RuntimeArgs {
    /// The runtime at hand.
    ///
    /// # Errors
    /// If there is none that can be loaded.
    pub(crate) fn host(&self) -> anyhow::Result<Host> {
        let child = ChildCommand {
            program: std::env::current_exe().context("cannot find the program's own file")?,
            arguments: vec![CHILD.into()],
        };
        Ok(Host::find(child, &self.surroundings()).map_err(remat::Error::from)?)
    }

    /// What the library is looked for with.
    fn surroundings(&self) -> Surroundings {
        let variable = |name: &&str| std::env::var_os(name).filter(|value| !value.is_empty());
        let named = VARIABLES.iter().find_map(variable).map(PathBuf::from);
        let executable = std::env::current_exe().ok();
        Surroundings {
            named: self.ort_library.clone().or(named),
            working_directory: std::env::current_dir().ok(),
            executable_folder: executable.as_deref().and_then(Path::parent).map(Path::to_owned),
            virtual_env: std::env::var_os("VIRTUAL_ENV").map(PathBuf::from),
        }
    }
}

/// How sessions are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running models")]
pub(crate) struct SessionArgs {
    /// The runtime's graph optimization level; outputs are comparable within one level only.
    #[arg(long, value_name = "LEVEL", default_value = "all")]
    pub(crate) level: LevelArg,
    /// Leave the runtime's memory arena on, as it is by default; off, the peak is exact.
    #[arg(long)]
    pub(crate) arena: bool,
    /// Leave the runtime's memory pattern on, as it is by default; off, the peak is exact.
    #[arg(long)]
    pub(crate) pattern: bool,
    /// Threads within one node; 0 for as many as the runtime wants.
    #[arg(long, value_name = "N", default_value_t = 1)]
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
    pub(crate) fn settings(&self, device: &str, dims: &[(String, u64)]) -> anyhow::Result<SessionSettings> {
        Ok(SessionSettings {
            level: self.level.level(),
            arena: self.arena,
            memory_pattern: self.pattern,
            threads: self.intra_threads,
            dims: dims.iter().cloned().collect(),
            provider: provider(device)?,
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
