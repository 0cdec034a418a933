//! Keeps a library from printing on the C library's `stdout`.
//!
//! HiGHS 1.12 prints a line of its own when it repairs a solution, whatever its options say. Rust's `stdout` does not go through that
//! of the C library, so pointing the latter elsewhere for a while silences the line and nothing of ours.
#![expect(unsafe_code, reason = "changes a variable of the C library")]

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

unsafe extern "C" {
    static mut stdout: *mut c_void;
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void;
}

/// How many want silence, and the streams before and meanwhile.
struct State {
    count: usize,
    before: *mut c_void,
    nowhere: *mut c_void,
}

// SAFETY: streams of the C library may be used by any thread.
unsafe impl Send for State {}

static STATE: Mutex<State> = Mutex::new(State {
    count: 0,
    before: std::ptr::null_mut(),
    nowhere: std::ptr::null_mut(),
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While one of these is alive, what C code prints on `stdout` is lost.
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn new() -> Self {
        let mut state = state();
        state.count += 1;
        if state.count == 1 {
            // SAFETY: both texts end with a zero. The variable is written under the lock and only here and below; a reader
            // sees one stream or the other, and both stay open for good.
            unsafe {
                if state.nowhere.is_null() {
                    state.nowhere = fopen(c"/dev/null".as_ptr(), c"w".as_ptr());
                }
                state.before = stdout;
                if !state.nowhere.is_null() {
                    stdout = state.nowhere;
                }
            }
        }
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let mut state = state();
        state.count -= 1;
        if state.count == 0 && !state.nowhere.is_null() {
            // SAFETY: as above.
            unsafe { stdout = state.before };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::c_int;

    use remat_testing::{Trial, trial};

    use super::*;

    pub(crate) fn trials() -> Vec<Trial> {
        vec![trial!(c_code_prints_nothing_while_it_is_to_be_quiet)]
    }

    unsafe extern "C" {
        fn puts(text: *const c_char) -> c_int;
        fn fflush(stream: *mut c_void) -> c_int;
    }

    /// Set in the process whose output is looked at.
    const PRINTS: &str = "REMAT_TEST_PRINTS_THROUGH_C";

    fn print_through_the_c_library() {
        // SAFETY: the texts end with a zero; null flushes all streams.
        unsafe {
            let quiet = (Quiet::new(), Quiet::new());
            puts(c"unheard".as_ptr());
            drop(quiet.0);
            puts(c"unheard, too".as_ptr());
            drop(quiet.1);
            puts(c"heard".as_ptr());
            fflush(std::ptr::null_mut());
        }
    }

    /// Runs itself once more: the stream belongs to the whole process, and the harness does not see what C code prints.
    fn c_code_prints_nothing_while_it_is_to_be_quiet() {
        if std::env::var_os(PRINTS).is_some() {
            return print_through_the_c_library();
        }
        let name = "milp::quiet::c_code_prints_nothing_while_it_is_to_be_quiet";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(PRINTS, "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("heard\n") && !text.contains("unheard"), "{text}");
    }
}
