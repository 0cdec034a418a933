//! `remat-opt completions`: a completion script for a shell.

use clap::{Args, CommandFactory};

use crate::args::Arguments;
use crate::cli::Cli;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Arguments for CompletionsArgs {
    fn run(&self, _quiet: bool) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "remat-opt", &mut script);
        crate::console::write(&String::from_utf8_lossy(&script))
    }
}
