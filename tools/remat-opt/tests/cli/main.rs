//! The command line as users meet it: what it prints on both streams, and how it ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use insta_cmd::get_cargo_bin;
use tempfile::TempDir;

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
mod reduce;
mod runtime;
mod simulate;
mod streams;
mod sweep;
mod verify;

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

/// The program with these arguments, which white space parts, run in `test/` with a fixed terminal width.
fn remat_opt(line: &str) -> Command {
    let mut command = Command::new(get_cargo_bin("remat-opt"));
    command
        .args(line.split_whitespace())
        .current_dir(workspace().join("test"))
        .env("COLUMNS", "100")
        // Where a runtime is wanted, the test names it.
        .env("REMAT_ORT_LIBRARY", "none")
        .env_remove("REMAT_LOG");
    command
}

/// What a run that succeeds prints.
fn stdout_of(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A folder for what a test writes.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the program wrote it")
    }
}

fn assert_contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// Times and search steps differ from run to run; so do folders.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"time      \d+\.\d+ s", "time      [TIME] s");
    settings.add_filter(r#""(seconds|elapsed_ms|steps)": [\d.]+"#, r#""$1": "[N]""#);
    settings.add_filter(r#""problem": "[0-9a-f]{16}""#, r#""problem": "[DIGEST]""#);
    // The column of seconds in a comparison; widths follow from it.
    settings.add_filter(
        r" +\d+\.\d{3}  (yes|no|refused|impossible|not tried)",
        "  [SECONDS]  $1",
    );
    // What else there is depends on the build.
    settings.add_filter(r"(?s)known are `auto`, `search`.*", "known are `auto`, `search`[MORE]");
    settings.add_filter(r"/[^\s`]*/out\.", "[FOLDER]/out.");
    // A run that takes more than a second tells what it does.
    settings.add_filter(r"(?m)^\d+ s(, \d+ of \d+ s)?: .*\n", "");
    settings
}
