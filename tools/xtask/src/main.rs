//! Checks and generated files of this workspace: `cargo run -p xtask -- codegen` and `cargo run -p xtask -- tidy`; `make web` calls it, too.

#[cfg(feature = "codegen")]
mod codegen;
mod tidy;
#[cfg(feature = "web")]
mod web;
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
    /// Puts the page of `tools/web` together, whose library was built for WebAssembly.
    #[cfg(feature = "web")]
    Web {
        /// The library.
        library: std::path::PathBuf,
        /// The folder of the page.
        out: std::path::PathBuf,
    },
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
        #[cfg(feature = "web")]
        Task::Web { library, out } => {
            web::assemble(&root, &library, &out)?;
            Vec::new()
        }
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
