//! The arguments of the main command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use remat::fission::is_limited_by_threads;
use remat::onnx_mlir::{Barriers, Form, Options};
use remat::plan::{BudgetSpec, parse_duration, parse_share};
use remat::solver::SolveControl;
use remat::{Format, Model, Output, SecondMemory, SolveRequest, Target};
use remat_files::OutputFolder;
use remat_onnxruntime_deploy::{OrderHint, PORTABLE, arena_library_path, arena_plan_path, has_arena_library};
use remat_onnxruntime_run::{OptimizationLevel, Provider};

use crate::args::{
    BlockArgs, Choice, FissionArgs, GOAL, GoalArgs, INPUT, LEVELS, LoadArgs, MLIR, OUTPUT, PageArgs, ProcessArgs,
    RUNTIME, ReportArgs, SEARCH, SWITCH, SearchArgs, ShapeArgs, provider,
};
use crate::console::streams;
use crate::progress::Line;

/// What `-o -` may write, as extensions.
const FORMS: Choice<&str> = Choice(&[
    ("onnx", "onnx", "The rewritten model"),
    ("mlir", "mlir", "The rewritten model as MLIR"),
    ("json", "json", "The plan"),
    ("sched", "sched", "The plan for devices"),
    ("remat", "remat", "The rewritten graph as readable text"),
    ("dot", "dot", "The rewritten graph for Graphviz"),
]);

const ORDER_HINTS: Choice<OrderHint> = Choice(&[
    (
        "any",
        OrderHint::Any,
        "The runtime's default order, its priority-based one, and that of the file",
    ),
    (
        "priority",
        OrderHint::Priority,
        "The priority-based order and that of the file",
    ),
]);

const MLIR_FORMS: Choice<Form> = Choice(&[
    ("torch", Form::Torch, "`torch.operator` over tensors of torch"),
    ("onnx-mlir", Form::OnnxMlir, "The dialect `onnx`"),
    ("remat", Form::Remat, "The dialects `onnx` and `remat`"),
]);

const BARRIERS: Choice<Barriers> = Choice(&[
    ("iree", Barriers::Iree, "Ops of IREE"),
    ("none", Barriers::None, "Nothing"),
]);

/// Share of the time for placing the plan of a model for ONNX Runtime.
const PLACING: f64 = 0.1;

/// Share of the time for a plan of the memory of the file, or for trying settings.
const MEASURING: f64 = 0.3;

/// Whether weights lie in a file beside the module.
const WEIGHTS: Choice<bool> = Choice(&[
    ("inline", false, "Into the module"),
    ("file", true, "Into a file beside it"),
]);

