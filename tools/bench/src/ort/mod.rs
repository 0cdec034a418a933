//! `remat-bench ort`: models before and after in ONNX Runtime, what was predicted beside what was measured; and by how much processes grow under
//! the defaults, other settings, and with planned memory.

pub(crate) mod dims;
pub(crate) mod fission;
mod memory;
mod row;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use remat::plan::{BudgetSpec, parse_duration};
use remat::solver::SolveControl;
use remat::{LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::{DeployError, DeployRequest, Deployment, deploy};
use remat_onnxruntime_run::{ChildCommand, Host, Surroundings};

use crate::files::{models, stem};
use crate::table::{Form, Output, Table, replace_in};

use self::memory::Memory;

/// Name of the hidden command that runs models for this one, in a process of its own.
pub(crate) const CHILD: &str = "measure-child";

/// How long loading a model and running it once is expected to take, before anything is known of it.
pub(crate) const EXPECTED: Duration = Duration::from_secs(10);

/// The models, and how long and with what they are tried.
#[derive(Debug, clap::Args)]
struct Trials {
    /// Models, or folders of models.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Value of a symbolic dimension, for the models that have it; may be repeated.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dims::parse)]
    dims: Vec<(String, u64)>,
    /// Time to search and measure, for each file; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Threads to search with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Shared library of ONNX Runtime [default: `third_party/onnxruntime/lib` in the checkout, the wheel in the active virtual environment, the
    /// system's].
    #[arg(long, value_name = "PATH")]
    ort_library: Option<PathBuf>,
}

impl Trials {
    fn host(&self) -> anyhow::Result<Host> {
        host(self.ort_library.clone())
    }

    /// How a model is read, with those of the given dimensions that it has.
    fn load(&self, path: &Path) -> anyhow::Result<LoadOptions> {
        let given: BTreeMap<_, _> = self.dims.iter().cloned().collect();
        Ok(LoadOptions {
            dims: dims::of(dims::open_model(path)?.graph(), &given),
            ..LoadOptions::default()
        })
    }

    fn deploy(&self, request: &DeployRequest<'_>, host: &Host) -> Result<Deployment, DeployError> {
        let request = DeployRequest {
            expected: EXPECTED,
            ..*request
        };
        let control = SolveControl::new().time_limit(self.time).threads(self.threads);
        deploy(&request, Some(host), &control)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trials: Trials,
    /// Budgets, as on the command line of remat-opt.
    #[arg(long, value_name = "BUDGET,...", value_delimiter = ',', default_value = "auto,60%")]
    budgets: Vec<BudgetSpec>,
    /// Most overhead for the budget `auto`, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    max_overhead: u64,
    /// Keep the rewritten models in this folder, named after model and budget.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Measure and print, for the budget `auto`, heap and growth of the process under the defaults, the recommended settings, and with planned memory.
    #[arg(long)]
    memory: bool,
    /// With `--memory`: also write by how much the process grows, in few columns, into this document, between its marks.
    #[arg(long, value_name = "DOCUMENT", requires = "memory")]
    brief: Option<PathBuf>,
    /// Name of the marks.
    #[arg(long, value_name = "NAME", default_value = "ort")]
    mark: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let host = args.trials.host()?;
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    let mut found = Tables::default();
    for path in models(&args.trials.models)? {
        for &budget in &args.budgets {
            measure(&path, budget, &host, args, &mut found)?;
        }
    }
    args.output
        .give(&args.mark, "", &Table::new(1, row::HEADER, found.rows))?;
    if !args.memory {
        return Ok(());
    }
    let memory = Table::new(2, memory::HEADER, found.memory);
    args.output.give(&format!("{}-memory", args.mark), "", &memory)?;
    let brief = Table::new(1, memory::BRIEF_HEADER, found.brief).render(Form::Markdown);
    let mut documents = args.brief.iter();
    documents.try_for_each(|document| replace_in(document, &args.mark, &brief))
}

/// The rows of the tables.
#[derive(Default)]
struct Tables {
    /// Of each model and budget: peaks and times.
    rows: Vec<Vec<String>>,
    /// Of each model in each setting: heap and growth of the process.
    memory: Vec<Vec<String>>,
    /// Of each model: the growth in all settings.
    brief: Vec<Vec<String>>,
}

/// Answers one request on standard input.
pub(crate) fn child() -> anyhow::Result<()> {
    Ok(remat_onnxruntime_run::serve(
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )?)
}

/// What libraries are looked for with; variables may name one.
pub(crate) fn surroundings(variables: &[&str]) -> Surroundings {
    Surroundings {
        // The tool is run by cargo, from the checkout that it measures.
        checkout: Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .map(Path::to_owned),
        ..Surroundings::of_process(variables, |name| std::env::var_os(name))
    }
}

/// The runtime, and this program as the one that runs models in it.
///
/// # Errors
/// If there is none: a library that is `named` is the only one that is tried.
pub(crate) fn host(named: Option<PathBuf>) -> anyhow::Result<Host> {
    let surroundings = Surroundings {
        named,
        ..surroundings(&[])
    };
    let child = ChildCommand {
        program: std::env::current_exe()?,
        arguments: vec![CHILD.into()],
    };
    Host::find(child, &surroundings).context("run `make setup`, or name the library with `--ort-library`")
}

/// Adds the rows of a model and a budget. What is impossible, or not found in time, is a row, too.
fn measure(path: &Path, budget: BudgetSpec, host: &Host, args: &Args, found: &mut Tables) -> anyhow::Result<()> {
    let stem = stem(path);
    let named = format!("{stem}.{}.onnx", budget.to_string().trim_end_matches('%'));
    let scratch = tempfile::tempdir()?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    let output = folder.join(named);
    let load = args.trials.load(path)?;
    let solve = SolveRequest {
        budget,
        max_overhead: Some(args.max_overhead * 10_000).filter(|_| budget == BudgetSpec::Auto),
        solver: "auto".to_owned(),
    };
    let request = DeployRequest::new(path, Some(&output), &load, &solve);
    let figures = match args.trials.deploy(&request, host) {
        Ok(deployment) => {
            if args.memory && budget == BudgetSpec::Auto {
                let written = if deployment.is_written { &output } else { path };
                add_memory(&stem, (path, written), &load, &deployment, host, found)?;
            }
            row::figures(&deployment)
        }
        Err(error) => row::refusal(error)?,
    };
    let name = [stem, budget.to_string()];
    found.rows.push(name.into_iter().chain(figures).collect());
    Ok(())
}

/// Adds the rows of the memory of a model: of the original, and of what was written.
fn add_memory(
    stem: &str,
    files: (&Path, &Path),
    load: &LoadOptions,
    deployment: &Deployment,
    host: &Host,
    found: &mut Tables,
) -> anyhow::Result<()> {
    match Memory::of(files, load, deployment, host) {
        Ok(memory) => {
            found.memory.extend(memory.rows(stem));
            found.brief.push(memory.brief(stem));
        }
        // No plan can be followed where the runtime orders nodes differently each time.
        Err(error) => found
            .memory
            .push(row::refusal(error).map(|why| [vec![stem.to_owned()], why].concat())?),
    }
    Ok(())
}
