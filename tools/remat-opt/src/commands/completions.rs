//! `remat-opt completions`: a completion script for a shell.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "remat-opt", &mut script);
    crate::console::write(&String::from_utf8_lossy(&script))
}
