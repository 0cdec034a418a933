//! The C interface of HiGHS (`highs_c_api.h`), as much of it as mixed-integer programs and their relaxations need.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use super::quiet::Quiet;
use super::{Program, Rows};
use crate::library::{HighsC, library};

/// How a solve ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Optimal,
    Infeasible,
    Stopped,
    Failed,
}

/// Is asked and told while HiGHS works; called from its thread.
pub(crate) trait Watcher {
    /// Whether to stop.
    fn stop(&self) -> bool;
    /// A better solution of a mixed-integer program was found.
    fn improved(&self, solution: &[f64], bound: f64);
}

const MINIMIZE: c_int = 1;
const ROWWISE: c_int = 2;
const CALLBACK_SIMPLEX_INTERRUPT: c_int = 1;
const CALLBACK_IPM_INTERRUPT: c_int = 2;
const CALLBACK_IMPROVING_SOLUTION: c_int = 4;
const CALLBACK_MIP_INTERRUPT: c_int = 6;
const STATUS_ERROR: c_int = -1;
const MODEL_OPTIMAL: c_int = 7;
const MODEL_INFEASIBLE: c_int = 8;

/// A program in HiGHS, which says nothing on its own.
pub(crate) struct Highs {
    handle: *mut c_void,
    functions: &'static HighsC,
    columns: usize,
    rows: usize,
    /// A handle is used by one thread at a time, by the one that made it.
    one_thread: PhantomData<*mut ()>,
}

/// What the callback works with.
struct Watched<'a> {
    watcher: &'a dyn Watcher,
    functions: &'static HighsC,
    columns: usize,
}

/// Values of a program's solution, and multipliers if it is linear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    pub(crate) columns: Vec<f64>,
    pub(crate) multipliers: Vec<f64>,
}

impl Highs {
    /// Hands a program over; its linear relaxation unless `integers`. `None` if it is too large for the interface or inconsistent, or where
    /// there is no library.
    pub(crate) fn new(program: &Program, integers: bool) -> Option<Self> {
        let rows = &program.rows;
        let consistent = rows.lower.len() == rows.upper.len()
            && rows.starts.len() == rows.lower.len()
            && rows.columns.len() == rows.coefficients.len();
        if !consistent {
            return None;
        }
        let sizes = [program.columns.len(), rows.len(), rows.columns.len()].map(c_int::try_from);
        let [Ok(column_count), Ok(row_count), Ok(entries)] = sizes else {
            return None;
        };
        let of = |get: fn(&super::Column) -> f64| program.columns.iter().map(get).collect::<Vec<f64>>();
        let (cost, lower, upper) = (of(|c| c.cost), of(|c| c.lower), of(|c| c.upper));
        let integral = program.columns.iter().map(|c| c_int::from(integers && c.integer));
        let integrality: Vec<c_int> = integral.collect();
        let functions = &library().ok()?.highs;
        // SAFETY: has no preconditions.
        let handle = unsafe { (functions.Highs_create)() };
        let highs = Self {
            handle,
            functions,
            columns: program.columns.len(),
            rows: rows.len(),
            one_thread: PhantomData,
        };
        highs.flag(c"output_flag", false);
        highs.flag(c"log_to_console", false);
        // SAFETY: every array has the length that goes with it; HiGHS copies them.
        let status = unsafe {
            (functions.Highs_passMip)(
                handle,
                column_count,
                row_count,
                entries,
                ROWWISE,
                MINIMIZE,
                0.0,
                cost.as_ptr(),
                lower.as_ptr(),
                upper.as_ptr(),
                rows.lower.as_ptr(),
                rows.upper.as_ptr(),
                rows.starts.as_ptr(),
                rows.columns.as_ptr(),
                rows.coefficients.as_ptr(),
                integrality.as_ptr(),
            )
        };
        (status != STATUS_ERROR).then_some(highs)
    }

    pub(crate) fn flag(&self, option: &CStr, value: bool) {
        // SAFETY: the handle is alive; an option of another name or type is reported, not misused.
        unsafe { (self.functions.Highs_setBoolOptionValue)(self.handle, option.as_ptr(), c_int::from(value)) };
    }

    pub(crate) fn integer(&self, option: &CStr, value: c_int) {
        // SAFETY: as above.
        unsafe { (self.functions.Highs_setIntOptionValue)(self.handle, option.as_ptr(), value) };
    }

    pub(crate) fn number(&self, option: &CStr, value: f64) {
        // SAFETY: as above.
        unsafe { (self.functions.Highs_setDoubleOptionValue)(self.handle, option.as_ptr(), value) };
    }

    /// Starts from a solution, which has a value for each column.
    pub(crate) fn start_from(&self, solution: &[f64]) {
        if solution.len() == self.columns {
            let none = std::ptr::null();
            // SAFETY: the array has as many numbers as there are columns; null stands for what is not given.
            unsafe { (self.functions.Highs_setSolution)(self.handle, solution.as_ptr(), none, none, none) };
        }
    }

    /// Adds rows; whether that worked.
    pub(crate) fn add(&mut self, rows: &Rows) -> bool {
        let sizes = [rows.len(), rows.columns.len()].map(c_int::try_from);
        let ([Ok(count), Ok(entries)], true) = (sizes, rows.starts.len() == rows.len()) else {
            return false;
        };
        // SAFETY: every array has the length that goes with it; HiGHS copies them.
        let status = unsafe {
            (self.functions.Highs_addRows)(
                self.handle,
                count,
                rows.lower.as_ptr(),
                rows.upper.as_ptr(),
                entries,
                rows.starts.as_ptr(),
                rows.columns.as_ptr(),
                rows.coefficients.as_ptr(),
            )
        };
        self.rows += rows.len();
        status != STATUS_ERROR
    }

