//! The C interface of HiGHS (`highs_c_api.h`), as much of it as a 0/1 program needs.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, c_char, c_double, c_int, c_void};

/// Rows of a mixed-integer program, one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matrix {
    /// Price of each column; all columns are 0 or 1.
    pub(crate) cost: Vec<f64>,
    /// Where each row starts in `columns` and `coefficients`.
    pub(crate) starts: Vec<c_int>,
    pub(crate) columns: Vec<c_int>,
    pub(crate) coefficients: Vec<f64>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

/// Limits and seed of a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// In seconds.
    pub(crate) time_limit: Option<f64>,
    pub(crate) seed: c_int,
    /// Solutions this close to the bound are optimal.
    pub(crate) absolute_gap: f64,
}

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
    /// A better solution was found.
    fn improved(&self, solution: &[f64], bound: f64);
}

const MINIMIZE: c_int = 1;
const ROWWISE: c_int = 2;
const INTEGER: c_int = 1;
const CALLBACK_SIMPLEX_INTERRUPT: c_int = 1;
const CALLBACK_IMPROVING_SOLUTION: c_int = 4;
const CALLBACK_MIP_INTERRUPT: c_int = 6;
const STATUS_ERROR: c_int = -1;
const MODEL_OPTIMAL: c_int = 7;
const MODEL_INFEASIBLE: c_int = 8;

type Callback = extern "C" fn(c_int, *const c_char, *const c_void, *mut c_int, *mut c_void);

#[link(name = "highs")]
unsafe extern "C" {
    fn Highs_create() -> *mut c_void;
    fn Highs_destroy(highs: *mut c_void);
    fn Highs_passMip(
        highs: *mut c_void,
        columns: c_int,
        rows: c_int,
        entries: c_int,
        format: c_int,
        sense: c_int,
        offset: c_double,
        cost: *const c_double,
        column_lower: *const c_double,
        column_upper: *const c_double,
        row_lower: *const c_double,
        row_upper: *const c_double,
        start: *const c_int,
        index: *const c_int,
        value: *const c_double,
        integrality: *const c_int,
    ) -> c_int;
    fn Highs_setBoolOptionValue(highs: *mut c_void, option: *const c_char, value: c_int) -> c_int;
    fn Highs_setIntOptionValue(highs: *mut c_void, option: *const c_char, value: c_int) -> c_int;
    fn Highs_setDoubleOptionValue(highs: *mut c_void, option: *const c_char, value: c_double) -> c_int;
    fn Highs_setSolution(
        highs: *mut c_void,
        column_value: *const c_double,
        row_value: *const c_double,
        column_dual: *const c_double,
        row_dual: *const c_double,
    ) -> c_int;
    fn Highs_setCallback(highs: *mut c_void, callback: Callback, data: *mut c_void) -> c_int;
    fn Highs_startCallback(highs: *mut c_void, kind: c_int) -> c_int;
    fn Highs_getCallbackDataOutItem(data: *const c_void, name: *const c_char) -> *const c_void;
    fn Highs_run(highs: *mut c_void) -> c_int;
    fn Highs_getModelStatus(highs: *const c_void) -> c_int;
    fn Highs_getDoubleInfoValue(highs: *const c_void, name: *const c_char, value: *mut c_double) -> c_int;
}

/// What the callback works with.
struct Watched<'a> {
    watcher: &'a dyn Watcher,
    columns: usize,
}

