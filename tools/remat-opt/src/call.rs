//! Commands as calls of a library: what a command prints with `--format json` is returned.
//!
//! Flags, warnings and temporary files belong to the process, so commands take turns.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cli::Cli;
use crate::{console, failure, interrupt};

/// The process whose turn it is; 0 where it is nobody's. A process that was forked in the middle of a turn does not have it.
static TAKEN_BY: AtomicU32 = AtomicU32::new(0);

/// The turn of one command. While it is held no other command runs in this process.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// The turn, if it is nobody else's.
    #[must_use]
    pub fn take() -> Option<Self> {
        let process = std::process::id();
        let taken = TAKEN_BY.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |by| {
            (by != process).then_some(process)
        });
        taken.ok().map(|_| Self(()))
    }

    /// Does what a command line says, without the name of the program, and returns the object that `--format json` prints: a report, or a
    /// failure, whose field `error` says what went wrong. [`cancel`] ends it early with the best that was checked until then, and
    /// [`progress`](crate::progress) says how far it is. Nothing is printed, no signal is handled, and `-` names no stream.
    #[must_use]
    pub fn call(self, arguments: Vec<OsString>) -> String {
        interrupt::reset();
        console::capture();
        console::keep_warnings();
        let program = OsString::from("remat-opt");
        let line: Vec<OsString> = std::iter::once(program).chain(arguments).collect();
        match Cli::read(&line) {
            Ok((mut cli, format)) => {
                if let Err(error) = cli.chosen().execute(true) {
                    failure::report(&error, format);
                }
            }
            Err(error) => _ = failure::report_usage(&error, &line),
        }
        console::captured()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN_BY.store(0, Ordering::SeqCst);
    }
}

/// Has the command that runs now end with the best that was checked until then.
pub fn cancel() {
    interrupt::raise();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(arguments: &[&str]) -> serde_json::Value {
        let turn = Turn::take().expect("tests of this file take turns in one test");
        let arguments = arguments.iter().map(OsString::from).collect();
        serde_json::from_str(&turn.call(arguments)).expect("a document")
    }

    #[test]
    fn a_call_returns_its_report_or_its_failure_and_turns_exclude_each_other() {
        let turn = Turn::take().expect("nobody has it");
        assert!(Turn::take().is_none());
        drop(turn);
        let explained = document(&["explain", "V003", "--format", "json"]);
        assert_eq!(explained["format"], "remat-explain/1");
        assert!(explained["error"].is_null());
        let missing = document(&["inspect", "no/such/file.json", "--format", "json"]);
        assert_eq!(missing["error"]["kind"], "input");
        let usage = document(&["--no-such-option", "--format", "json"]);
        assert_eq!(usage["error"]["kind"], "usage");
        assert_eq!(usage["error"]["exit_status"], 2);
    }
}
