//! How a model is read and what counts.

use std::collections::{BTreeMap, BTreeSet};
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
        "What ONNX Runtime takes for the original model, where that is known",
    ),
    ("file", BaselineArg::File, "Every op once, in the order of the file"),
]);

/// Sizes that a model leaves open; the same for every command that reads one.
#[derive(Debug, Args)]
pub(crate) struct OpenSizes {
    /// Value of a symbolic dimension, which stays free; may be repeated.
    ///
    /// The written model accepts every other value, too, with correct outputs; peaks are for this value. `?` stands for the dynamic extents of
    /// a module of MLIR.
    #[arg(long = "dim", value_name = "NAME=N,..", value_parser = parse_dims, help_heading = INPUT)]
    dims: Vec<Assignments>,
    /// Fix a symbolic dimension: the written model accepts no other value. May be repeated.
    ///
    /// A name alone fixes it at the value of `--dim`; `\,` is a comma that is part of a name. A fused chain is cut into tiles along a dimension only if that is fixed.
    #[arg(long = "fix-dim", value_name = "NAME[=N],..", value_parser = parse_fixed, help_heading = INPUT, hide_short_help = true)]
    fixed: Vec<Fixed>,
    /// Bytes of a tensor whose size cannot be inferred; may be repeated.
    #[arg(long = "size", value_name = "TENSOR=BYTES,..", value_parser = parse_sizes, help_heading = INPUT, hide_short_help = true)]
    sizes: Vec<Assignments>,
}

/// What one option assigns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assignments(Vec<(String, u64)>);

/// Dimensions that one option fixes, each at a value of its own or at that of `--dim`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fixed(Vec<(String, Option<u64>)>);

/// How a model is read and what counts; the same for every command that plans.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) open: OpenSizes,
    /// For `-` as input: what stdin holds [default: recognized by its first bytes].
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
    /// Memory that plans must fit into, or `none` [default: that of the device].
    ///
    /// It holds results, inputs and workspace, and weights if the device has no flash for them.
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
    /// `fixed` keeps the order of the input.
    #[arg(long, value_name = "MODE", value_parser = ORDERS, help_heading = GOAL, hide_short_help = true)]
    order: Option<OrderMode>,
    /// Maximum number of runs of one op [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = GOAL, hide_short_help = true)]
    max_computes: Option<u32>,
    /// What shares of memory refer to: `runtime` or `file` [default: runtime].
    ///
    /// `runtime`: the peak of the original model in ONNX Runtime with the memory arena off, measured if the runtime is found, else simulated.
    /// `file`: the peak of every op once, in the order of the file, as plans count memory; always used for graphs, devices other than
    /// CPUs, `--order fixed` and `--accounting paper`.
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
            dims: self.dims(),
            fixed: self.fixed(),
            sizes: self.sizes(),
            open_sizes: true,
        }
    }

    /// How a model is read of which only these sizes are said.
    pub(crate) fn load(&self) -> LoadOptions {
        LoadOptions {
            dims: self.dims(),
            fixed_dims: self.fixed(),
            sizes: self.sizes(),
            ..LoadOptions::default()
        }
    }

    /// Values of dimensions, those that are fixed among them.
    pub(crate) fn dims(&self) -> BTreeMap<String, u64> {
        let fixed = self.fixed.iter().flat_map(|Fixed(list)| list);
        let fixed = fixed.filter_map(|(name, value)| Some((name.clone(), (*value)?)));
        let given = self.dims.iter().flat_map(|Assignments(list)| list).cloned();
        given.chain(fixed).collect()
    }

    /// # Errors
    /// If one dimension is given two values.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let fixed = self.fixed.iter().flat_map(|Fixed(list)| list);
        let fixed = fixed.filter_map(|(name, value)| Some((name, (*value)?)));
        let given = self.dims.iter().flat_map(|Assignments(list)| list);
        let given = given.map(|(name, value)| (name, *value));
        let mut known = BTreeMap::new();
        for (name, value) in given.chain(fixed) {
            if let Some(other) = known.insert(name, value).filter(|&other| other != value) {
                anyhow::bail!(
                    "dimension `{}` cannot be both {other} and {value}",
                    remat_files::shown(name)
                );
            }
        }
        Ok(())
    }

    /// Names of dimensions that are fixed.
    pub(crate) fn fixed(&self) -> BTreeSet<String> {
        let fixed = self.fixed.iter().flat_map(|Fixed(list)| list);
        fixed.map(|(name, _)| name.clone()).collect()
    }

    fn sizes(&self) -> BTreeMap<String, u64> {
        let given = self.sizes.iter().flat_map(|Assignments(list)| list);
        given.cloned().collect()
    }
}

impl LoadArgs {
    /// All options but the profile.
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            accounting: self.accounting,
            order: self.order,
            max_computes: self.max_computes,
            device: self.device.clone(),
            device_file: self.device_file.clone(),
            device_memory: self.device_memory,
            second_memory: self.paging.second_memory(),
            ..self.open.load()
        }
    }

    /// What the command line says of how a model is read, for another command that reads it at the dimensions of `load`.
    pub(crate) fn words(&self, load: &LoadOptions) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: &dyn std::fmt::Display| {
            words.extend([option.to_owned(), value.to_string()]);
        };
        for (name, size) in &load.dims {
            match load.fixed_dims.contains(name) {
                true => add("--fix-dim", &format_args!("{}={size}", name.replace(',', "\\,"))),
                false => add("--dim", &format_args!("{name}={size}")),
            }
        }
        for (tensor, bytes) in &load.sizes {
            add("--size", &format_args!("{tensor}={bytes}"));
        }
        if let Some(device) = &self.device {
            add("--device", device);
        }
        if let Some(path) = &self.device_file {
            add("--device-file", &path.display());
        }
        match self.device_memory {
            Some(DeviceMemory::Bytes(bytes)) => add("--device-memory", &bytes),
            Some(DeviceMemory::Unlimited) => add("--device-memory", &"none"),
            None => {}
        }
        if let Some(path) = &self.profile {
            add("--profile", &path.display());
        }
        if let Some(name) = self.accounting.and_then(|mode| ACCOUNTINGS.name_of(mode)) {
            add("--accounting", &name);
        }
        if let Some(name) = self.order.and_then(|mode| ORDERS.name_of(mode)) {
            add("--order", &name);
        }
        if let Some(most) = self.max_computes {
            add("--max-computes", &most);
        }
        if let Some(name) = BASELINES.name_of(self.baseline).filter(|&name| name != "runtime") {
            add("--baseline", &name);
        }
        words
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

