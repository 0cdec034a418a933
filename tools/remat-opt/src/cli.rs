//! The command line, as clap reads it and `--help` prints it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use remat::onnx_mlir::{Fences, Form, Options};
use remat::plan::{Accounting, BudgetSpec, OrderMode, parse_bytes, parse_duration, parse_share};
use remat::profile::ProfileFile;
use remat::solver::{MAX_THREADS, SolveControl};
use remat_onnxruntime_deploy::OrderHint;

use crate::paths::{InputFormat, OutputFormat};
use remat::{DeviceMemory, Target};

use crate::files::Files;

/// What `-h` ends with.
const MORE: &str = "`--help` explains all options, with examples; `remat-opt COMMAND -h` those of a command.";

const EXAMPLES: &str = "\
Examples:
  remat-opt model.onnx                               what could be saved at 5 % overhead
  remat-opt model.onnx -o small.onnx --budget 80%    rewrite to 80 % of the peak
  remat-opt model.onnx -o small.onnx --budget min    the lowest peak that is found
  remat-opt model.onnx -o small.mlir --budget 80%    the same for IREE; more forms with --mlir-form
  remat-opt model.onnx -o plan.json --dim batch=8    the plan alone, for a batch of 8
  remat-opt model.onnx -o model.sched --device mkr1000 --paging sync --objective energy   a schedule for a device
  remat-opt sweep model.onnx --svg front.svg         memory against time, for many budgets
  remat-opt compare model.onnx --budgets 90%,80%     all solvers, side by side
  remat-opt max-batch model.onnx --batch-dim batch --memory 16GiB   how large the batch can become
  remat-opt inspect model.onnx                       where the memory goes
  remat-opt verify model.onnx plan.json              replay a plan, by whomever it was made
  remat-opt verify model.onnx small.onnx             compare bits, memory and time in ONNX Runtime
  remat-opt profile model.onnx -o profile.json       measure every op in ONNX Runtime
  remat-opt reduce graph.json -o small.json -- CHECK {}   the smallest graph on which CHECK fails
  remat-opt - -o - --budget 80% < model.onnx > small.onnx   `-` is stdin and stdout; the report goes to stderr

Exit status:
  0  done
  1  proved infeasible, or `verify` found a violation or a difference
  2  wrong usage or broken input
  3  the checker rejected our own plan, or a plan refutes what we claim: a bug, problem, plan and claims are saved
  4  a limit was reached before a plan was found
  130, 143  ended by SIGINT or SIGTERM, with the best that was checked until then";

/// Groups of options, the same in every command.
pub(crate) const INPUT: &str = "Input";
pub(crate) const GOAL: &str = "Goal";
pub(crate) const SEARCH: &str = "Search";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const RUNTIME: &str = "ONNX Runtime";
pub(crate) const MLIR: &str = "MLIR";
pub(crate) const SECOND_MEMORY: &str = "Second memory";
pub(crate) const REPORT: &str = "Report";

