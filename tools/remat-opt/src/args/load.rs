//! How a model is read and what counts.

use std::path::{Path, PathBuf};

use clap::Args;
use remat::onnx::ImportOptions;
use remat::plan::{Accounting, OrderMode, parse_bytes};
use remat::{DeviceMemory, LoadOptions};

use super::{Choice, GOAL, INPUT, Inputs, PagingArgs, RuntimeArgs};

/// What stdin may hold, as extensions.
const FORMS: Choice<&str> = Choice(&[
    ("onnx", "onnx", "An ONNX model"),
    ("mlir", "mlir", "A module of MLIR"),
    ("json", "json", "A node-link graph, a saved problem or a plan"),
    ("log", "log", "A log of an eager execution, plain or compressed"),
    ("sched", "sched", "A plan for devices"),
]);

const ACCOUNTINGS: Choice<Accounting> = Choice(&[
    ("runtime", Accounting::Runtime, "What an inference runtime takes"),
    ("paper", Accounting::Paper, "The convention of the papers"),
]);

const ORDERS: Choice<OrderMode> = Choice(&[
    ("free", OrderMode::Free, "Any order that the data flow allows"),
    ("fixed", OrderMode::Fixed, "The order of the input"),
]);

/// What shares of memory are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BaselineArg {
    Runtime,
    File,
}

const BASELINES: Choice<BaselineArg> = Choice(&[
    (
        "runtime",
        BaselineArg::Runtime,
        "What ONNX Runtime takes for the model as it came, where that can be told",
    ),
    ("file", BaselineArg::File, "Every op once, in the order of the file"),
]);

/// Sizes that a model leaves open; the same for every command that reads one.
#[derive(Debug, Args)]
pub(crate) struct OpenSizes {
    /// Value of a symbolic dimension; may be repeated.
    ///
    /// `?` stands for the dynamic extents of a module of MLIR.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = parse_assignment, help_heading = INPUT)]
    pub(crate) dims: Vec<(String, u64)>,
    /// Bytes of a tensor whose size cannot be inferred; may be repeated.
    #[arg(long = "size", value_name = "TENSOR=BYTES", value_parser = parse_assignment, help_heading = INPUT, hide_short_help = true)]
    pub(crate) sizes: Vec<(String, u64)>,
}

/// How a model is read and what counts; the same for every command that plans.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) open: OpenSizes,
    /// For `-` as input: what stdin holds [default: what its beginning looks like].
    #[arg(long, value_name = "FORM", value_parser = FORMS, help_heading = INPUT, hide_short_help = true)]
    input_format: Option<&'static str>,
    /// Device that times are estimated for, or that models run on [default: cpu].
    ///
    /// Plans must fit into its memory. Models run on `cpu`, `cuda` or `cuda:N`.
    #[arg(long, value_name = "NAME", help_heading = INPUT)]
    pub(crate) device: Option<String>,
    /// Devices of your own that `--device` may name, in the form of `passes/cost/src/devices.toml`.
    #[arg(long, value_name = "FILE.toml", help_heading = INPUT, hide_short_help = true)]
    pub(crate) device_file: Option<PathBuf>,
    /// Memory that plans must fit into, or `none` [default: what the device has].
    ///
    /// Results, inputs and workspace take it, and weights where the device has no flash for them.
    #[arg(long, value_name = "BYTES", value_parser = parse_device_memory, help_heading = INPUT, hide_short_help = true)]
    device_memory: Option<DeviceMemory>,
    /// Measured times per op that replace the estimates.
    ///
    /// A file that `remat-opt profile` wrote, or `measured` to measure them now.
    #[arg(long, value_name = "FILE|measured", help_heading = INPUT, hide_short_help = true)]
    profile: Option<PathBuf>,
    /// Which bytes count: `runtime` or `paper` [default: runtime for models, paper for graphs].
    ///
    /// `runtime`: outputs stay, sizes are aligned, kernels have workspace. `paper`: outputs die, as in the Checkmate and Moccasin papers.
    #[arg(long, value_name = "MODE", value_parser = ACCOUNTINGS, help_heading = INPUT, hide_short_help = true)]
    accounting: Option<Accounting>,
    /// Order of first computes: `free` or `fixed` [default: free for models, fixed for graphs].
    ///
    /// Whether they may change their order, or must keep that of the input.
    #[arg(long, value_name = "MODE", value_parser = ORDERS, help_heading = GOAL, hide_short_help = true)]
    order: Option<OrderMode>,
    /// How often one op may run at most [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = GOAL, hide_short_help = true)]
    max_computes: Option<u32>,
    /// What a per cent of memory is one of: `runtime` or `file` [default: runtime].
    ///
    /// `runtime`: what ONNX Runtime takes for the model as it came with the memory arena off, measured where it is there, else simulated.
    /// `file`: the peak of every op once, in the order of the file, as plans count memory; the only one for graphs, devices that are no
    /// CPU, `--order fixed` and `--accounting paper`.
    #[arg(long, value_name = "MODE", value_parser = BASELINES, default_value = "runtime", hide_default_value = true, help_heading = GOAL, hide_short_help = true)]
    pub(crate) baseline: BaselineArg,
    #[command(flatten)]
    pub(crate) paging: PagingArgs,
    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

impl OpenSizes {
    /// The sizes for a model of which nothing need be known but its nodes.
    pub(crate) fn import(&self) -> ImportOptions {
        ImportOptions {
            dims: self.dims.iter().cloned().collect(),
            sizes: self.sizes.iter().cloned().collect(),
            open_sizes: true,
        }
    }
}

impl LoadArgs {
    /// All options but the profile.
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            dims: self.open.dims.iter().cloned().collect(),
            sizes: self.open.sizes.iter().cloned().collect(),
            accounting: self.accounting,
            order: self.order,
            max_computes: self.max_computes,
            device: self.device.clone(),
            device_file: self.device_file.clone(),
            own_devices: Vec::new(),
            device_memory: self.device_memory,
            profile: None,
            second_memory: self.paging.second_memory(),
        }
    }

    /// Whether the profile is to be measured, not read.
    pub(crate) fn profile_is_measured(&self) -> bool {
        self.profile.as_ref().is_some_and(|path| path.as_os_str() == "measured")
    }

    /// The profile that is to be read.
    pub(crate) fn profile_file(&self) -> Option<&Path> {
        self.profile.as_deref().filter(|_| !self.profile_is_measured())
    }

    /// These files, and those that are named here.
    pub(crate) fn inputs<'a>(&'a mut self, files: impl IntoIterator<Item = &'a mut PathBuf>) -> Inputs<'a> {
        let files = files.into_iter().chain(&mut self.profile);
        Inputs {
            files: files.chain(&mut self.device_file).collect(),
            stdin_holds: self.input_format,
        }
    }
}

/// `NAME=N`; the name may itself contain `=`.
fn parse_assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.rsplit_once('=').ok_or("write NAME=N")?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("`{value}` is not a non-negative integer"))?;
    Ok((name.trim().to_owned(), value))
}

/// A size, or `none`.
fn parse_device_memory(text: &str) -> Result<DeviceMemory, String> {
    if text.trim().eq_ignore_ascii_case("none") {
        return Ok(DeviceMemory::Unlimited);
    }
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    Ok(DeviceMemory::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read() {
        assert_eq!(parse_assignment("a=b=8"), Ok(("a=b".to_owned(), 8)));
    }

    #[test]
    fn nonsense_is_rejected() {
        assert!(parse_assignment("batch").is_err());
        assert!(parse_assignment("batch=-1").is_err());
    }
}
