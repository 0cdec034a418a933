//! The streams of the process. A reader that went away is no error, and names from files are escaped.

use std::io::Write;

use remat::solver::Solver;

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

/// Says that a solver that was asked for does not take part, and why.
pub(crate) fn skipped(name: &str) {
    let missing = remat::solver_named(name).ok().and_then(Solver::missing);
    let why = missing.unwrap_or_else(|| "there is no such solver".to_owned());
    tell(&format!("`{name}` is skipped: {why}"));
}
