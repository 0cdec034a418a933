//! The limit of a whole process.

use clap::Args;
use remat::plan::parse_bytes;
use remat_onnxruntime_deploy::{ProcessLimit, Program};

use super::{Choice, GOAL};

pub(crate) const PROGRAMS: Choice<Program> = Choice(&[
    ("python", Program::Python, "Python with NumPy and both packages"),
    ("c", Program::C, "A program in C or C++"),
]);

/// How much a process may take that loads the model and runs it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProcessArgs {
    /// Limit of the whole process, such as `256MiB`.
    ///
    /// From its first to its last instruction: code of ONNX Runtime, graph, loading, weights, runs and outputs. Runs get what the rest leaves.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = GOAL)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
}

/// What runs the session of a process.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProgramArgs {
    /// For `--memory`: what the process runs beside ONNX Runtime, `python` or `c`.
    #[arg(long, value_name = "NAME", value_parser = PROGRAMS, default_value = "python", hide_possible_values = true, help_heading = GOAL, hide_short_help = true)]
    pub(crate) program: Program,
}

impl ProcessArgs {
    /// The limit, where there is one.
    pub(crate) fn limit(&self) -> Option<ProcessLimit> {
        let program = self.program.program;
        self.memory.map(|bytes| ProcessLimit { bytes, program })
    }
}
