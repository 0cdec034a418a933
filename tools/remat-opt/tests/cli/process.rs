//! Runs under way, the processes that they start, and what they leave. Linux only, where processes can be looked at.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::Folder;

/// A machine under load is slow, a run that does not end is forever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What lies in a folder.
pub(crate) fn left_in(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).expect("it is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// The command through `env` with this option about signals: what ignores them where the tests run, `nohup` for one, does not matter then.
pub(crate) fn with_signals(option: &str, plain: &Command) -> Command {
    let mut command = Command::new("env");
    command.arg(option).arg(plain.get_program()).args(plain.get_args());
    if let Some(folder) = plain.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A run under way, with a folder of its own for temporary files.
pub(crate) struct Run {
    pub(crate) child: Child,
    pub(crate) temporary: Folder,
}

impl Run {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_in(Folder::new(), command)
    }

    pub(crate) fn start_in(temporary: Folder, command: &mut Command) -> Self {
        let child = command
            .env("TMPDIR", temporary.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self { child, temporary }
    }

    /// Waits until the program handles this signal, by its number.
    pub(crate) fn wait_for_handler(&self, signal: u32) {
        let handles = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
            assert!(!status.contains("\nState:\tZ"), "the program ended before it was ready");
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let mask = u64::from_str_radix(mask.expect("the process is there").trim(), 16).expect("a mask");
            mask >> (signal - 1) & 1 == 1
        };
        while !handles() {
            std::thread::sleep(Duration::from_millis(20));
        }
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
