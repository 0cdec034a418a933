//! The streams of the process: data on stdout, talk on stderr.

mod capture;
mod report;
pub(crate) mod streams;
mod table;
mod warnings;

use std::io::Write;

pub(crate) use capture::{capture, captured, is_captured};
pub(crate) use report::report;
pub(crate) use table::table;
pub(crate) use warnings::{keeping as keeping_warnings, so_far as warnings_so_far, start_tracing};

/// Prints a report or a document in JSON on stdout, or on stderr where an output takes stdout. What a terminal would act upon is escaped,
/// in a way that leaves documents the same. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&remat_files::lines(&streams::shown(text)))
}

/// Prints several lines on stderr, escaped like [`print`]. Nobody may be there to read them.
#[cfg(feature = "mlir")]
pub(crate) fn tell(text: &str) {
    write_stderr(&remat_files::lines(text));
}

/// Writes to stderr what is safe to be seen, colours of our own included. Nobody may be there to read it.
pub(crate) fn write_stderr(text: &str) {
    if is_captured() {
        return;
    }
    let mut err = std::io::stderr().lock();
    _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Writes a text of our own, as it is, to where reports go.
///
/// # Errors
/// If it cannot be written; that the reader went away is no error.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    if capture::takes(text) {
        return Ok(());
    }
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