#[derive(Debug, Args)]
pub(crate) struct OptimizeArgs {
    /// Model, graph or log; `-` for stdin.
    ///
    /// A model (`.onnx`), a module of MLIR (`.mlir`), a node-link graph or a saved problem (`.json`), or a log of an eager execution
    /// (`.log`, `.log.gz`). `-` reads from stdin.
    // Optional in the type only: a subcommand stands in its place.
    #[arg(value_name = "IN", required = true)]
    pub(super) input: Option<PathBuf>,
    /// Apply this plan instead of searching for one.
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["budget", "max_overhead", "solver", "step_limit"], help_heading = INPUT, hide_short_help = true)]
    pub(super) plan: Option<PathBuf>,
    /// Peak to stay within: `80%`, `512MiB`, `min`, `auto`, `none`.
    ///
    /// A share of the original's peak, a size, `min` (the lowest peak that is found), `auto` (the lowest within `--max-overhead`) or
    /// `none`.
    #[arg(short, long, value_name = "BUDGET", default_value = "auto", allow_hyphen_values = true, help_heading = GOAL)]
    pub(super) budget: BudgetSpec,
    /// Time that may be added, as a share [default: 5% for `--budget auto`, else no limit].
    ///
    /// A share of the time without rematerialization. A plan that takes longer is refused, even if it keeps the budget.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = GOAL)]
    pub(super) max_overhead: Option<u64>,
    /// Solver; `auto` searches, then proves what it can.
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = SEARCH)]
    pub(super) solver: String,
    /// Time limit for searching, simulating and measuring.
    ///
    /// Reading (also by ONNX Runtime), writing, and one measured run of each model come on top. At the limit, the best plan or verified file
    /// is written.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = SEARCH)]
    pub(super) time_limit: Duration,
    /// Maximum number of search steps.
    ///
    /// With one thread, the same seed, and a time limit that is not reached, every run gives the same plan.
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    pub(super) step_limit: Option<u64>,
    #[command(flatten)]
    pub(super) whole: ProcessArgs,
    #[command(flatten)]
    pub(super) shapes: ShapeArgs,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    #[command(flatten)]
    pub(super) goal: GoalArgs,
    #[command(flatten)]
    pub(super) fission: FissionArgs,
    /// Where to write; `-` for stdout.
    ///
    /// The extension says what: `.onnx` and `.mlir` the rewritten model, `.json` the plan, `.sched` the plan for devices, `.remat`
    /// readable text, `.dot` a drawing, `.arena` the plan of memory for a CUDA device (`--device cuda`). Without it, only the report is printed. `-`
    /// writes to stdout, and the report goes to stderr.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
    /// For `-o -`: what to write [default: onnx or mlir as IN is, else json].
    #[arg(long, value_name = "FORM", value_parser = FORMS, help_heading = OUTPUT, hide_short_help = true)]
    pub(super) output_format: Option<&'static str>,
    /// Also write the plan here, as JSON.
    #[arg(long, value_name = "PLAN", help_heading = OUTPUT, hide_short_help = true)]
    pub(super) emit_plan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) block: BlockArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// For `.mlir`: run this pipeline of passes, as `mlir-opt` does, instead of scheduling every function.
    #[arg(long, value_name = "PIPELINE", conflicts_with_all = ["budget", "max_overhead", "solver", "step_limit", "plan", "emit_plan", "place", "bound", "block_svg", "page"], help_heading = MLIR, hide_short_help = true)]
    pub(super) pass_pipeline: Option<String>,
    #[command(flatten)]
    pub(super) mlir: MlirArgs,
    #[command(flatten)]
    pub(super) load: LoadArgs,
    #[command(flatten)]
    pub(super) page: PageArgs,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// What a rewritten model is made for.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// What the output is made for: `ort`, `onnx`, `plan` or `mlir`.
    ///
    /// `ort`: ONNX Runtime in a default session. `onnx`: any runtime. `plan`: an executor of plans (`.json`, `.sched`).
    /// `mlir`: compilers [default: by the extension; for `.onnx`, `ort` if the runtime's library is found].
    #[arg(long, value_name = "NAME", hide_possible_values = true, help_heading = OUTPUT)]
    pub(super) target: Option<TargetArg>,
    /// Whether sessions have the runtime's memory arena on.
    ///
    /// `on` is the runtime's default. Then bytes are reserved for the arena at the start of a run if that makes it smaller, which costs the
    /// time to fill them. `off` is for `enable_cpu_mem_arena = False`.
    #[arg(long, value_name = "on|off", action = ArgAction::Set, value_parser = SWITCH, default_value = "on", hide_possible_values = true, help_heading = RUNTIME, hide_short_help = true)]
    pub(super) arena: bool,
    /// Graph optimization level of ONNX Runtime that the model is made for: `off`, `basic`, `extended`, `all`.
    ///
    /// `all` is the runtime's default. Sessions must be made with this level: bits and memory are checked at it only.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, default_value = "all", hide_possible_values = true, help_heading = RUNTIME, hide_short_help = true)]
    pub(super) level: OptimizationLevel,
    /// Write a file even if none takes less memory than the original model, or none keeps the budget.
    ///
    /// Without this option nothing is written in these cases, unless a plan of memory gains something, and the report says so. A forced file may take more than the original; if it
    /// exceeds the budget, the exit status is still 1.
    #[arg(long, help_heading = RUNTIME, hide_short_help = true)]
    pub(super) force: bool,
    /// Do not plan the memory of the written model.
    ///
    /// Else `OUT.arena` is written beside it, and the library with which ONNX Runtime follows it: every buffer has its place in one block, with
    /// any number of threads and all sizes that the model leaves open. A session needs two options for that:
    /// `add_session_config_entry("remat.arena.plan", "OUT.arena")` and `register_custom_ops_library("libremat_arena.so")`. With `--budget none`
    /// the original model is written unchanged.
    #[arg(long, conflicts_with = "arena_library", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) no_arena_plan: bool,
    /// Where the library goes with which ONNX Runtime follows a plan of memory [default: `libremat_arena.so` beside OUT].
    #[arg(long, value_name = "FILE", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) arena_library: Option<PathBuf>,
    /// For `--device cuda`: requests that were recorded on the device, which the plan of memory is made of; a file that `remat_opt.record_requests` writes.
    ///
    /// `-o MODEL.onnx.arena` then holds an exact plan for the CUDA provider. Without recorded requests it is predicted: what kernels work in is left out.
    #[arg(long, value_name = "FILE", requires = "output", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) requests: Option<PathBuf>,
    /// Try session options that lower the memory of the written model without a library, and print the best, with a program in Python.
    ///
    /// Tried are the runtime's default, the memory pattern off, the memory arena off, and an arena of the environment that is sized for this
    /// model; each is predicted, then measured with one thread. Recommended is the one with which the process grows least. With `--budget none` the
    /// original model is written unchanged.
    #[arg(long, conflicts_with = "arena_library", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) settings: bool,
    /// For `--settings`: also write the recommended session as a program (`.py`), or all that was tried as JSON.
    #[arg(long, value_name = "FILE", requires = "settings", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) emit_settings: Option<PathBuf>,
    /// Write the loadable form: a folder that a process loads with the least memory.
    ///
    /// `-o DIR`. It holds the optimized model, its weights as kernels read them in one file that is mapped, a plan of memory, and a manifest with what a
    /// process takes from its first to its last instruction. `remat_opt.session(DIR)` loads it, `remat_process.h` does in C. It is for this version of
    /// ONNX Runtime and processors like this one; sessions on others take the portable model that lies beside it.
    #[arg(long, conflicts_with_all = ["arena_library", "settings", "no_arena_plan", "no_measure"], requires = "output", help_heading = RUNTIME, hide_short_help = true)]
    pub(super) process: bool,
    /// Execution orders under which the model must run as planned [default: any].
    ///
    /// `priority` alone needs fewer added nodes than `any`.
    #[arg(long, value_name = "ORDER", value_parser = ORDER_HINTS, help_heading = RUNTIME, hide_short_help = true)]
    pub(super) order_hint: Option<OrderHint>,
    /// Do not run the two models to compare outputs, memory and time.
    #[arg(long, help_heading = RUNTIME, hide_short_help = true)]
    pub(super) no_measure: bool,
}