/// Makes neural networks fit into less memory.
///
/// Reads an ONNX model (or a networkx node-link graph in JSON), finds out when to drop intermediate results and when to
/// compute them again, so that the peak of memory stays within the budget, and writes a model that does so. Its outputs
/// are the same, bit for bit.
#[derive(Debug, Parser)]
#[command(name = "remat-opt", version, after_help = MORE, after_long_help = EXAMPLES, max_term_width = 100)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) optimize: OptimizeArgs,
    /// Talk more on stderr; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = REPORT)]
    pub(crate) verbose: u8,
    /// Talk less on stderr: no progress, only errors.
    #[arg(short, long, global = true, help_heading = REPORT)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show where a model's memory goes.
    ///
    /// Its peak, its timeline, and the largest tensors at the peak.
    Inspect(InspectArgs),
    /// Find a plan for each of several budgets.
    ///
    /// The plans form the front of memory against time.
    Sweep(Box<crate::commands::sweep::SweepArgs>),
    /// Run every solver under every budget, side by side.
    Compare(Box<crate::commands::compare::CompareArgs>),
    /// Find the largest batch that fits into memory.
    ///
    /// With and without rematerialization.
    MaxBatch(Box<crate::commands::max_batch::MaxBatchArgs>),
    /// Measure what each op of a model takes in ONNX Runtime.
    Profile(Box<crate::commands::profile::ProfileArgs>),
    /// Check a plan, or compare a rewritten model with its original.
    ///
    /// A plan is replayed by the independent checker. A rewritten model runs in ONNX Runtime beside its original, on the same inputs.
    Verify(Box<VerifyArgs>),
    /// Run a model for another command, which measures this process.
    #[command(name = crate::runtime::CHILD, hide = true)]
    MeasureChild,
    /// Replay a log of an eager execution under DTR.
    ///
    /// DTR is dynamic tensor rematerialization.
    Simulate(crate::commands::simulate::SimulateArgs),
    /// Make an input smaller on which a command fails.
    ///
    /// What the command does not need to fail goes: ops, operands, sizes, times. The rest is what a bug report needs.
    Reduce(crate::commands::reduce::ReduceArgs),
    /// Explain a rule of the checker.
    Explain(ExplainArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

impl Cli {
    /// The form of the report that was asked for.
    pub(crate) fn report_format(&self) -> ReportFormat {
        match &self.command {
            None => self.optimize.report.format,
            Some(Command::Inspect(args)) => args.report.format,
            Some(Command::Sweep(args)) => args.report.format,
            Some(Command::Compare(args)) => args.report.format,
            Some(Command::MaxBatch(args)) => args.report.format,
            Some(Command::Profile(args)) => args.report.format,
            Some(Command::Verify(args)) => args.report.format,
            Some(Command::Simulate(args)) => args.format.unwrap_or(ReportFormat::Text),
            Some(Command::Reduce(args)) => args.report.format,
            Some(Command::Explain(args)) => args.report.format,
            Some(Command::MeasureChild | Command::Completions(_)) => ReportFormat::Text,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OptimizeArgs {
    /// Model, graph or log; `-` for stdin.
    ///
    /// A model (`.onnx`), a module of MLIR (`.mlir`), a node-link graph or a saved problem (`.json`), or a log of an eager execution
    /// (`.log`, `.log.gz`). `-` reads from stdin.
    // Optional in the type only: a subcommand stands in its place.
    #[arg(value_name = "IN", required = true)]
    pub(crate) input: Option<PathBuf>,
    /// Apply this plan instead of searching for one.
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["budget", "max_overhead", "solver", "step_limit"], help_heading = INPUT, hide_short_help = true)]
    pub(crate) plan: Option<PathBuf>,
    /// Peak to stay within: `80%`, `512MiB`, `min`, `auto`, `none`.
    ///
    /// A share of the baseline's peak, a size, `min` (the lowest peak that is found), `auto` (the lowest within `--max-overhead`) or
    /// `none`.
    #[arg(short, long, value_name = "BUDGET", default_value = "auto", allow_hyphen_values = true, help_heading = GOAL)]
    pub(crate) budget: BudgetSpec,
    /// Time that may be added, as a share [default: 5% for `--budget auto`, else no limit].
    ///
    /// A share of the time without rematerialization. A plan that keeps the budget and takes longer is refused.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = GOAL)]
    pub(crate) max_overhead: Option<u64>,
    /// Solver; `auto` searches, then proves what it can.
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = SEARCH)]
    pub(crate) solver: String,
    /// Longest time for the command, reading and writing apart.
    ///
    /// Searching, simulating and measuring share it. Apart from it are reading (by ONNX Runtime, too), writing, and one measured run of each
    /// model. At its end, the best plan or verified file is written.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = SEARCH)]
    pub(crate) time_limit: Duration,
    /// Most search steps to take.
    ///
    /// With one thread, the same seed and no time limit in the way, the same plan in every run.
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    pub(crate) step_limit: Option<u64>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) goal: crate::goal::GoalArgs,
    /// Where to write; `-` for stdout.
    ///
    /// The extension says what: `.onnx` and `.mlir` the rewritten model, `.json` the plan, `.sched` the plan for devices, `.remat`
    /// readable text, `.dot` a drawing. Without it, only the report is printed. `-` writes to stdout, and the report goes to stderr.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// For `-o -`: what to write [default: onnx or mlir as IN is, else json].
    #[arg(long, value_name = "FORM", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) output_format: Option<OutputFormat>,
    /// Also write the plan here, as JSON.
    #[arg(long, value_name = "PLAN", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) emit_plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// For `.mlir`: run this pipeline of passes, as `mlir-opt` does, instead of scheduling every function.
    #[arg(long, value_name = "PIPELINE", conflicts_with_all = ["budget", "max_overhead", "solver", "step_limit", "plan", "emit_plan"], help_heading = MLIR, hide_short_help = true)]
    pub(crate) pass_pipeline: Option<String>,
    #[command(flatten)]
    pub(crate) mlir: MlirArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Something that is either on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Switch {
    /// It is there.
    On,
    /// It is not.
    Off,
}

