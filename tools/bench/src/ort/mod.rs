//! `remat-bench ort`: models before and after in ONNX Runtime, what was predicted beside what was measured.

pub(crate) mod dims;
mod row;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use remat::plan::{BudgetSpec, parse_duration};
use remat::solver::SolveControl;
use remat::{LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::{DeployRequest, deploy};
use remat_onnxruntime_run::{ChildCommand, Host, Surroundings};

use crate::document::replace_in;
use crate::models::models;
use crate::table::{Form, Table};

/// Name of the hidden command that runs models for this one, in a process of its own.
pub(crate) const CHILD: &str = "measure-child";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Models, or folders of models.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Budgets, as on the command line of remat-opt.
    #[arg(long, value_name = "BUDGET,...", value_delimiter = ',', default_value = "auto,60%")]
    budgets: Vec<BudgetSpec>,
    /// Most overhead for the budget `auto`, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    max_overhead: u64,
    /// Value of a symbolic dimension, for the models that have it; may be repeated.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dims::parse)]
    dims: Vec<(String, u64)>,
    /// Time to search; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Threads to search with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Shared library of ONNX Runtime [default: `third_party/onnxruntime/lib` in the checkout, the wheel in the active virtual environment, the
    /// system's].
    #[arg(long, value_name = "PATH")]
    ort_library: Option<PathBuf>,
    /// Keep the rewritten models in this folder, named after model and budget.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Also write the table into this document, between its marks; may be repeated.
    #[arg(long, value_name = "DOCUMENT")]
    write: Vec<PathBuf>,
    /// Also write what a user gets who sets nothing, in four columns, into this document, between its marks.
    #[arg(long, value_name = "DOCUMENT")]
    brief: Option<PathBuf>,
    /// Name of the marks.
    #[arg(long, value_name = "NAME", default_value = "ort")]
    mark: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let host = host(args.ort_library.clone())?;
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    let mut rows = Vec::new();
    for path in models(&args.models)? {
        for &budget in &args.budgets {
            rows.push(measure(&path, budget, &host, args)?);
        }
    }
    let brief = Table {
        text_columns: 1,
        header: row::BRIEF_HEADER,
        rows: rows.iter().filter_map(|row| row::brief(row)).collect(),
    };
    let table = Table {
        text_columns: 1,
        header: row::HEADER,
        rows,
    };
    table.print(args.format);
    let write = |document: &PathBuf, table: &Table| replace_in(document, &args.mark, &table.render(Form::Markdown));
    args.write.iter().try_for_each(|document| write(document, &table))?;
    args.brief.iter().try_for_each(|document| write(document, &brief))
}

/// Answers one request on standard input.
pub(crate) fn child() -> anyhow::Result<()> {
    Ok(remat_onnxruntime_run::serve(
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )?)
}

/// The runtime, and this program as the one that runs models in it.
///
/// # Errors
/// If there is none: a library that is `named` is the only one that is tried.
pub(crate) fn host(named: Option<PathBuf>) -> anyhow::Result<Host> {
    let surroundings = Surroundings {
        named,
        // The tool is run by cargo, from the checkout that it measures.
        checkout: Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .map(Path::to_owned),
        environments: std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect(),
        ..Surroundings::default()
    };
    let child = ChildCommand {
        program: std::env::current_exe()?,
        arguments: vec![CHILD.into()],
    };
    Host::find(child, &surroundings).context("run `make setup`, or name the library with `--ort-library`")
}

/// The row of a model and a budget. What is impossible, or not found in time, is a row, too.
fn measure(path: &Path, budget: BudgetSpec, host: &Host, args: &Args) -> anyhow::Result<Vec<String>> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("model");
    let named = format!("{stem}.{}.onnx", budget.to_string().trim_end_matches('%'));
    let output = args.keep.as_ref().map(|folder| folder.join(named));
    let load = LoadOptions {
        dims: dims::of(path, &args.dims)?,
        ..LoadOptions::default()
    };
    let solve = SolveRequest {
        budget,
        max_overhead: Some(args.max_overhead * 10_000).filter(|_| budget == BudgetSpec::Auto),
        solver: "auto".to_owned(),
    };
    let request = DeployRequest {
        expected: Duration::from_secs(10),
        ..DeployRequest::new(path, output.as_deref(), &load, &solve)
    };
    let control = SolveControl::new().time_limit(args.time).threads(args.threads);
    let figures = match deploy(&request, Some(host), &control) {
        Ok(deployment) => row::figures(&deployment),
        Err(error) => row::refusal(error)?,
    };
    Ok([stem.to_owned(), budget.to_string()]
        .into_iter()
        .chain(figures)
        .collect())
}
