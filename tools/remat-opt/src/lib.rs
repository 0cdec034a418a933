//! `remat-opt`: makes neural networks fit into less memory.
//!
//! Talks to people; everything it does is done by the library `remat`. Data goes to stdout, talk to stderr. It is a library so that
//! the manual can be made from the same code ([`command`]), and so that an interpreter can run the
//! command line ([`run`]) and call its commands ([`Call::run`]); nothing else is to be used from outside.

mod again;
mod args;
mod block;
mod bodies;
mod call;
mod chart;
mod cli;
mod commands;
mod console;
mod context;
mod document;
mod embedding;
mod failure;
mod files;
mod floor;
mod interrupt;
mod job;
mod ledgers;
mod library;
mod lines;
mod machine;
mod open_sizes;
mod padding;
mod page;
mod progress;
mod range;
mod reduce;
mod resident;
mod runtime;
mod scratch;
mod search_profile;
mod tiles;
mod units;

use std::ffi::OsString;

use clap::CommandFactory;

pub use crate::call::Call;
use crate::cli::{Cli, hold_streams};
pub use crate::embedding::{Embedding, embed};
pub use crate::progress::Snapshot;

/// The exit status of a command that did what it was told.
const SUCCESS: u8 = 0;

/// The program: reads the command line, whose first word is the program, does the work, prints the report or the failure, and returns the
/// exit status.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let _cleanup = scratch::Cleanup;
    // A process that runs models is its parent's to stop.
    if arguments.get(1).is_none_or(|command| command != runtime::CHILD) {
        interrupt::install();
    }
    embedding::set_command_line(&arguments);
    let (mut cli, format) = match Cli::read(&arguments) {
        Ok(read) => read,
        Err(error) => return failure::report_usage(&error, &arguments),
    };
    console::start_tracing(cli.quiet, cli.verbose);
    let talk = cli.talk();
    let command = cli.chosen();
    let result = hold_streams(command).and_then(|()| command.execute(talk));
    if let Some(table) = search_profile::table(&context::current().profile) {
        console::write_stderr(&table);
    }
    let delivered = console::streams::deliver();
    let status = match result.and(delivered) {
        Ok(()) => SUCCESS,
        Err(error) => failure::report(&error, format),
    };
    console::streams::close();
    #[cfg(unix)]
    if interrupt::status().is_some() {
        if status == SUCCESS {
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