/// How an ONNX model is written as MLIR.
#[derive(Debug, Args)]
pub(crate) struct MlirArgs {
    /// For `.mlir`: `torch`, what torch-mlir and IREE import, `onnx-mlir`, or `remat`, with the plan as ops of the dialect `remat`.
    #[arg(long, value_name = "FORM", value_parser = MLIR_FORMS, default_value = "torch", help_heading = MLIR, hide_short_help = true)]
    pub(super) mlir_form: Form,
    /// For `torch`: optimization barriers that keep the compiler from merging recomputes.
    ///
    /// `iree`: ops that only IREE reads. `none`: no barriers.
    #[arg(long, value_name = "KIND", value_parser = BARRIERS, default_value = "iree", help_heading = MLIR, hide_short_help = true)]
    pub(super) mlir_barriers: Barriers,
    /// For `torch`: where weights go.
    ///
    /// `inline`, into the module, or `file`, into a safetensors file beside it, which IREE maps when it runs
    /// (`--parameters=model=FILE`).
    #[arg(long, value_name = "PLACE", action = ArgAction::Set, value_parser = WEIGHTS, default_value = "inline", help_heading = MLIR, hide_short_help = true)]
    pub(super) mlir_weights: bool,
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

impl OptimizeArgs {
    /// With up to how many threads the tiles of this model keep every bit, where they were chosen so.
    pub(super) fn exact_threads(&self, model: &Model) -> Option<u32> {
        let keeps_bits = model.tiling().is_some_and(|tiling| !tiling.close);
        let is_chosen = self.plan.is_none() && keeps_bits && model.format() == Format::Onnx;
        is_chosen.then(|| self.fission.exact_threads())
    }

    /// With up to how many threads tiles were to keep every bit, where fewer would permit more tiles of what makes a peak of so many bytes.
    pub(super) fn limiting_threads(&self, model: &Model, peak: u64) -> Option<u32> {
        let request = self
            .fission
            .request(true)
            .filter(|_| self.plan.is_none() && self.budget != BudgetSpec::None)?;
        let exactness = match self.target.level {
            OptimizationLevel::All => request.exactness.in_blocks(),
            _ => request.exactness,
        };
        let is_limited = is_limited_by_threads(model.graph()?, exactness, peak / 2);
        is_limited.then(|| self.fission.exact_threads())
    }

    /// The file of weights that is written beside the output.
    pub(crate) fn weights(&self) -> Option<PathBuf> {
        let output = self.output.as_ref().filter(|_| self.mlir.mlir_weights)?;
        (remat::extension(output) == "mlir").then(|| output.with_extension("safetensors"))
    }

    /// Whether the memory of the written model is planned: where it is written for ONNX Runtime on a processor, and measured.
    pub(super) fn plans_memory(&self) -> bool {
        let target = &self.target;
        let is_for_others = target.no_arena_plan || target.settings || target.no_measure || !target.arena;
        let is_made = matches!(target.target, None | Some(TargetArg::Ort));
        let is_written = self.model_output().is_some_and(|output| !streams::is_stream(&output));
        !is_for_others && is_made && is_written && self.is_on_processor() && has_arena_library()
    }

