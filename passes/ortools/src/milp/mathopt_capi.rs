//! The C interface of MathOpt (`ortools/math_opt/core/c_api/solver.h`): a serialized model in, a serialized result out. It takes
//! no parameters, and none of its interrupters is made use of: in OR-Tools 9.15 that of SCIP asks for events that SCIP 10 refuses,
//! which prints errors and stops nothing.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};

use prost::Message;

use super::mathopt::{Model, SolveResult};
use crate::library::library;

/// `SOLVER_TYPE_GSCIP`.
const SCIP: c_int = 1;

/// Solves a model with SCIP.
///
/// # Errors
/// What the library says where it rejects the model or fails, or that there is none.
pub(crate) fn solve(model: &Model) -> Result<SolveResult, String> {
    let functions = &library().map_err(ToString::to_string)?.math_opt;
    let model = model.encode_to_vec();
    let (mut data, mut size) = (std::ptr::null_mut::<c_void>(), 0);
    let mut message = std::ptr::null_mut::<c_char>();
    // SAFETY: the model lives through the call and has the size given; an interrupter may be null. The library writes one buffer
    // and its size, or a text that ends with a zero, each to be freed by `MathOptFree`.
    unsafe {
        let status = (functions.MathOptSolve)(
            model.as_ptr().cast(),
            model.len(),
            SCIP,
            std::ptr::null_mut(),
            &raw mut data,
            &raw mut size,
            &raw mut message,
        );
        let answer = if status == 0 && !data.is_null() {
            let bytes = std::slice::from_raw_parts(data.cast::<u8>(), size);
            SolveResult::decode(bytes).map_err(|error| error.to_string())
        } else if message.is_null() {
            Err(format!("status {status}"))
        } else {
            Err(CStr::from_ptr(message).to_string_lossy().into_owned())
        };
        if !data.is_null() {
            (functions.MathOptFree)(data);
        }
        if !message.is_null() {
            (functions.MathOptFree)(message.cast());
        }
        answer
    }
}
