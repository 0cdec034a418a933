//! `remat-opt completions`: a completion script for a shell.

use clap::{Args, Command};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    /// Prints the script for this command line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn print(&self, mut command: Command) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "remat-opt", &mut script);
        crate::console::write(&String::from_utf8_lossy(&script))
    }
}
