//! A command as a call: it runs in a thread of its own, without the interpreter's lock, while the calling thread looks after signals and
//! progress.

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use remat_opt::{Call, Snapshot};

/// How often signals and progress are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a command that was interrupted may take to end; after that it ends by itself, with nobody waiting.
const GRACE: Duration = Duration::from_millis(600);
/// As much as the first thread of a program has.
const STACK: usize = 16 << 20;

/// Runs the command that `arguments` name, without the program, and gives the object that it prints with `--format json`.
///
/// `progress` is called with keywords when something changed, at most twenty times a second; it ends the command early, with the best that
/// was found, where it returns `False`. Commands run side by side.
///
/// What the handler of a signal raises (`KeyboardInterrupt`), or `progress` does, ends the command within a second and is raised here.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub(crate) fn call(py: Python<'_>, arguments: Vec<OsString>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let call = Call::default();
    let called = call.clone();
    let (send, receive) = channel();
    let command = Command(Mutex::new(receive));
    thread::Builder::new()
        .name("remat-opt".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody waits any more where the call was interrupted.
            _ = send.send(called.run(arguments));
        })?;
    watch(py, &command, &call, progress).inspect_err(|_| {
        call.cancel();
        _ = command.document(py, GRACE);
    })
}

/// The end of a command that runs in another thread; the lock is for the compiler, that nobody waits twice.
struct Command(Mutex<Receiver<String>>);

impl Command {
    /// Waits for what it prints, without the interpreter's lock.
    fn document(&self, py: Python<'_>, time: Duration) -> Result<String, RecvTimeoutError> {
        py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time))
    }
}

/// Waits for the command.
fn watch(py: Python<'_>, command: &Command, call: &Call, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let mut told = None;
    loop {
        match command.document(py, LOOK) {
            Ok(document) => return Ok(document),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the command ended without a report: this is a bug of remat-opt",
                ));
            }
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
        if let (Some(progress), Some(now)) = (progress, call.progress()) {
            let has_result = call.has_result();
            let news = Some((now.doing.clone(), now.best, has_result));
            if news != told {
                told = news;
                if is_false(&tell(progress, &now, has_result)?) {
                    call.cancel();
                }
            }
        }
    }
}

/// Calls `progress`.
fn tell<'py>(progress: &Bound<'py, PyAny>, now: &Snapshot, has_result: bool) -> PyResult<Bound<'py, PyAny>> {
    let keywords = PyDict::new(progress.py());
    keywords.set_item("elapsed", now.elapsed.as_secs_f64())?;
    keywords.set_item("used", now.used.as_secs_f64())?;
    keywords.set_item("limit", now.limit.map(|limit| limit.as_secs_f64()))?;
    keywords.set_item("doing", &now.doing)?;
    keywords.set_item("peak_bytes", now.best.map(|best| best.peak))?;
    keywords.set_item("overhead_percent", now.best.and_then(|best| best.overhead))?;
    keywords.set_item("bound_percent", now.best.and_then(|best| best.bound))?;
    keywords.set_item("has_result", has_result)?;
    progress.call((), Some(&keywords))
}

/// Whether a value is `False` itself; `None`, what a function without `return` gives, is not.
fn is_false(value: &Bound<'_, PyAny>) -> bool {
    value.extract::<bool>().is_ok_and(|value| !value)
}
