//! Commands as calls of a library: what a command prints with `--format json` is returned.
//!
//! Calls run side by side: what is printed, warned of and told about progress, and the flag that ends a command, belong to its call.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::args::Talk;
use crate::cli::Cli;
use crate::context::Lease;
use crate::progress::Snapshot;
use crate::{console, failure, interrupt};

/// A command that is called. Clones are the same call, for who waits for it.
#[derive(Clone, Debug)]
pub struct Call(Arc<Lease>);

impl Default for Call {
    fn default() -> Self {
        Self(Arc::new(Lease::take()))
    }
}

impl Call {
    /// Does what a command line says, without the name of the program, and returns the object that `--format json` prints: a report, or a
    /// failure, whose field `error` says what went wrong. Nothing is printed, no signal is handled, and `-` names no stream.
    #[must_use]
    pub fn run(&self, arguments: Vec<OsString>) -> String {
        self.0.enter(|| {
            console::capture();
            console::keeping_warnings(|| execute(arguments));
            console::captured()
        })
    }

    /// Has the command end with the best that was checked until then.
    pub fn cancel(&self) {
        interrupt::raise(&self.0);
    }

    /// Whether the command has a checked result to give if it is ended now.
    #[must_use]
    pub fn has_result(&self) -> bool {
        self.0.has_result.load(Ordering::SeqCst)
    }

    /// How far the command is; `None` where it does not say.
    #[must_use]
    pub fn progress(&self) -> Option<Snapshot> {
        self.0.line().upgrade()?.snapshot()
    }
}

fn execute(arguments: Vec<OsString>) {
    let program = OsString::from("remat-opt");
    let line: Vec<OsString> = std::iter::once(program).chain(arguments).collect();
    match Cli::read(&line) {
        Ok((mut cli, format)) => {
            let talk = Talk {
                quiet: true,
                ..cli.talk()
            };
            if let Err(error) = cli.chosen().execute(talk) {
                failure::report(&error, format);
            }
        }
        Err(error) => _ = failure::report_usage(&error, &line),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn document(arguments: &[&str]) -> serde_json::Value {
        let arguments = arguments.iter().map(OsString::from).collect();
        serde_json::from_str(&Call::default().run(arguments)).expect("a document")
    }

    #[test]
    fn a_call_returns_its_report_or_its_failure() {
        let explained = document(&["explain", "V003", "--format", "json"]);
        assert_eq!(explained["format"], "remat-explain/1");
        assert!(explained["error"].is_null());
        let missing = document(&["inspect", "no/such/file.json", "--format", "json"]);
        assert_eq!(missing["error"]["kind"], "input");
        let usage = document(&["--no-such-option", "--format", "json"]);
        assert_eq!(usage["error"]["kind"], "usage");
        assert_eq!(usage["error"]["exit_status"], 2);
    }

    /// All four are in the middle of their work at the same time, or the barrier is never passed.
    #[test]
    fn calls_run_side_by_side_with_flags_and_output_and_warnings_of_their_own() {
        const CALLS: usize = 4;
        let together = Barrier::new(CALLS);
        let work = |place: usize| {
            let call = Call::default();
            if place == 0 {
                call.cancel();
            }
            call.0.enter(|| {
                console::capture();
                console::keeping_warnings(|| {
                    together.wait();
                    tracing::warn!("of call {place}");
                    console::print(&format!("call {place}")).expect("it is kept");
                    together.wait();
                    let warnings = console::warnings_so_far();
                    (interrupt::flag().load(Ordering::SeqCst), warnings, console::captured())
                })
            })
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..CALLS).map(|place| scope.spawn(move || work(place))).collect();
            calls.into_iter().map(|call| call.join().expect("it ends")).collect()
        });
        for (place, (is_cancelled, warnings, printed)) in found.into_iter().enumerate() {
            assert_eq!(is_cancelled, place == 0, "call {place}");
            assert_eq!(warnings, [format!("of call {place}")]);
            assert_eq!(printed, format!("call {place}"));
        }
        // What was lent to a call that was cancelled is lent again as new.
        assert!(Call::default().0.enter(|| !interrupt::flag().load(Ordering::SeqCst)));
    }
}
