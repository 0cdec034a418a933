//! Checks and generated files of this workspace: `cargo run -p xtask -- codegen` and `cargo run -p xtask -- tidy`.

#[cfg(feature = "codegen")]
mod codegen;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks and generated files of this workspace.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the manual to `docs/man`.
    #[cfg(feature = "codegen")]
    Codegen {
        /// Fail if a file is not current instead of writing it.
        #[arg(long)]
        check: bool,
    },
    /// Checks the invariants of the architecture.
    Tidy,
}

#[expect(clippy::print_stderr, reason = "a command line tool talks on stderr")]
fn main() -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    let findings = match Arguments::parse().task {
        #[cfg(feature = "codegen")]
        Task::Codegen { check: false } => {
            codegen::write(&root)?;
            Vec::new()
        }
        #[cfg(feature = "codegen")]
        Task::Codegen { check: true } => codegen::stale(&root)?,
        Task::Tidy => tidy::check(&workspace::sources(&root)?),
    };
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
