//! The C interface of OR-Tools' library (`ortools/sat/c_api`): serialized messages in, serialized messages out.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{c_int, c_void};

use prost::Message;

use crate::library::{CpSat, library};
use crate::messages::{CpModelProto, CpSolverResponse, SatParameters};

#[cfg(any(unix, windows))]
unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// Nothing gives memory where no library can be loaded.
#[cfg(not(any(unix, windows)))]
unsafe fn free(_: *mut c_void) {}

/// One solve that another thread may stop. The flag that stops it stays set: a fresh environment is needed for the next solve.
pub(crate) struct Environment {
    handle: *mut c_void,
    functions: &'static CpSat,
}

// SAFETY: the library guards the environment's stop flag by a lock; nothing else in it changes.
unsafe impl Send for Environment {}
// SAFETY: as above; `stop` is meant to be called while another thread solves.
unsafe impl Sync for Environment {}

impl Environment {
    /// `None` where there is no library.
    pub(crate) fn new() -> Option<Self> {
        let functions = &library().ok()?.cp_sat;
        // SAFETY: has no preconditions.
        let handle = unsafe { (functions.SolveCpNewEnv)() };
        Some(Self { handle, functions })
    }

    /// Makes a solve in this environment return soon, with the best it has.
    pub(crate) fn stop(&self) {
        // SAFETY: the environment is alive until `self` is dropped.
        unsafe { (self.functions.SolveCpStopSearch)(self.handle) };
    }

    /// Solves a model; `None` if it is too large for the interface, or the answer cannot be read.
    pub(crate) fn solve(&self, model: &CpModelProto, parameters: &SatParameters) -> Option<CpSolverResponse> {
        let model = model.encode_to_vec();
        let parameters = parameters.encode_to_vec();
        let model_size = c_int::try_from(model.len()).ok()?;
        let parameters_size = c_int::try_from(parameters.len()).ok()?;
        let (mut data, mut size) = (std::ptr::null_mut::<c_void>(), 0);
        // SAFETY: both buffers live through the call and have the sizes given; the library writes one buffer, allocated by
        // malloc, and its size.
        unsafe {
            (self.functions.SolveCpInterruptible)(
                self.handle,
                model.as_ptr().cast(),
                model_size,
                parameters.as_ptr().cast(),
                parameters_size,
                &raw mut data,
                &raw mut size,
            );
        }
        let response = usize::try_from(size).ok().filter(|_| !data.is_null()).and_then(|size| {
            // SAFETY: the library wrote that many bytes there.
            let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
            CpSolverResponse::decode(bytes).ok()
        });
        // SAFETY: allocated by malloc, or null, and not used any more.
        unsafe { free(data) };
        response
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: created by `SolveCpNewEnv`, destroyed once.
        unsafe { (self.functions.SolveCpDestroyEnv)(self.handle) };
    }
}
