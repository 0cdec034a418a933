//! Where ONNX Runtime is, and how models are run in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use remat_onnxruntime_run::{OptimizationLevel, Provider, SessionSettings};

use super::search::parse_threads;
use super::{Choice, RUNTIME, SWITCH};

/// The runtime's words for its levels.
pub(crate) const LEVELS: Choice<OptimizationLevel> = Choice(&[
    ("off", OptimizationLevel::Off, "Nodes run as they stand in the file"),
    (
        "basic",
        OptimizationLevel::Basic,
        "Constant folding, common subexpressions, redundant nodes",
    ),
    ("extended", OptimizationLevel::Extended, "Basic, and fusion"),
    (
        "all",
        OptimizationLevel::All,
        "Extended, and layouts: the runtime's default",
    ),
]);

/// Where the runtime is.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// Shared library of ONNX Runtime, or `none` to do without it [default: `REMAT_ORT_LIBRARY`, `ORT_DYLIB_PATH`, that of the checkout the
    /// program runs from, the wheel in `VIRTUAL_ENV`, `CONDA_PREFIX` or the python on `PATH`, the system's].
    #[arg(long, value_name = "PATH", help_heading = RUNTIME, hide_short_help = true)]
    pub(crate) ort_library: Option<PathBuf>,
}

/// How sessions are made.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Graph optimization level: `off`, `basic`, `extended`, `all`.
    ///
    /// Outputs are comparable within one level only.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, default_value = "all", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) level: OptimizationLevel,
    /// Whether the runtime's memory arena is on.
    ///
    /// It is where nothing is set; off, the peak is exact.
    #[arg(long, value_name = "on|off", action = ArgAction::Set, value_parser = SWITCH, default_value = "on", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) arena: bool,
    /// Whether the runtime's memory pattern is on.
    ///
    /// It is where nothing is set; off, the peak is exact.
    #[arg(long, value_name = "on|off", action = ArgAction::Set, value_parser = SWITCH, default_value = "on", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) pattern: bool,
    /// Threads within one node; 0 for as many as the runtime wants.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_intra_threads, help_heading = RUNTIME,
        hide_short_help = true)]
    pub(crate) intra_threads: usize,
}

impl SessionArgs {
    /// The library's settings; `device` is that of the command line, `dims` its dimensions.
    pub(crate) fn settings(
        &self,
        device: Option<&str>,
        dims: BTreeMap<String, u64>,
    ) -> anyhow::Result<SessionSettings> {
        Ok(SessionSettings {
            level: self.level,
            arena: self.arena,
            memory_pattern: self.pattern,
            threads: self.intra_threads,
            dims,
            provider: device.map_or(Ok(Provider::Cpu), provider)?,
            arena_library: None,
            shared_arena: None,
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

/// A number of threads within one node, 0 for as many as the runtime wants.
pub(crate) fn parse_intra_threads(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { parse_threads(text) }
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
