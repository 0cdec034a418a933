//! The streams of the process: data on stdout, talk on stderr.

mod report;
pub(crate) mod streams;
mod warnings;

use std::io::Write;

pub(crate) use report::report;
pub(crate) use warnings::{start_tracing, taken as warnings_so_far};

/// Writes a report to stdout, or to stderr where an output takes stdout. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let text = streams::shown(text);
    let mut out: Box<dyn Write> = if streams::stdout_is_taken() {
        Box::new(std::io::stderr().lock())
    } else {
        Box::new(std::io::stdout().lock())
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
