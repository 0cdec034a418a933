//! The command line as a whole: the main command, the others, and what `--help` says of all of them. Each command has its arguments
//! beside its code.

use std::ffi::OsString;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::{Arguments, REPORT, ReportFormat, Talk};
use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::fit::FitArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::max_batch::MaxBatchArgs;
use crate::commands::measure_child::MeasureChildArgs;
use crate::commands::optimize::OptimizeArgs;
use crate::commands::place::PlaceArgs;
use crate::commands::profile::ProfileArgs;
use crate::commands::reduce::ReduceArgs;
use crate::commands::simulate::SimulateArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::verify::VerifyArgs;
use crate::console::streams;

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
  remat-opt verify model.onnx plan.json              replay a plan, whoever made it
  remat-opt verify model.onnx small.onnx             compare bits, memory and time in ONNX Runtime
  remat-opt check model.onnx --limit 64MiB           fail where its process takes more, in CI
  remat-opt profile model.onnx -o profile.json       measure every op in ONNX Runtime
  remat-opt place buffers.csv -o placed.csv          offsets for buffers in one block, as low as possible
  remat-opt fit train.py --device h100               whether its training step fits a GPU that is not here
  remat-opt reduce graph.json -o small.json -- CHECK {}   the smallest graph on which CHECK fails
  remat-opt - -o - --budget 80% < model.onnx > small.onnx   `-` is stdin and stdout; the report goes to stderr

Exit status:
  0  done
  1  proved infeasible, no file keeps the budget (to the byte; measured, else predicted), `verify` found a violation or a difference, or `check` a limit that is exceeded
  2  wrong usage or broken input
  3  the checker rejected our own plan, or a plan refutes what we claim: a bug, problem, plan and claims are saved
  4  a limit was reached before a plan was found
  130, 143  ended by SIGINT or SIGTERM, with the best that was checked until then";

/// Makes neural networks fit into less memory.
///
/// Reads an ONNX model (or a networkx node-link graph in JSON), decides when to drop intermediate results and when to
/// recompute them, so that the peak of memory stays within the budget, and writes a model that does so. Its outputs
/// are bit-identical.
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
    /// Report all that is known, and say more on stderr; twice for everything.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = REPORT)]
    pub(crate) verbose: u8,
    /// Say less on stderr: no progress, only errors.
    #[arg(short, long, global = true, help_heading = REPORT)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show where a model's memory goes.
    ///
    /// Its peak, its timeline, and the largest tensors at the peak.
    Inspect(Box<InspectArgs>),
    /// Find a plan for each of several budgets.
    ///
    /// The plans form the front of memory against time.
    Sweep(Box<SweepArgs>),
    /// Run every solver under every budget, side by side.
    Compare(Box<CompareArgs>),
    /// Find the largest batch that fits into memory.
    ///
    /// With and without rematerialization.
    MaxBatch(Box<MaxBatchArgs>),
    /// Measure what each op of a model takes in ONNX Runtime.
    Profile(Box<ProfileArgs>),
    /// Check a plan, or compare a rewritten model with its original.
    ///
    /// A plan is replayed by the independent checker. A rewritten model runs in ONNX Runtime beside its original, on the same inputs.
    Verify(Box<VerifyArgs>),
    /// Fail where models take more memory than a limit, or than before.
    ///
    /// For continuous integration: nothing is rewritten. Names the op at the peak, and compares with a baseline that an earlier run wrote.
    Check(Box<CheckArgs>),
    /// Run a model for another command, which measures this process.
    #[command(name = crate::runtime::CHILD, hide = true)]
    MeasureChild(MeasureChildArgs),
    /// Give buffers their offsets in one block of memory.
    ///
    /// The block is as low as possible, with a proof where one is found; or it has a given size.
    Place(PlaceArgs),
    /// Tell whether a training script of PyTorch fits a GPU.
    ///
    /// From a machine without one, in the Python package: `pip install 'remat-opt[torch]'`, then `remat-opt fit --help`.
    Fit(FitArgs),
    /// Replay a log of an eager execution under DTR.
    ///
    /// DTR: dynamic tensor rematerialization.
    Simulate(SimulateArgs),
    /// Make an input smaller on which a command fails.
    ///
    /// What the command does not need to fail goes: ops, operands, sizes, times. The rest is what a bug report needs.
    Reduce(ReduceArgs),
    /// Explain a rule of the checker.
    Explain(ExplainArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

impl Cli {
    /// The command line, and the form of the report that it asks for.
    ///
    /// # Errors
    /// If it cannot be understood, or asks for help.
    pub(crate) fn read(arguments: &[OsString]) -> Result<(Self, ReportFormat), clap::Error> {
        let matches = Self::command().try_get_matches_from(arguments)?;
        let chosen = matches.subcommand().map_or(&matches, |(_, command)| command);
        let format = chosen.try_get_one("format").ok().flatten().copied();
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))?;
        Ok((cli, format.unwrap_or(ReportFormat::Text)))
    }

    /// How much the command says.
    pub(crate) fn talk(&self) -> Talk {
        Talk {
            quiet: self.quiet,
            verbose: self.verbose > 0,
        }
    }

    /// The command that was chosen.
    pub(crate) fn chosen(&mut self) -> &mut dyn Arguments {
        match &mut self.command {
            None => &mut self.optimize,
            Some(Command::Inspect(args)) => &mut **args,
            Some(Command::Sweep(args)) => &mut **args,
            Some(Command::Compare(args)) => &mut **args,
            Some(Command::MaxBatch(args)) => &mut **args,
            Some(Command::Profile(args)) => &mut **args,
            Some(Command::Verify(args)) => &mut **args,
            Some(Command::Check(args)) => &mut **args,
            Some(Command::MeasureChild(args)) => args,
            Some(Command::Place(args)) => args,
            Some(Command::Fit(args)) => args,
            Some(Command::Simulate(args)) => args,
            Some(Command::Reduce(args)) => args,
            Some(Command::Explain(args)) => args,
            Some(Command::Completions(args)) => args,
        }
    }
}

/// The script is for the command line as a whole, so it is asked for here.
impl Arguments for CompletionsArgs {
    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        self.print(Cli::command())
    }
}

/// Puts files in the place of paths that stand for stdin and stdout.
///
/// # Errors
/// Those of [`streams::read_stdin`] and [`streams::hold_stdout`], and if the form of an output is named that is no stream.
pub(crate) fn hold_streams(command: &mut dyn Arguments) -> anyhow::Result<()> {
    let inputs = command.inputs();
    streams::read_stdin(inputs.files, inputs.stdin_holds)?;
    streams::hold_stdout(command.outputs()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
