//! `remat-opt`: makes neural networks fit into less memory.
//!
//! Talks to people; everything it does is done by the library `remat`. Data goes to stdout, talk to stderr. It is a library so that
//! the manual and the JSON schemas can be made from the same code ([`command`], [`schemas`]); nothing else is to be used from outside.

mod again;
mod args;
mod block;
mod chart;
mod cli;
mod commands;
mod console;
mod document;
mod documents;
mod failure;
mod files;
mod interrupt;
mod job;
mod legacy;
mod library;
mod machine;
mod progress;
mod reduce;
mod runtime;
mod scratch;
mod tiles;
mod units;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, hold_streams};

/// The program: reads the command line, does the work, prints the report or the failure, and returns the exit status.
#[must_use]
pub fn run() -> ExitCode {
    let _cleanup = scratch::Cleanup;
    // A process that runs models is its parent's to stop.
    if std::env::args_os()
        .nth(1)
        .is_none_or(|command| command != runtime::CHILD)
    {
        interrupt::install();
    }
    let (arguments, notes) = legacy::modernized(std::env::args_os().collect());
    let (mut cli, format) = match Cli::read(&arguments) {
        Ok(read) => read,
        Err(error) => return failure::report_usage(&error, &arguments),
    };
    console::start_tracing(cli.quiet, cli.verbose);
    for note in notes {
        tracing::warn!("{note}");
    }
    let quiet = cli.quiet;
    let command = cli.chosen();
    let result = hold_streams(command)
        .and_then(|()| command.prepare())
        .and_then(|()| command.run(quiet));
    let delivered = console::streams::deliver();
    let status = match result.and(delivered) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error, format),
    };
    console::streams::close();
    #[cfg(unix)]
    if interrupt::status().is_some() {
        if status == ExitCode::SUCCESS {
            console::write_stderr("interrupted: this is the best that was found until then\n");
        }
        interrupt::leave();
    }
    status
}

/// The command line with all its options, for the manual.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The JSON schema of everything that `--format json` prints, by the name of its form.
#[must_use]
pub fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    documents::schemas()
}