impl Switch {
    /// Whether it is on.
    pub(crate) fn is_on(self) -> bool {
        self == Self::On
    }
}

/// What a search runs with; the same for every command that bounds its memory too.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Threads to search with [default: 2, or 1 where there is one core].
    #[arg(long, value_name = "N", value_parser = parse_threads, help_heading = SEARCH, hide_short_help = true)]
    threads: Option<usize>,
    /// Most memory the process may take, such as `4GiB`: a search stops there with the best plan so far.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = SEARCH, hide_short_help = true)]
    memory_limit: Option<u64>,
    /// Seed of the random choices.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SEARCH, hide_short_help = true)]
    seed: u64,
}

/// What a rewritten model is made for.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// What it is made for: `ort`, `onnx`, `plan` or `mlir`.
    ///
    /// `ort`: ONNX Runtime under the settings that users have. `onnx`: any runtime. `plan`: whoever follows plans (`.json`, `.sched`).
    /// `mlir`: compilers [default: what the extension says; for `.onnx`, `ort` where the runtime's library is found].
    #[arg(long, value_name = "NAME", hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) target: Option<TargetArg>,
    /// Whether the runtime's memory arena will be on.
    ///
    /// `on` is the runtime's default. Then room is reserved for the arena at the start of a run if that makes it smaller, which costs the
    /// time to fill the room. `off` is for `enable_cpu_mem_arena = False`.
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true, help_heading = RUNTIME)]
    pub(crate) arena: Switch,
    /// Execution orders that the model must be right for [default: any].
    ///
    /// `any`, or `priority` alone, with fewer nodes.
    #[arg(long, value_name = "ORDER", help_heading = RUNTIME, hide_short_help = true)]
    pub(crate) order_hint: Option<OrderHintArg>,
    /// Do not run the two models to compare bits, memory and time.
    #[arg(long, help_heading = RUNTIME, hide_short_help = true)]
    pub(crate) no_measure: bool,
}

