//! The CUDA runtime: a library that is loaded by name, as the process may have it already, and never unloaded.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

/// Its names, the newest first.
const NAMES: [&CStr; 4] = [
    c"libcudart.so.13",
    c"libcudart.so.12",
    c"libcudart.so.11.0",
    c"libcudart.so",
];

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `cudaError_t`: 0 stands for success.
type Error = c_int;

type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> Error;
type Free = unsafe extern "C" fn(*mut c_void) -> Error;
type GetDevice = unsafe extern "C" fn(*mut c_int) -> Error;
type SetDevice = unsafe extern "C" fn(c_int) -> Error;
type MemGetInfo = unsafe extern "C" fn(*mut usize, *mut usize) -> Error;
type Plain = unsafe extern "C" fn() -> Error;
type ErrorString = unsafe extern "C" fn(Error) -> *const c_char;

/// Functions of the CUDA runtime, as its documentation has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    malloc: Malloc,
    free: Free,
    get_device: GetDevice,
    set_device: SetDevice,
    mem_get_info: MemGetInfo,
    synchronize: Plain,
    last_error: Plain,
    error_string: ErrorString,
}

macro_rules! function {
    ($library:expr, $name:literal, $type:ty) => {{
        // SAFETY: the library is loaded, and the name ends in a zero.
        let found = unsafe { dlsym($library, $name.as_ptr()) };
        if found.is_null() {
            return Err(format!("it has no `{}`", $name.to_string_lossy()));
        }
        // SAFETY: a function of this name in a CUDA runtime has the type of the field, in every version.
        unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
    }};
}

impl Library {
    /// That of a file, or without one that of the process, else that of the system.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn load(path: Option<&CStr>) -> Result<Self, String> {
        static LOADED: Mutex<Vec<(Option<CString>, Library)>> = Mutex::new(Vec::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = loaded.iter().find(|(known, _)| known.as_deref() == path) {
            return Ok(*known);
        }
        // SAFETY: the name ends in a zero; code that a CUDA runtime runs when it is loaded needs nothing of its caller.
        let open = |name: &CStr, flags| unsafe { dlopen(name.as_ptr(), flags) };
        let handle = match path {
            Some(path) => open(path, RTLD_LAZY),
            None => {
                let here = NAMES.iter().map(|name| open(name, RTLD_LAZY | RTLD_NOLOAD));
                let anywhere = NAMES.iter().map(|name| open(name, RTLD_LAZY));
                let mut found = here.chain(anywhere).filter(|handle| !handle.is_null());
                found.next().unwrap_or(null_mut())
            }
        };
        let name = path.map_or_else(|| "libcudart.so".into(), CStr::to_string_lossy);
        if handle.is_null() {
            return Err(format!("there is no CUDA runtime `{name}`"));
        }
        let library = Self::of(handle).map_err(|why| format!("`{name}` is no CUDA runtime: {why}"))?;
        loaded.push((path.map(CStr::to_owned), library));
        Ok(library)
    }

    fn of(handle: *mut c_void) -> Result<Self, String> {
        Ok(Self {
            malloc: function!(handle, c"cudaMalloc", Malloc),
            free: function!(handle, c"cudaFree", Free),
            get_device: function!(handle, c"cudaGetDevice", GetDevice),
            set_device: function!(handle, c"cudaSetDevice", SetDevice),
            mem_get_info: function!(handle, c"cudaMemGetInfo", MemGetInfo),
            synchronize: function!(handle, c"cudaDeviceSynchronize", Plain),
            last_error: function!(handle, c"cudaGetLastError", Plain),
            error_string: function!(handle, c"cudaGetErrorString", ErrorString),
        })
    }

    /// Nothing, or the words of the runtime for an error. The runtime forgets it, so that the next kernel is not taken to have failed.
    fn checked(self, error: Error) -> Result<(), String> {
        if error == 0 {
            return Ok(());
        }
        // SAFETY: the functions may be called from every thread at any time; the text is a constant that ends in a zero.
        let text = unsafe {
            (self.last_error)();
            (self.error_string)(error)
        };
        if text.is_null() {
            return Err(format!("error {error}"));
        }
        // SAFETY: as above.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// The device of this thread.
    pub(super) fn device(self) -> Result<c_int, String> {
        let mut device = 0;
        // SAFETY: the function may be called from every thread, and sets the number.
        self.checked(unsafe { (self.get_device)(&raw mut device) })?;
        Ok(device)
    }

    /// Does something while this is the device of the thread.
    fn on<T>(self, device: c_int, what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let before = self.device()?;
        // SAFETY: the function may be called from every thread; numbers that are none are an error.
        let choose = |device| self.checked(unsafe { (self.set_device)(device) });
        if before != device {
            choose(device)?;
        }
        let done = what();
        if before != device {
            choose(before)?;
        }
        done
    }

    /// So many bytes of a device.
    pub(super) fn take(self, device: c_int, bytes: usize) -> Result<usize, String> {
        self.on(device, || {
            let mut address = null_mut();
            // SAFETY: the function sets the address where it succeeds.
            self.checked(unsafe { (self.malloc)(&raw mut address, bytes) })?;
            Ok(address as usize)
        })
    }

    /// Gives back what [`take`](Self::take) gave. It cannot fail but where the process ends or the device is lost, and then nothing is to be done.
    pub(super) fn give(self, address: usize) {
        // SAFETY: the address is one that `take` gave, and callers no longer use it. The runtime finds its device by itself.
        _ = self.checked(unsafe { (self.free)(address as *mut c_void) });
    }

    /// Free and all bytes of a device.
    pub(super) fn room(self, device: c_int) -> Result<(usize, usize), String> {
        self.on(device, || {
            let (mut free, mut total) = (0, 0);
            // SAFETY: the function sets both numbers where it succeeds.
            self.checked(unsafe { (self.mem_get_info)(&raw mut free, &raw mut total) })?;
            Ok((free, total))
        })
    }

    /// Waits until a device has done all that it was told.
    pub(super) fn wait(self, device: c_int) -> Result<(), String> {
        // SAFETY: the function may be called from every thread.
        self.on(device, || self.checked(unsafe { (self.synchronize)() }))
    }
}