/// `NAME=N,..`; a name may itself contain `=`, and a comma where what stands before it is no assignment.
fn parse_dims(text: &str) -> Result<Assignments, String> {
    parse_assignments(text, "NAME=N", parse_number)
}

/// `TENSOR=BYTES,..`, the bytes with or without a unit.
fn parse_sizes(text: &str) -> Result<Assignments, String> {
    let bytes = |value: &str| parse_bytes(value).map_err(|error| error.to_string());
    parse_assignments(text, "TENSOR=BYTES", bytes)
}

fn parse_assignments(
    text: &str,
    form: &str,
    read: impl Fn(&str) -> Result<u64, String>,
) -> Result<Assignments, String> {
    let one = |text: &str| {
        let (name, value) = text.rsplit_once('=').ok_or_else(|| format!("write {form}"))?;
        match name.trim() {
            "" => Err(format!("write {form}")),
            name => Ok((name.to_owned(), read(value.trim())?)),
        }
    };
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let ends = rest.match_indices(',').map(|(end, _)| end);
        let first = ends.into_iter().find_map(|end| Some((end, one(&rest[..end]).ok()?)));
        let Some((end, assignment)) = first else {
            found.push(one(rest)?);
            return Ok(Assignments(found));
        };
        found.push(assignment);
        rest = &rest[end + 1..];
    }
}

/// `NAME,..` or `NAME=N,..`. A comma ends a name, unless a backslash stands before it: names with commas are rare, lists are not.
fn parse_fixed(text: &str) -> Result<Fixed, String> {
    const FORM: &str = "write NAME or NAME=N, and `\\,` for a comma that is part of a name";
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&',').is_some() => part.push(','),
            ',' => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    parts.push(part);
    let one = |part: &String| {
        let (name, value) = match part.rsplit_once('=') {
            Some((name, value)) => (name, Some(parse_number(value.trim())?)),
            None => (part.as_str(), None),
        };
        match name.trim() {
            "" => Err(FORM.to_owned()),
            name => Ok((name.to_owned(), value)),
        }
    };
    let list: Result<_, String> = parts.iter().map(one).collect();
    Ok(Fixed(list?))
}

fn parse_number(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| format!("`{text}` is not a non-negative integer"))
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
        let list = |list: &[(&str, u64)]| Assignments(list.iter().map(|&(name, n)| (name.to_owned(), n)).collect());
        assert_eq!(parse_dims("a=b=8"), Ok(list(&[("a=b", 8)])));
        assert_eq!(
            parse_dims("batch=2,height=32"),
            Ok(list(&[("batch", 2), ("height", 32)]))
        );
        assert_eq!(parse_dims("a,b=2, c=3"), Ok(list(&[("a,b", 2), ("c", 3)])));
        assert_eq!(parse_sizes("z=16KiB,y=5"), Ok(list(&[("z", 16 << 10), ("y", 5)])));
    }

    #[test]
    fn dimensions_are_fixed_with_and_without_a_value() {
        let fixed = Fixed(vec![("n".to_owned(), None), ("m".to_owned(), Some(3))]);
        assert_eq!(parse_fixed("n, m=3"), Ok(fixed));
        assert!(parse_fixed("n,").is_err() && parse_fixed("n=x").is_err());
        let with_commas = Fixed(vec![
            ("a,b".to_owned(), Some(2)),
            ("c".to_owned(), None),
            ("d=e".to_owned(), Some(3)),
        ]);
        assert_eq!(parse_fixed("a\\,b=2,c,d=e=3"), Ok(with_commas));
    }

    fn open(dims: &[&str], fixed: &[&str]) -> OpenSizes {
        OpenSizes {
            dims: dims.iter().map(|text| parse_dims(text).unwrap()).collect(),
            fixed: fixed.iter().map(|text| parse_fixed(text).unwrap()).collect(),
            sizes: Vec::new(),
        }
    }

    #[test]
    fn one_dimension_has_one_value() {
        let refused = |dims: &[&str], fixed: &[&str]| open(dims, fixed).check().err().map(|error| error.to_string());
        for (dims, fixed) in [
            (&["n=512"][..], &["n=256"][..]),
            (&["n=512,n=256"], &[]),
            (&[], &["n=512", "n=256"]),
        ] {
            let why = refused(dims, fixed).expect("two values");
            assert!(
                why.contains("`n`") && why.contains("512") && why.contains("256"),
                "{why}"
            );
        }
        assert_eq!(refused(&["n=512"], &["n=512"]), None);
        assert_eq!(refused(&["n=512,m=3"], &["n"]), None);
    }

    #[test]
    fn nonsense_is_rejected() {
        for text in ["batch", "batch=-1", "=3", "batch=2,", "batch=2,height"] {
            assert!(parse_dims(text).is_err(), "{text}");
        }
        assert!(parse_sizes("z=16KB of it").is_err());
    }
}
