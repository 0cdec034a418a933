//! `remat-opt measure-child`: runs a model for another command, which started this process to measure it.

use clap::Args;

use crate::args::{Arguments, Talk};

#[derive(Debug, Args)]
pub(crate) struct MeasureChildArgs;

impl Arguments for MeasureChildArgs {
    /// Answers one request on standard input.
    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let (stdin, stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
        Ok(remat_onnxruntime_run::serve(stdin, stdout)?)
    }
}
