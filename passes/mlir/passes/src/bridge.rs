//! What `cpp/Passes.cpp` calls, and what it is called with.
#![expect(unsafe_code, reason = "the other side is C++")]

use std::ffi::{OsString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use remat::ortools::Surroundings;
use remat_mlir::{Function, Severity};

use crate::{
    FunctionReport, ModelOptions, OptionError, PassError, PassOptions, PlaceOptions, VerifyOptions, annotate, place,
    rematerialize, rematerialize_module, verify,
};

/// An option, as it stands in a pipeline.
#[repr(C)]
struct OptionText {
    name: *const u8,
    name_length: usize,
    value: *const u8,
    value_length: usize,
}

/// What a pass found out about a function.
#[repr(C)]
#[derive(Default)]
struct PassStatistics {
    peak_before: u64,
    peak_after: u64,
    recomputes: u64,
    added_time: u64,
    bound_on_added_time: u64,
    block: u64,
    load: u64,
    placed: u64,
    others: u64,
}

impl PassStatistics {
    /// Adds what became of a function.
    fn add(&mut self, report: &FunctionReport) {
        self.peak_before = self.peak_before.saturating_add(report.baseline_peak);
        self.peak_after = self.peak_after.saturating_add(report.peak);
        self.recomputes += report.recomputes as u64;
        self.added_time = self.added_time.saturating_add(report.added_time());
        self.bound_on_added_time = self.bound_on_added_time.saturating_add(report.bound_on_added_time());
    }
}

/// `MlirOperation` of the C API.
#[repr(C)]
struct RawOperation {
    pointer: *mut c_void,
}

type Run = unsafe extern "C" fn(i32, RawOperation, *const OptionText, usize, *mut PassStatistics) -> bool;

unsafe extern "C" {
    fn rematRegisterPasses(run: Run);
    fn rematInsertDialect(registry: *mut c_void);
}

/// Says in which environment the passes look for OR-Tools, where the process has not said so before.
pub fn prove_with(environment: impl Fn(&str) -> Option<OsString>) {
    remat::ortools::look_in(&Surroundings::of_process(&["REMAT_ORTOOLS_LIBRARY"], environment));
}

/// Makes MLIR know the passes by their names, in this process.
pub fn register_passes() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the function that is handed over lives as long as the process.
    ONCE.call_once(|| unsafe { rematRegisterPasses(run) });
}

/// Adds the dialect to a registry.
///
/// # Safety
/// The pointer is that of a living `mlir::DialectRegistry`.
pub unsafe fn register_dialect(registry: *mut c_void) {
    // SAFETY: the caller says so.
    unsafe { rematInsertDialect(registry) };
}

/// Runs a pass on a function; false if it failed, which has been told at the function then.
///
/// # Safety
/// The operation is a function that lives during the call and is not touched by others; the options are `count` texts in UTF-8.
unsafe extern "C" fn run(
    job: i32,
    function: RawOperation,
    options: *const OptionText,
    count: usize,
    figures: *mut PassStatistics,
) -> bool {
    let function_pointer = function.pointer;
    // SAFETY: the caller says so; of a module it is asked for nothing but diagnostics.
    let function = unsafe { Function::from_raw(function_pointer) };
    // SAFETY: the caller says so; no options come as a null pointer.
    let options: Vec<(&str, &str)> = unsafe {
        let given = if count == 0 {
            &[]
        } else {
            slice::from_raw_parts(options, count)
        };
        let text = |start, length| std::str::from_utf8(slice::from_raw_parts(start, length)).unwrap_or_default();
        given
            .iter()
            .map(|option| {
                (
                    text(option.name, option.name_length),
                    text(option.value, option.value_length),
                )
            })
            .collect()
    };
    let work = AssertUnwindSafe(|| match job {
        // SAFETY: the caller hands over a module for this job.
        MODULE => whole_module(unsafe { Function::all_of(function_pointer) }, &options),
        _ => dispatch(job, function, &options).map_err(|error| (function, error)),
    });
    match catch_unwind(work) {
        Ok(Ok(found)) => {
            // SAFETY: the caller hands over a place for the figures.
            unsafe { figures.write(found) };
            true
        }
        Ok(Err((at, error))) => {
            error.emit(at);
            false
        }
        // The panic has said itself what it is; nothing may unwind into C++.
        Err(_) => {
            function.emit(Severity::Error, "the pass panicked: this is a bug of remat-opt");
            false
        }
    }
}

/// The job of `remat` on a module.
const MODULE: i32 = 4;

/// `remat` on all functions of a module, with one budget.
fn whole_module<'c>(
    functions: Vec<Function<'c>>,
    options: &[(&str, &str)],
) -> Result<PassStatistics, (Function<'c>, PassError<'c>)> {
    let Some(&first) = functions.first() else {
        return Ok(PassStatistics::default());
    };
    let mut own = PassOptions::default();
    set_all(options, |name, value| own.set(name, value)).map_err(|error| (first, error.into()))?;
    let reports = rematerialize_module(functions, &own)?;
    let mut figures = PassStatistics::default();
    for report in &reports {
        figures.add(report);
    }
    Ok(figures)
}

/// The numbers are those of `Job` in C++.
fn dispatch<'c>(job: i32, function: Function<'c>, options: &[(&str, &str)]) -> Result<PassStatistics, PassError<'c>> {
    match job {
        0 => {
            let mut own = PassOptions::default();
            set_all(options, |name, value| own.set(name, value))?;
            let report = rematerialize(function, &own)?;
            let mut figures = PassStatistics::default();
            figures.add(&report);
            Ok(figures)
        }
        1 => {
            let mut own = ModelOptions::default();
            set_all(options, |name, value| own.set(name, value))?;
            annotate(function, &own)?;
            Ok(PassStatistics::default())
        }
        2 => {
            let mut own = PlaceOptions::default();
            set_all(options, |name, value| own.set(name, value))?;
            let report = place(function, &own)?;
            Ok(PassStatistics {
                block: report.block,
                load: report.load,
                placed: report.placed as u64,
                others: report.others as u64,
                ..PassStatistics::default()
            })
        }
        _ => {
            let mut own = VerifyOptions::default();
            set_all(options, |name, value| own.set(name, value))?;
            verify(function, &own)?;
            Ok(PassStatistics::default())
        }
    }
}

fn set_all(
    options: &[(&str, &str)],
    mut set: impl FnMut(&str, &str) -> Result<(), OptionError>,
) -> Result<(), OptionError> {
    options.iter().try_for_each(|(name, value)| set(name, value))
}