/// Minimizes the program, starting from a solution if there is one; returns how it ended and a bound on the objective.
///
/// Solutions come through the watcher, the optimal one included unless it is the one to start from.
pub(crate) fn minimize(
    matrix: &Matrix,
    start: Option<&[f64]>,
    options: Options,
    watcher: &dyn Watcher,
) -> (Outcome, f64) {
    let failed = (Outcome::Failed, f64::NEG_INFINITY);
    let sizes = [matrix.cost.len(), matrix.lower.len(), matrix.columns.len()].map(c_int::try_from);
    let [Ok(columns), Ok(rows), Ok(entries)] = sizes else {
        return failed;
    };
    let consistent = matrix.lower.len() == matrix.upper.len()
        && matrix.starts.len() == matrix.lower.len()
        && matrix.columns.len() == matrix.coefficients.len()
        && start.is_none_or(|start| start.len() == matrix.cost.len());
    if !consistent {
        return failed;
    }
    let (zeros, ones) = (vec![0.0; matrix.cost.len()], vec![1.0; matrix.cost.len()]);
    let integrality = vec![INTEGER; matrix.cost.len()];
    let mut watched = Watched {
        watcher,
        columns: matrix.cost.len(),
    };
    // SAFETY: every array has the length that goes with it, and all of them, as well as `watched`, outlive the object, which is
    // destroyed below. Option and info names are those of HiGHS, and their types agree.
    unsafe {
        let highs = Highs_create();
        Highs_setBoolOptionValue(highs, c"output_flag".as_ptr(), 0);
        Highs_setIntOptionValue(highs, c"random_seed".as_ptr(), options.seed);
        Highs_setDoubleOptionValue(highs, c"mip_rel_gap".as_ptr(), 0.0);
        Highs_setDoubleOptionValue(highs, c"mip_abs_gap".as_ptr(), options.absolute_gap);
        if let Some(limit) = options.time_limit {
            Highs_setDoubleOptionValue(highs, c"time_limit".as_ptr(), limit);
        }
        let status = Highs_passMip(
            highs,
            columns,
            rows,
            entries,
            ROWWISE,
            MINIMIZE,
            0.0,
            matrix.cost.as_ptr(),
            zeros.as_ptr(),
            ones.as_ptr(),
            matrix.lower.as_ptr(),
            matrix.upper.as_ptr(),
            matrix.starts.as_ptr(),
            matrix.columns.as_ptr(),
            matrix.coefficients.as_ptr(),
            integrality.as_ptr(),
        );
        if status == STATUS_ERROR {
            Highs_destroy(highs);
            return failed;
        }
        if let Some(start) = start {
            let none = std::ptr::null();
            Highs_setSolution(highs, start.as_ptr(), none, none, none);
        }
        Highs_setCallback(highs, callback, (&raw mut watched).cast());
        for kind in [
            CALLBACK_SIMPLEX_INTERRUPT,
            CALLBACK_IMPROVING_SOLUTION,
            CALLBACK_MIP_INTERRUPT,
        ] {
            Highs_startCallback(highs, kind);
        }
        let status = Highs_run(highs);
        let mut bound = f64::NEG_INFINITY;
        Highs_getDoubleInfoValue(highs, c"mip_dual_bound".as_ptr(), &raw mut bound);
        let outcome = match Highs_getModelStatus(highs) {
            MODEL_OPTIMAL => Outcome::Optimal,
            MODEL_INFEASIBLE => Outcome::Infeasible,
            _ if status == STATUS_ERROR => Outcome::Failed,
            _ => Outcome::Stopped,
        };
        Highs_destroy(highs);
        (outcome, bound)
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
    // SAFETY: `data` is what was given to `Highs_setCallback`, alive until `minimize` returns.
    let watched = unsafe { &*data.cast::<Watched<'_>>() };
    if kind == CALLBACK_IMPROVING_SOLUTION {
        // SAFETY: the item of this name is an array with one number for each column, valid during the callback.
        let solution = unsafe {
            let values = item(data_out, c"mip_solution");
            (!values.is_null()).then(|| std::slice::from_raw_parts(values, watched.columns))
        };
        // SAFETY: the item of this name is one number, valid during the callback.
        let bound = unsafe { item(data_out, c"mip_dual_bound").as_ref() };
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
unsafe fn item(data: *const c_void, name: &CStr) -> *const f64 {
    // SAFETY: by contract.
    unsafe { Highs_getCallbackDataOutItem(data, name.as_ptr()).cast() }
}
