//! `remat-bench zoo`: every model of some folders, one row each, whatever becomes of it.
//!
//! Each model is opened in a process of its own and deployed in another, this program itself with a hidden command that calls the library as
//! `remat-opt` does. A model that makes a process crash, run out of memory or out of time is a row like any other. Running
//! the library and not the program `remat-opt` leaves one binary to build, and rows made of figures, not of another program's text.
//!
//! The file of rows is written after every model. What it has is not done again while file and settings stay the same.

mod dims;
mod find;
mod row;
mod table;
mod trial;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use remat::plan::{BudgetSpec, parse_bytes, parse_duration};
use remat_onnxruntime_run::Host;
use serde::{Deserialize, Serialize};

use crate::ort::host;
use crate::table::{Form, Output};
use dims::Choice;
use find::{ZooModel, models};
use row::{Row, Settings};

pub(crate) use trial::{CHILD, child};

/// Name of the form of the file of rows.
const FORMAT: &str = "remat-zoo/1";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders of models, and of folders of them; the site-packages of a Python environment for instance.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// The file of rows, as JSON: written after each model, and read at the start.
    #[arg(long, value_name = "FILE", default_value = "target/zoo.json")]
    rows: PathBuf,
    /// Do the models again that the file of rows has.
    #[arg(long)]
    again: bool,
    /// Only the models whose name holds this text; may be repeated.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Budget, as on the command line of remat-opt.
    #[arg(long, value_name = "BUDGET", default_value = "auto")]
    budget: BudgetSpec,
    /// Time to search and measure, for each model.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Time until the process of a model is killed.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    limit: Duration,
    /// Most memory that a process may take.
    #[arg(long, value_name = "SIZE", default_value = "12GiB", value_parser = parse_bytes)]
    memory: u64,
    /// Value of a symbolic dimension, for the models whose inputs have it; may be repeated.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = crate::ort::dims::parse)]
    dims: Vec<(String, u64)>,
    /// Dimensions of single models, as JSON: `{"MODEL": {"NAME": N}}`, where MODEL is the end of a model's name.
    #[arg(long = "dims", value_name = "FILE")]
    special: Option<PathBuf>,
    /// Value of the other dimensions that look like a batch.
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: u64,
    /// Value of all others.
    #[arg(long, value_name = "N", default_value_t = 64)]
    other: u64,
    /// Shared library of ONNX Runtime [default: as for `ort`].
    #[arg(long, value_name = "PATH")]
    ort_library: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// The file of rows.
#[derive(Serialize, Deserialize)]
struct Rows {
    format: String,
    rows: Vec<Row>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let host = host(args.ort_library.clone())?;
    let choice = Choice::new(&args.dims, args.special.as_deref(), args.batch, args.other)?;
    let mut found = models(&args.folders)?;
    found.retain(|one| args.only.is_empty() || args.only.iter().any(|part| one.name.contains(part)));
    anyhow::ensure!(!found.is_empty(), "there is no model in these folders");
    let mut known = read(&args.rows)?;
    let mut rows = Vec::new();
    let count = found.len();
    for (place, one) in found.iter().enumerate() {
        // Of what cannot be read the row says so, in the words of the importer.
        let hash = find::hash(&one.path).unwrap_or_default();
        let settings = settings(args, &host, choice.rule(&one.name));
        let before = known.iter().position(|row| row.is_of(one));
        let before = before.map(|at| known.remove(at));
        let row = match before.filter(|row| !args.again && row.is_current(&hash, &settings)) {
            Some(row) => row,
            None => {
                crate::console::tell(&format!("{}/{count}  {}", place + 1, one.name));
                measured(one, hash, settings, &host)
            }
        };
        rows.push(row);
        // What was done before stays in the file.
        write(&args.rows, rows.iter().chain(&known))?;
    }
    match args.output.format {
        Form::Json => crate::console::print(&(json(rows.iter())? + "\n")),
        form => crate::console::print(&table::text(&rows, form)),
    }
    args.output.write_all("zoo", &table::text(&rows, Form::Markdown))
}

fn settings(args: &Args, host: &Host, dims: dims::Rule) -> Settings {
    Settings {
        budget: args.budget.to_string(),
        time_ms: u64::try_from(args.time.as_millis()).unwrap_or(u64::MAX),
        limit_ms: u64::try_from(args.limit.as_millis()).unwrap_or(u64::MAX),
        memory_bytes: args.memory,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        runtime: host.version.clone(),
        dims,
    }
}

/// Opens and deploys a model, each in a process of its own.
fn measured(one: &ZooModel, hash: String, settings: Settings, host: &Host) -> Row {
    let opened = trial::open(one, &settings, host);
    let deployed = match &opened {
        Ok(opened) => Some(trial::deploy(one, &settings, host, &opened.dims)),
        Err(_) => None,
    };
    Row {
        folder: one.folder.clone(),
        model: one.name.clone(),
        hash,
        settings,
        opened: opened.map_err(|why| one.without_paths(&why)).into(),
        deployed: deployed.map(|deployed| deployed.map_err(|why| one.without_paths(&why)).into()),
    }
}

/// What an earlier run wrote; nothing where there was none.
fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let other = || format!("`{}` is not a file of rows", path.display());
    let file: Rows = serde_json::from_str(&text).with_context(other)?;
    anyhow::ensure!(file.format == FORMAT, other());
    Ok(file.rows)
}

fn write<'r>(path: &Path, rows: impl Iterator<Item = &'r Row>) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    remat_files::write(path, json(rows)?).with_context(|| format!("cannot write `{}`", path.display()))
}

fn json<'r>(rows: impl Iterator<Item = &'r Row>) -> anyhow::Result<String> {
    let file = Rows {
        format: FORMAT.to_owned(),
        rows: rows.cloned().collect(),
    };
    Ok(serde_json::to_string_pretty(&file)?)
}
