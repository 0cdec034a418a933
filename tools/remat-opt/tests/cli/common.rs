//! Running the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use insta_cmd::get_cargo_bin;
use tempfile::TempDir;

pub(crate) fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

/// The program with these arguments, which white space parts, run in `test/` with a fixed terminal width.
pub(crate) fn remat_opt(line: &str) -> Command {
    let mut command = Command::new(get_cargo_bin("remat-opt"));
    command
        .args(line.split_whitespace())
        .current_dir(workspace().join("test"))
        .env("COLUMNS", "100")
        // Where a library is wanted, the test names it.
        .env("REMAT_ORT_LIBRARY", "none")
        .env("REMAT_ORTOOLS_LIBRARY", "none")
        .env_remove("REMAT_LOG");
    command
}

/// What a run that succeeds prints.
pub(crate) fn stdout_of(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A folder for what a test writes.
pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the program wrote it")
    }
}

pub(crate) fn assert_contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