    /// Whether an option is about the memory of a written model.
    pub(super) fn is_about_memory(&self) -> bool {
        let target = &self.target;
        target.settings || target.process || target.arena_library.is_some() || self.whole.memory.is_some()
    }

    /// That option.
    pub(super) fn memory_option(&self) -> &'static str {
        match (self.target.settings, self.target.process, self.whole.memory) {
            (true, _, _) => "--settings",
            (_, true, _) => "--process",
            (_, _, Some(_)) => "--memory",
            _ => "--arena-library",
        }
    }

    /// Where the model goes, if one is written: of a loadable form the portable one.
    pub(super) fn model_output(&self) -> Option<PathBuf> {
        let output = self.output.as_deref()?;
        match self.target.process {
            true => Some(OutputFolder::path_for(output).join(PORTABLE)),
            false => is_model(output).then(|| output.to_owned()),
        }
    }

    /// Whether models run on the processor.
    pub(super) fn is_on_processor(&self) -> bool {
        let device = self.load.device.as_deref().unwrap_or("cpu");
        !matches!(provider(device), Ok(Provider::Cuda(_)))
    }

    /// The files that are written beside the output where its memory is planned: plan and library.
    pub(super) fn arena_files(&self) -> Option<[PathBuf; 2]> {
        let output = self
            .model_output()
            .filter(|_| self.plans_memory() && !self.target.process)?;
        Some([arena_plan_path(&output), self.library_of(&output)])
    }

    /// Where the arena library lies that belongs to a model.
    pub(super) fn library_of(&self, output: &Path) -> PathBuf {
        let named = self.target.arena_library.clone();
        named.unwrap_or_else(|| arena_library_path(output))
    }

    /// The arena library, where the output is a model for ONNX Runtime that may move results to a second memory.
    pub(super) fn pages_library(&self) -> Option<PathBuf> {
        let output = self.model_output().filter(|_| !self.target.process)?;
        let is_for_runtime = matches!(self.target.target, None | Some(TargetArg::Ort));
        let may_be_paged = is_for_runtime && (self.is_paged() || self.plan.is_some());
        may_be_paged.then(|| self.library_of(&output))
    }

    /// Whether plans may move results to a second memory.
    pub(super) fn is_paged(&self) -> bool {
        matches!(self.load.paging.second_memory(), Some(SecondMemory::Used { .. }))
    }

    /// What is asked of the solver.
    pub(super) fn request(&self) -> SolveRequest {
        SolveRequest {
            budget: self.budget,
            max_overhead: self.max_overhead,
            solver: self.goal.solver(&self.solver),
        }
    }

    /// The limits of the command: its time began with the line.
    pub(super) fn control<'l>(&self, line: &'l Line) -> SolveControl<'l> {
        let mut control: SolveControl<'l> = self.search.control().observer(line);
        (control.deadline, control.step_limit) = (line.deadline(), self.step_limit);
        control
    }

    /// [`Self::control`], less the time for what follows the search, where that is asked for: placing the plan, and placing and measuring the
    /// memory of the file.
    pub(super) fn control_before_placing<'l>(&self, line: &'l Line) -> SolveControl<'l> {
        let placing = if self.block.places() { PLACING } else { 0.0 };
        let is_about_memory = self.plans_memory() || self.target.settings;
        let measuring = if is_about_memory { MEASURING } else { 0.0 };
        self.control(line).share_of_time(1.0 - placing - measuring)
    }

    /// What is written to stdout, as an extension.
    pub(super) fn output_form(&self) -> anyhow::Result<&'static str> {
        let is_streamed = self.output.as_deref().is_some_and(streams::is_stream);
        anyhow::ensure!(
            !is_streamed || !self.is_about_memory(),
            "`{}` is about a model in a file: `-o OUT.onnx`",
            self.memory_option()
        );
        match (&self.input, self.output_format) {
            (_, Some(_)) if !is_streamed => {
                anyhow::bail!("`--output-format` says what `-o -` writes; of a file, the extension says it")
            }
            (_, Some(form)) => Ok(form),
            (Some(input), None) if is_streamed => Ok(match Format::of(input)? {
                Format::Onnx => "onnx",
                Format::Mlir => "mlir",
                Format::NodeLink | Format::Problem | Format::Log => "json",
            }),
            _ => Ok("json"),
        }
    }
}

impl MlirArgs {
    /// The library's words.
    pub(crate) fn target(&self) -> Target {
        let options = Options {
            form: self.mlir_form,
            barriers: self.mlir_barriers,
        };
        Target::Mlir {
            options,
            weights_beside: self.mlir_weights,
        }
    }
}

/// Whether the extension is that of a model.
pub(super) fn is_model(output: &Path) -> bool {
    Output::of(output, Format::Onnx).is_ok_and(|output| output == Output::Onnx)
}