    /// Solves. Better solutions of a mixed-integer program come through the watcher, most of them.
    pub(crate) fn run(&mut self, watcher: &dyn Watcher) -> Outcome {
        let functions = self.functions;
        // SAFETY: the handle is alive.
        let (status, model) = self.watched(watcher, |handle| unsafe {
            ((functions.Highs_run)(handle), (functions.Highs_getModelStatus)(handle))
        });
        match model {
            MODEL_OPTIMAL => Outcome::Optimal,
            MODEL_INFEASIBLE => Outcome::Infeasible,
            _ if status == STATUS_ERROR => Outcome::Failed,
            _ => Outcome::Stopped,
        }
    }

    /// Multipliers that show why the linear program that was run has no solution, if HiGHS finds them. It may solve the program once more
    /// for that.
    pub(crate) fn ray(&mut self, watcher: &dyn Watcher) -> Option<Vec<f64>> {
        let mut ray = vec![0.0; self.rows];
        let mut has: c_int = 0;
        let functions = self.functions;
        let status = self.watched(watcher, |handle| {
            // SAFETY: the handle is alive, and the array has as many numbers as there are rows.
            unsafe { (functions.Highs_getDualRay)(handle, &raw mut has, ray.as_mut_ptr()) }
        });
        (status != STATUS_ERROR && has != 0).then_some(ray)
    }

    /// What HiGHS does while the watcher is asked and told.
    fn watched<T>(&mut self, watcher: &dyn Watcher, work: impl FnOnce(*mut c_void) -> T) -> T {
        const KINDS: [c_int; 4] = [
            CALLBACK_SIMPLEX_INTERRUPT,
            CALLBACK_IPM_INTERRUPT,
            CALLBACK_IMPROVING_SOLUTION,
            CALLBACK_MIP_INTERRUPT,
        ];
        let mut watched = Watched {
            watcher,
            functions: self.functions,
            columns: self.columns,
        };
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        let _quiet = Quiet::new();
        // SAFETY: `watched` outlives the work, after which HiGHS calls nobody; the kinds are those of HiGHS.
        unsafe {
            (self.functions.Highs_setCallback)(self.handle, callback, (&raw mut watched).cast());
            KINDS.iter().for_each(|&kind| {
                (self.functions.Highs_startCallback)(self.handle, kind);
            });
        }
        let result = work(self.handle);
        // SAFETY: as above.
        KINDS.iter().for_each(|&kind| unsafe {
            (self.functions.Highs_stopCallback)(self.handle, kind);
        });
        result
    }

    /// A bound on the objective of the mixed-integer program that was run.
    pub(crate) fn mip_bound(&self) -> f64 {
        let mut bound = f64::NEG_INFINITY;
        // SAFETY: an item of this name is one number.
        unsafe { (self.functions.Highs_getDoubleInfoValue)(self.handle, c"mip_dual_bound".as_ptr(), &raw mut bound) };
        bound
    }

    /// The solution of the program that was run.
    pub(crate) fn solution(&self) -> Solution {
        let mut solution = Solution {
            columns: vec![0.0; self.columns],
            multipliers: vec![0.0; self.rows],
        };
        let mut reduced_costs = vec![0.0; self.columns];
        let mut activities = vec![0.0; self.rows];
        // SAFETY: the arrays have as many numbers as there are columns and rows.
        unsafe {
            (self.functions.Highs_getSolution)(
                self.handle,
                solution.columns.as_mut_ptr(),
                reduced_costs.as_mut_ptr(),
                activities.as_mut_ptr(),
                solution.multipliers.as_mut_ptr(),
            );
        }
        solution
    }
}

impl Drop for Highs {
    fn drop(&mut self) {
        // SAFETY: created by `Highs_create`, destroyed once.
        unsafe { (self.functions.Highs_destroy)(self.handle) };
    }
}

/// Called by HiGHS from within `Highs_run`. The stop flag is the first member of what `data_in` points at, which HiGHS promises.
extern "C" fn callback(
    kind: c_int,
    _message: *const c_char,
    data_out: *const c_void,
    data_in: *mut c_int,
    data: *mut c_void,
) {
    // SAFETY: `data` is what was given to `Highs_setCallback`, alive until `run` returns.
    let watched = unsafe { &*data.cast::<Watched<'_>>() };
    if kind == CALLBACK_IMPROVING_SOLUTION {
        // SAFETY: the item of this name is an array with one number for each column, valid during the callback.
        let solution = unsafe {
            let values = item(watched.functions, data_out, c"mip_solution");
            (!values.is_null()).then(|| std::slice::from_raw_parts(values, watched.columns))
        };
        // SAFETY: the item of this name is one number, valid during the callback.
        let bound = unsafe { item(watched.functions, data_out, c"mip_dual_bound").as_ref() };
        if let Some(solution) = solution {
            watched
                .watcher
                .improved(solution, bound.copied().unwrap_or(f64::NEG_INFINITY));
        }
    } else if watched.watcher.stop() && !data_in.is_null() {
        // SAFETY: points at the flag.
        unsafe { *data_in = 1 };
    }
}

/// A member of what a callback is given.
///
/// # Safety
/// `data` must be the pointer that HiGHS passed to the callback, and the member of that name made of `f64`.
unsafe fn item(functions: &HighsC, data: *const c_void, name: &CStr) -> *const f64 {
    // SAFETY: by contract.
    unsafe { (functions.Highs_getCallbackDataOutItem)(data, name.as_ptr()).cast() }
}
