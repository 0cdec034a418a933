//! The streams of the process. A reader that went away is no error, and names from files are escaped.

use std::io::Write;

/// Prints on stdout.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    _ = out
        .write_all(remat_files::lines(text).as_bytes())
        .and_then(|()| out.flush());
}

/// Prints a line on stderr.
pub(crate) fn tell(text: &str) {
    _ = writeln!(std::io::stderr(), "{}", remat_files::line(text));
}
