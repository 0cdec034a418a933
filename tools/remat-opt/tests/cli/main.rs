//! The command line as users meet it: what it prints on both streams, and how it ends.

use common::{Folder, assert_contains_all, remat_opt, stdout_of, workspace};

/// A search that ends the same way in every run.
const STEPS: &str = "--step-limit 20000 --threads 1";
/// The same, of one solver.
const SEARCH: &str = "--step-limit 20000 --threads 1 --solver search";

/// Snapshots what the program prints and how it ends: of a line of arguments, which may name constants and variables in braces, or of
/// a command.
macro_rules! assert_run {
    ($line:literal) => {
        assert_run!(crate::remat_opt(&format!($line)))
    };
    ($command:expr) => {
        crate::settings().bind(|| insta_cmd::assert_cmd_snapshot!($command))
    };
}

mod blocks;
mod bodies;
mod budgets;
mod check;
mod common;
mod compare;
mod files;
mod help;
mod hostile;
mod inspect;
#[cfg(target_os = "linux")]
mod interrupts;
mod json;
mod max_batch;
mod mlir;
mod optimize;
mod paging;
mod place;
mod plans;
#[cfg(target_os = "linux")]
mod process;
mod reduce;
mod runtime;
mod simulate;
mod streams;
mod sweep;
mod verify;

/// Times and search steps differ from run to run; so do folders.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"time      \d+\.\d+ s", "time      [TIME] s");
    settings.add_filter(r"\[[\d.]+ s\]", "[TIME]");
    settings.add_filter(r#""(seconds|elapsed_ms|steps)": [\d.]+"#, r#""$1": "[N]""#);
    settings.add_filter(r#""problem": "[0-9a-f]{16}""#, r#""problem": "[DIGEST]""#);
    // The column of seconds in a comparison; widths follow from it.
    settings.add_filter(
        r" +\d+\.\d{3}  (yes|no|refused|impossible|not tried)",
        "  [SECONDS]  $1",
    );
    // What else there is depends on the build.
    settings.add_filter(r"(?s)known are `auto`, `search`.*", "known are `auto`, `search`[MORE]");
    // The command that works instead: with the program as it was called.
    settings.add_filter(r#"/[^\s"]*/remat-opt "#, "remat-opt ");
    settings.add_filter(r#""(graph|problem)": "[0-9a-f]{16}""#, r#""$1": "[DIGEST]""#);
    settings.add_filter(r"/[^\s`]*/out\.", "[FOLDER]/out.");
    // A run that takes more than a second tells what it does.
    settings.add_filter(r"(?m)^\d+ s(, \d+ of \d+ s)?: .*\n", "");
    settings
}
