//! The C interface of OR-Tools' library (`ortools/sat/c_api`): serialized messages in, serialized messages out.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{c_int, c_void};

use cp_sat::prost::Message;
use cp_sat::proto::{CpModelProto, CpSolverResponse, SatParameters};

#[link(name = "ortools")]
unsafe extern "C" {
    fn SolveCpNewEnv() -> *mut c_void;
    fn SolveCpDestroyEnv(environment: *mut c_void);
    fn SolveCpStopSearch(environment: *mut c_void);
    fn SolveCpInterruptible(
        environment: *mut c_void,
        model: *const c_void,
        model_size: c_int,
        parameters: *const c_void,
        parameters_size: c_int,
        response: *mut *mut c_void,
        response_size: *mut c_int,
    );
    fn free(memory: *mut c_void);
}

/// One solve that another thread may stop. The flag that stops it stays set: a fresh environment is needed for the next solve.
pub(crate) struct Environment(*mut c_void);

// SAFETY: the library guards the environment's stop flag by a lock; nothing else in it changes.
unsafe impl Send for Environment {}
// SAFETY: as above; `stop` is meant to be called while another thread solves.
unsafe impl Sync for Environment {}

impl Environment {
    pub(crate) fn new() -> Self {
        // SAFETY: has no preconditions.
        Self(unsafe { SolveCpNewEnv() })
    }

    /// Makes a solve in this environment return soon, with the best it has.
    pub(crate) fn stop(&self) {
        // SAFETY: the environment is alive until `self` is dropped.
        unsafe { SolveCpStopSearch(self.0) };
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
            SolveCpInterruptible(
                self.0,
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
        unsafe { SolveCpDestroyEnv(self.0) };
    }
}