/// How an ONNX model is written as MLIR.
#[derive(Debug, Args)]
pub(crate) struct MlirArgs {
    /// For `.mlir`: `torch`, what torch-mlir and IREE import, `onnx-mlir`, or `remat`, with the plan as ops of the dialect `remat`.
    #[arg(long, value_name = "FORM", default_value = "torch", help_heading = MLIR, hide_short_help = true)]
    pub(crate) mlir_form: MlirFormArg,
    /// For `torch`: optimization barriers that keep the compiler from merging recomputes.
    ///
    /// `iree`, ops that only IREE reads, or `none`.
    #[arg(long, value_name = "KIND", default_value = "iree", help_heading = MLIR, hide_short_help = true)]
    pub(crate) mlir_fences: MlirFencesArg,
    /// For `torch`: where weights go.
    ///
    /// `inline`, into the module, or `file`, into a safetensors file beside it, which IREE maps when it runs
    /// (`--parameters=model=FILE`).
    #[arg(long, value_name = "PLACE", default_value = "inline", help_heading = MLIR, hide_short_help = true)]
    pub(crate) mlir_weights: MlirWeightsArg,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MlirWeightsArg {
    /// Into the module.
    Inline,
    /// Into a file beside it.
    File,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MlirFormArg {
    /// `torch.operator` over tensors of torch.
    Torch,
    /// The dialect `onnx`.
    OnnxMlir,
    /// The dialects `onnx` and `remat`.
    Remat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MlirFencesArg {
    /// Ops of IREE.
    Iree,
    /// Nothing.
    None,
}

impl OptimizeArgs {
    /// The file of weights that is written beside the output.
    pub(crate) fn weights(&self) -> Option<PathBuf> {
        let output = self
            .output
            .as_ref()
            .filter(|_| self.mlir.mlir_weights == MlirWeightsArg::File)?;
        let is_mlir = output
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("mlir"));
        is_mlir.then(|| output.with_extension("safetensors"))
    }
}

impl MlirArgs {
    /// The library's words.
    pub(crate) fn target(&self) -> Target {
        let options = Options {
            form: match self.mlir_form {
                MlirFormArg::Torch => Form::Torch,
                MlirFormArg::OnnxMlir => Form::OnnxMlir,
                MlirFormArg::Remat => Form::Remat,
            },
            fences: match self.mlir_fences {
                MlirFencesArg::Iree => Fences::Iree,
                MlirFencesArg::None => Fences::None,
            },
        };
        Target::Mlir {
            options,
            weights_beside: self.mlir_weights == MlirWeightsArg::File,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TargetArg {
    /// ONNX Runtime.
    Ort,
    /// Any runtime.
    Onnx,
    /// Whoever follows plans: devices, say.
    Plan,
    /// Compilers.
    Mlir,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OrderHintArg {
    /// The runtime's default order, its priority-based one, and that of the file.
    Any,
    /// The priority-based order and that of the file.
    Priority,
}

impl OrderHintArg {
    /// The library's word.
    pub(crate) fn hint(self) -> OrderHint {
        match self {
            Self::Any => OrderHint::Any,
            Self::Priority => OrderHint::Priority,
        }
    }
}

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
    #[arg(long, value_name = "FORM", help_heading = INPUT, hide_short_help = true)]
    pub(crate) input_format: Option<InputFormat>,
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
    pub(crate) device_memory: Option<DeviceMemory>,
    /// Measured times per op that replace the estimates.
    ///
    /// A file that `remat-opt profile` wrote, or `measured` to measure them now.
    #[arg(long, value_name = "FILE|measured", help_heading = INPUT, hide_short_help = true)]
    pub(crate) profile: Option<PathBuf>,
    /// Which bytes count: `runtime` or `paper` [default: runtime for models, paper for graphs].
    ///
    /// `runtime`: outputs stay, sizes are aligned, kernels have workspace. `paper`: outputs die, as in the Checkmate and Moccasin papers.
    #[arg(long, value_name = "MODE", help_heading = INPUT, hide_short_help = true)]
    pub(crate) accounting: Option<AccountingArg>,
    /// Order of first computes: `free` or `fixed` [default: free for models, fixed for graphs].
    ///
    /// Whether they may change their order, or must keep that of the input.
    #[arg(long, value_name = "MODE", help_heading = GOAL, hide_short_help = true)]
    pub(crate) order: Option<OrderArg>,
    /// How often one op may run at most [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = GOAL, hide_short_help = true)]
    pub(crate) max_computes: Option<u32>,
    #[command(flatten)]
    pub(crate) paging: crate::goal::PagingArgs,
    #[command(flatten)]
    pub(crate) runtime: crate::runtime::RuntimeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Form of the report: `text` or `json`.
    ///
    /// `json` prints one object on stdout, of a form that `docs/schema` describes; so it does for failures.
    #[arg(long, value_name = "FORM", default_value = "text", hide_possible_values = true, help_heading = REPORT)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum AccountingArg {
    /// What an inference runtime takes.
    Runtime,
    /// The convention of the papers.
    Paper,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OrderArg {
    /// Any order that the data flow allows.
    Free,
    /// The order of the input.
    Fixed,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Model (`.onnx`), node-link graph or saved problem (`.json`); `-` for stdin.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// Show the timeline under this plan instead of the model's own order.
    #[arg(long, value_name = "PLAN", help_heading = INPUT)]
    pub(crate) plan: Option<PathBuf>,
    /// How many tensors to list.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = REPORT)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Model (`.onnx`), node-link graph (`.json`) or saved problem (`.json`); `-` for stdin.
    #[arg(value_name = "MODEL")]
    pub(crate) input: PathBuf,
    /// Plan to replay (`.json`, `.sched`), or rewritten model to run (`.onnx`); `-` for stdin.
    ///
    /// A plan is replayed under its own accounting and budget. With a rewritten model, both models run in ONNX Runtime on the same inputs:
    /// their outputs are compared bit by bit, and memory and time are measured.
    #[arg(value_name = "PLAN|REWRITTEN")]
    pub(crate) plan: PathBuf,
    /// Also write the report here, as JSON.
    #[arg(short, long, alias = "emit-report", value_name = "REPORT", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// For plans: also draw runs, transfers and memory over time here, as SVG.
    #[arg(long, alias = "timeline", value_name = "CHART", help_heading = OUTPUT)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) session: crate::runtime::SessionArgs,
    /// Warm runs of each model.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = RUNTIME)]
    pub(crate) runs: u32,
    /// Longest time for one process that runs the models.
    ///
    /// One for the second model also ends after a multiple of what the first one took.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration, help_heading = RUNTIME)]
    pub(crate) time_limit: Duration,
    /// Seed of the first inputs.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RUNTIME)]
    pub(crate) seed: u64,
    /// How many seeds to compare outputs for, counted up from the first.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..), help_heading = RUNTIME)]
    pub(crate) seeds: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code of the rule, `V006` for instance; without it, all rules are listed.
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

impl SearchArgs {
    /// A control with these options, which Ctrl-C cancels; limits on time and steps are the command's own.
    pub(crate) fn control(&self) -> SolveControl<'static> {
        let mut control = SolveControl::new()
            .threads(crate::commands::threads(self.threads))
            .seed(self.seed)
            .cancel(crate::interrupt::flag());
        control.memory_limit = self.memory_limit;
        control
    }
}

impl LoadArgs {
    /// The options of the library; the profile file is read, or `input` is profiled.
    pub(crate) fn options(&self, input: &Path) -> anyhow::Result<remat::LoadOptions> {
        self.runtime.check()?;
        let profile = match &self.profile {
            None => None,
            Some(_) if self.profile_is_measured() => Some(self.measured(&self.runtime.host()?, UNKNOWN_RUN, input)?),
            Some(path) => Some(profile_file(path)?),
        };
        Ok(remat::LoadOptions {
            profile,
            ..self.options_without_profile()
        })
    }

    /// The files that are read to load `input`, as far as the command line names them.
    pub(crate) fn files(&self, input: &Path) -> Result<Files, remat::Error> {
        let mut files = Files::default();
        files.reads("the input", [input])?;
        files.reads("the table of devices", self.device_file.as_deref())?;
        files.reads(
            "the profile",
            self.profile.as_deref().filter(|_| !self.profile_is_measured()),
        )?;
        Ok(files)
    }

    /// All options but the profile.
    pub(crate) fn options_without_profile(&self) -> remat::LoadOptions {
        remat::LoadOptions {
            dims: self.open.dims.iter().cloned().collect(),
            sizes: self.open.sizes.iter().cloned().collect(),
            accounting: self.accounting.map(|accounting| match accounting {
                AccountingArg::Runtime => Accounting::Runtime,
                AccountingArg::Paper => Accounting::Paper,
            }),
            order: self.order.map(|order| match order {
                OrderArg::Fixed => OrderMode::Fixed,
                OrderArg::Free => OrderMode::Free,
            }),
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

    /// Profiles a model with the dimensions and sizes of the command line.
    /// `expected` is what loading and running it once is expected to take.
    pub(crate) fn measured(
        &self,
        host: &remat_onnxruntime_run::Host,
        expected: Duration,
        model: &Path,
    ) -> Result<ProfileFile, remat_onnxruntime_deploy::DeployError> {
        let import = remat::onnx::ImportOptions {
            dims: self.open.dims.iter().cloned().collect(),
            sizes: self.open.sizes.iter().cloned().collect(),
            open_sizes: true,
        };
        crate::commands::profile::measured(host, expected, model, &import)
    }
}

/// What a run of a model is expected to take of which nothing is known.
const UNKNOWN_RUN: Duration = Duration::from_secs(10);

/// Reads a profile.
pub(crate) fn profile_file(path: &Path) -> anyhow::Result<ProfileFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(ProfileFile::from_json(&text)?)
}

/// `NAME=N`; the name may itself contain `=`.
pub(crate) fn parse_assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.rsplit_once('=').ok_or("write NAME=N")?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("`{value}` is not a non-negative integer"))?;
    Ok((name.trim().to_owned(), value))
}

/// A number of threads that is not above what any search makes use of.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok();
    threads
        .filter(|threads| (1..=MAX_THREADS).contains(threads))
        .ok_or_else(|| format!("from 1 to {MAX_THREADS} threads are possible"))
}

/// A number of threads within one node, 0 for as many as the runtime wants.
pub(crate) fn parse_intra_threads(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { parse_threads(text) }
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
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

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
