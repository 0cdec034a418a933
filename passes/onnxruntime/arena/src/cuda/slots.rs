//! The functions that the CUDA provider calls. They have no argument that says for whom they are, so there is a number of each, and every set of options
//! has one.

use std::ffi::c_void;
use std::sync::{PoisonError, RwLock};

use super::session::DeviceSession;

/// How many sets of options there can be at one time.
pub(super) const SLOTS: usize = 64;

static TAKEN: RwLock<[Option<&DeviceSession>; SLOTS]> = RwLock::new([None; SLOTS]);

/// What the provider calls, by its option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Functions {
    /// `gpu_external_alloc`.
    pub(super) alloc: unsafe extern "C" fn(usize) -> *mut c_void,
    /// `gpu_external_free`.
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    /// `gpu_external_empty_cache`.
    pub(super) empty_cache: unsafe extern "C" fn(),
}

/// Functions for a set of options; `None` where all are taken.
pub(super) fn take(session: &'static DeviceSession) -> Option<Functions> {
    let mut taken = TAKEN.write().unwrap_or_else(PoisonError::into_inner);
    let is_free = |slot: &Option<&DeviceSession>| slot.is_none_or(DeviceSession::is_over);
    let slot = taken.iter().position(is_free)?;
    taken[slot] = Some(session);
    FUNCTIONS.get(slot).copied()
}

fn at(slot: usize) -> Option<&'static DeviceSession> {
    TAKEN.read().unwrap_or_else(PoisonError::into_inner)[slot]
}

unsafe extern "C" fn alloc<const SLOT: usize>(bytes: usize) -> *mut c_void {
    at(SLOT).map_or(0, |session| session.allocate(bytes)) as *mut c_void
}

unsafe extern "C" fn free<const SLOT: usize>(address: *mut c_void) {
    if let Some(session) = at(SLOT) {
        session.free(address as usize);
    }
}

/// Called when kernels return what they tried algorithms in, and when weights of their own pieces go.
unsafe extern "C" fn empty_cache<const SLOT: usize>() {
    if let Some(session) = at(SLOT) {
        session.trim();
    }
}

macro_rules! functions {
    ($($high:literal)*) => {
        [$(
            functions!(@ $high * 8), functions!(@ $high * 8 + 1), functions!(@ $high * 8 + 2), functions!(@ $high * 8 + 3),
            functions!(@ $high * 8 + 4), functions!(@ $high * 8 + 5), functions!(@ $high * 8 + 6), functions!(@ $high * 8 + 7),
        )*]
    };
    (@ $slot:expr) => {
        Functions {
            alloc: alloc::<{ $slot }>,
            free: free::<{ $slot }>,
            empty_cache: empty_cache::<{ $slot }>,
        }
    };
}

static FUNCTIONS: [Functions; SLOTS] = functions!(0 1 2 3 4 5 6 7);
