//! How an allocation fails.
//!
//! The runtime does not look whether an allocator returned null: it goes on with it, and the process ends. Its own allocators throw a C++ exception,
//! of which it makes the status of the run. So does this one: where there is no memory, the function that the runtime calls leaves its frame
//! and jumps to the function of the C++ library that throws. No frame of Rust is on the stack then, so nothing unwinds through one.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

/// The C++ library of the runtime on Linux.
const LIBRARY: &CStr = c"libstdc++.so.6";
/// `std::__throw_runtime_error(const char*)`, which throws an exception with a copy of the text.
const THROW: &CStr = c"_ZSt21__throw_runtime_errorPKc";

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Where a failed allocation jumps to, and with which text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Failure {
    throw: *const c_void,
    text: *const c_char,
}

/// What an allocation gives: an address or a failure, in two registers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Allocated {
    pub(crate) address: *mut c_void,
    failure: *const Failure,
}

impl Allocated {
    /// The memory at an address; null for no bytes.
    pub(crate) fn at(address: *mut c_void) -> Self {
        let failure = null();
        Self { address, failure }
    }

    /// No memory, because of this. It is valid until the thread fails again. On a system where nothing can throw, it is that at null.
    pub(crate) fn failed(why: &str) -> Self {
        thread_local!(static LAST: RefCell<Option<Box<(Failure, CString)>>> = const { RefCell::new(None) });
        let Some(throw) = thrower() else {
            return Self::at(null_mut());
        };
        let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
        let failure = Failure {
            throw: throw as *const c_void,
            text: text.as_ptr(),
        };
        let kept = LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            std::ptr::from_ref(&last.insert(Box::new((failure, text))).0)
        });
        Self {
            address: null_mut(),
            failure: kept.unwrap_or(null()),
        }
    }
}

/// Whether an allocation can fail without an end of the process.
pub(crate) fn can_fail() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && thrower().is_some()
}

/// The address of the function that throws, if the process has loaded its library.
fn thrower() -> Option<usize> {
    static FOUND: OnceLock<Option<usize>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name ends in a zero, and a library that is loaded already runs no code again.
        let library = unsafe { dlopen(LIBRARY.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the library is loaded, and never closed here; the name ends in a zero.
        let throw = unsafe { dlsym(library, THROW.as_ptr()) };
        (!throw.is_null()).then_some(throw as usize)
    })
}

/// Defines a function with the interface of C that calls another one of two machine words and gives the address of what this
/// [`Allocated`], or throws.
macro_rules! throwing {
    ($name:ident, $inner:ident, $of:ty) => {
        /// # Safety
        #[doc = concat!("That of `", stringify!($inner), "`, and callers that can be unwound.")]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name(of: *mut $of, bytes: usize) -> *mut c_void {
            // Both arguments are handed on in their registers; the frame is gone before the jump.
            std::arch::naked_asm!(
                "sub rsp, 8",
                "call {inner}",
                "add rsp, 8",
                "test rdx, rdx",
                "jne 2f",
                "ret",
                "2:",
                "mov rdi, [rdx + 8]",
                "jmp [rdx]",
                inner = sym $inner
            )
        }

        /// # Safety
        #[doc = concat!("That of `", stringify!($inner), "`, and callers that can be unwound.")]
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name(of: *mut $of, bytes: usize) -> *mut c_void {
            // Both arguments are handed on in their registers; the frame is gone before the jump.
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-16]!",
                "mov x29, sp",
                "bl {inner}",
                "ldp x29, x30, [sp], #16",
                "cbnz x1, 2f",
                "ret",
                "2:",
                "ldr x16, [x1]",
                "ldr x0, [x1, #8]",
                "br x16",
                inner = sym $inner
            )
        }

        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        unsafe extern "C" fn $name(of: *mut $of, bytes: usize) -> *mut c_void {
            // SAFETY: the caller's.
            unsafe { $inner(of, bytes) }.address
        }
    };
}
pub(crate) use throwing;
