//! Runs under way, the processes that they start, and what they leave. Linux only, where processes can be looked at.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::Folder;

/// A machine under load is slow, a run that does not end is forever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A run under way, with a folder of its own for temporary files.
pub(crate) struct Run {
    pub(crate) child: Child,
    pub(crate) temporary: Folder,
}

impl Run {
    pub(crate) fn start(command: &mut Command) -> Self {
        let temporary = Folder::new();
        let child = command
            .env("TMPDIR", temporary.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self { child, temporary }
    }

    pub(crate) fn send(&self, signal: &str) {
        let number = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &number]).status();
        assert!(status.expect("there is `kill`").success());
    }

    /// Waits for the end; the output and how long it took.
    pub(crate) fn end(self) -> (Output, Folder, Duration) {
        let started = Instant::now();
        let output = self.child.wait_with_output().expect("it ends");
        (output, self.temporary, started.elapsed())
    }
}
