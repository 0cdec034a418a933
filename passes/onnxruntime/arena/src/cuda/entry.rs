//! The functions that programs call, and what the runtime tells about its sessions.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use super::library::Library;
use super::session::{DeviceSession, Wanted};
use super::slots::{self, Functions, SLOTS};
use crate::api::{Api, Status, text};
use crate::messages::pass_on;
use crate::read::read_plan;

/// What sessions are to have. The layout is that of `remat_cuda_settings` in C.
#[repr(C)]
#[derive(Debug)]
pub struct CudaSettings {
    /// Path of the plan; null for none.
    pub plan: *const c_char,
    /// Path of the CUDA runtime; null for that of the process or of the system.
    pub library: *const c_char,
    /// Number of the device; negative for that of the thread which needs memory first.
    pub device: c_int,
    /// Not 0: requests are recorded.
    pub record: c_int,
}

/// What the provider is to call. The layout is that of `remat_cuda_functions` in C.
#[repr(C)]
#[derive(Debug)]
pub struct CudaFunctions {
    /// `gpu_external_alloc`.
    pub alloc: unsafe extern "C" fn(usize) -> *mut c_void,
    /// `gpu_external_free`.
    pub free: unsafe extern "C" fn(*mut c_void),
    /// `gpu_external_empty_cache`.
    pub empty_cache: unsafe extern "C" fn(),
    /// The number of the sessions, from 0.
    pub session: i64,
}

/// Messages of sessions that reach the error stream have this severity at least: warnings.
const LEAST_SEVERITY: c_int = 2;

/// Those with functions, by number.
static OPEN: Mutex<Vec<(i64, &DeviceSession)>> = Mutex::new(Vec::new());

fn numbered(number: i64) -> Option<&'static DeviceSession> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter()
        .find(|(known, _)| *known == number)
        .map(|&(_, session)| session)
}

/// Makes functions for sessions with the CUDA provider. Null, or why there are none: text that is valid until the thread calls this again.
///
/// # Safety
/// `settings` is valid, its texts end in a zero, and `functions` can be written.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub unsafe extern "C" fn remat_cuda_open(
    settings: *const CudaSettings,
    functions: *mut CudaFunctions,
) -> *const c_char {
    // SAFETY: the caller's.
    let settings = unsafe { &*settings };
    // SAFETY: the caller's.
    let (plan, library) = unsafe { (text(settings.plan), text(settings.library)) };
    match open(plan, library, settings) {
        Ok(made) => {
            // SAFETY: the caller's.
            unsafe { functions.write(made) };
            null()
        }
        Err(why) => {
            thread_local!(static LAST: RefCell<CString> = RefCell::default());
            let why = CString::new(why.replace('\0', " ")).unwrap_or_default();
            let kept = LAST.try_with(|last| {
                *last.borrow_mut() = why;
                last.borrow().as_ptr()
            });
            kept.unwrap_or(c"remat: the thread ends".as_ptr())
        }
    }
}

fn open(plan: Option<&CStr>, library: Option<&CStr>, settings: &CudaSettings) -> Result<CudaFunctions, String> {
    let plans = plan.map(|path| -> Result<_, String> {
        let path = path
            .to_str()
            .map_err(|error| format!("remat: the plan's path: {error}"))?;
        let file = read_plan(path).map_err(|why| format!("remat: {path}: {why}"))?;
        if file.cuda.is_none() {
            return Err(format!(
                "remat: {path} is a plan for the processor: plan the model for the CUDA provider"
            ));
        }
        Ok((path.to_owned(), file))
    });
    let plans = plans.transpose()?;
    if let Some(library) = library {
        Library::load(Some(library)).map_err(|why| format!("remat: {why}"))?;
    }
    let (session, number) = DeviceSession::create(Wanted {
        plans,
        library: library.map(CStr::to_owned),
        device: (settings.device >= 0).then_some(settings.device),
        records: settings.record != 0,
    });
    let Functions {
        alloc,
        free,
        empty_cache,
    } = slots::take(session).ok_or_else(|| {
        format!("remat: there are {SLOTS} sets of functions already: close some (`remat_cuda_close`)")
    })?;
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    OPEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((number, session));
    Ok(CudaFunctions {
        alloc,
        free,
        empty_cache,
        session: number,
    })
}

/// A session begins to load on this thread, of those with this number.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub extern "C" fn remat_cuda_load_begins(session: i64) {
    numbered(session).into_iter().for_each(DeviceSession::load_begins);
}

/// It is loaded.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub extern "C" fn remat_cuda_load_ends(session: i64) {
    numbered(session).into_iter().for_each(DeviceSession::load_ends);
}

/// No more sessions are made with the functions of this number. When all that they gave is freed, others may get them.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub extern "C" fn remat_cuda_close(session: i64) {
    numbered(session).into_iter().for_each(DeviceSession::close);
}

/// Lets session options tell when their sessions load, of those with this number, and turns the memory pattern off.
pub(crate) fn listen(api: Api, options: *mut c_void, number: &str) -> Result<(), Status> {
    let session = number.parse().ok().and_then(numbered);
    let unknown = || format!("remat: remat.arena.cuda: `{number}` is no number of `remat_cuda_open`");
    let session = session.ok_or_else(|| api.error(&unknown()))?;
    let steps = [
        api.disable_memory_pattern(options),
        api.log_to(options, log, std::ptr::from_ref(session).cast_mut().cast()),
    ];
    match steps.into_iter().find(|status| !status.is_null()) {
        Some(failed) => Err(failed),
        None => Ok(()),
    }
}

/// The messages of a session: they say when it begins to load, and when it is loaded.
unsafe extern "C" fn log(
    session: *mut c_void,
    severity: c_int,
    _category: *const c_char,
    id: *const c_char,
    place: *const c_char,
    message: *const c_char,
) {
    // SAFETY: the runtime hands back what `listen` gave it, which lives for ever.
    let session: &DeviceSession = unsafe { &*session.cast() };
    // SAFETY: the runtime's texts end in a zero and live as long as the call.
    let [id, place, message] =
        [id, place, message].map(|given| unsafe { text(given) }.unwrap_or_default().to_string_lossy());
    if message.starts_with("Session Options") {
        session.load_begins();
    } else if message.starts_with("Session successfully initialized") {
        session.load_ends();
    }
    pass_on(severity, LEAST_SEVERITY, &id, &place, &message);
}
