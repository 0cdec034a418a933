//! Memory from the system: blocks by `mmap`, everything else by `malloc`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::address_space::{self, PAGE, PRIVATE};
use crate::pages::Memory;
use crate::plan::ALIGNMENT;
use crate::share::Shared;

const MADV_DONTNEED: c_int = 4;
const MADV_HUGEPAGE: c_int = 14;
const MADV_NOHUGEPAGE: c_int = 15;
/// Bytes of a huge page; on systems where it has another size, the advice is worth nothing and does no harm.
const HUGE: usize = 2 << 20;

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn posix_memalign(out: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int;
    fn free(address: *mut c_void);
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Returns free memory of the heap to the system; a function of the GNU C library.
const TRIM: &CStr = c"malloc_trim";
/// Sets how the heap treats memory; another one.
const OPTION: &CStr = c"mallopt";
/// From so many bytes on memory is mapped by itself.
const MMAP_THRESHOLD: c_int = -3;
/// So many free bytes at its end the heap keeps.
const TRIM_THRESHOLD: c_int = -1;
/// While models are loaded: what a weight is packed in goes back to the system when it is freed, and the heap does not keep one after the other.
const LOADING: [(c_int, c_int); 2] = [(MMAP_THRESHOLD, 256 << 10), (TRIM_THRESHOLD, 128 << 10)];
/// Afterwards: where the C library stops by itself once memory of this size was freed, as that of weights is.
const RUNNING: [(c_int, c_int); 2] = [(MMAP_THRESHOLD, 32 << 20), (TRIM_THRESHOLD, 64 << 20)];

/// A function of the C library, where it has it.
fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: no library stands for all that are loaded, and the name ends in a zero.
    let found = unsafe { dlsym(null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Has the heap give back large memory at once while models are loaded, where the C library can do that.
pub(crate) fn heap_is_loading(is_loading: bool) {
    static FOUND: OnceLock<Option<unsafe extern "C" fn(c_int, c_int) -> c_int>> = OnceLock::new();
    let set = *FOUND.get_or_init(|| {
        // SAFETY: where a function has this name, it is that of the GNU C library, with this signature.
        find(OPTION).map(|found| unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, c_int) -> c_int>(found)
        })
    });
    let Some(set) = set else { return };
    for (option, value) in if is_loading { LOADING } else { RUNNING } {
        // SAFETY: the function may be called from every thread at any time; it changes where later memory comes from.
        unsafe { set(option, value) };
    }
}

/// What the heap of the process keeps though nobody uses it goes back to the system, where its C library can do that. By how many bytes the
/// process shrank.
pub fn trim_heap() -> u64 {
    static FOUND: OnceLock<Option<unsafe extern "C" fn(usize) -> c_int>> = OnceLock::new();
    let trim = *FOUND.get_or_init(|| {
        // SAFETY: where a function has this name, it is that of the GNU C library, with this signature.
        find(TRIM)
            .map(|found| unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> c_int>(found) })
    });
    let Some(trim) = trim else { return 0 };
    let before = resident();
    // SAFETY: the function may be called from every thread at any time, and leaves what is in use as it is.
    unsafe { trim(0) };
    before.saturating_sub(resident())
}

/// Resident bytes of the process; 0 where the system does not say it.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The memory of this process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Whether blocks lie in huge pages, as far as these lie wholly in what is expected to be used.
    pub(crate) huge_pages: bool,
    /// The block that its sessions share with others; without it each has blocks of its own.
    pub(crate) shared: Option<&'static Shared>,
}

/// What is mapped for a block: its bytes from a boundary of huge pages on, and room to find one.
fn mapped(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE) + HUGE
}

impl Memory for Process {
    fn map(&self, bytes: usize) -> Option<usize> {
        if let Some(shared) = self.shared {
            return shared.map(bytes);
        }
        let length = mapped(bytes);
        let start = address_space::map(length, PRIVATE, None, 0)?;
        let end = start + length;
        let base = start.next_multiple_of(HUGE);
        let last = base + bytes.next_multiple_of(PAGE);
        let rests = [start..base, last..end].into_iter().filter(|rest| !rest.is_empty());
        rests.for_each(|rest| address_space::unmap(rest.start, rest.len()));
        Some(base)
    }

    fn expect(&self, addresses: Range<usize>) {
        // The tail lies in small pages: a huge one would reach beyond what is used.
        let huge = addresses.start / HUGE * HUGE..addresses.end / HUGE * HUGE;
        if self.shared.is_none() && self.huge_pages && !huge.is_empty() {
            // SAFETY: a block begins at a boundary of huge pages, so the addresses are part of it; the advice does not change their content.
            unsafe { madvise(huge.start as *mut c_void, huge.len(), MADV_HUGEPAGE) };
        }
    }

    fn unmap(&self, start: usize, bytes: usize) {
        if let Some(shared) = self.shared {
            return shared.unmap(start, bytes);
        }
        address_space::unmap(start, bytes.next_multiple_of(PAGE));
    }

    fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    fn leave(&self) {
        self.shared.iter().for_each(|shared| shared.leave());
    }

    fn forget(&self, addresses: Range<usize>) {
        if self.shared.is_some() {
            // Others have the same pages.
            return;
        }
        let start = addresses.start.next_multiple_of(PAGE);
        let end = addresses.end / PAGE * PAGE;
        if start < end {
            // SAFETY: the addresses lie in a block, and no live buffer has one of these pages: its content may go.
            unsafe { madvise(start as *mut c_void, end - start, MADV_DONTNEED) };
            if self.huge_pages {
                // SAFETY: as above, and this advice does not change what is there.
                unsafe { madvise(start as *mut c_void, end - start, MADV_NOHUGEPAGE) };
            }
        }
    }
}

/// Memory outside of blocks, aligned as kernels expect it; null where there is none.
pub(crate) fn allocate(bytes: usize) -> *mut c_void {
    let mut address = null_mut();
    // SAFETY: the alignment is a power of two and a multiple of a pointer's size; the call sets the address where it returns 0.
    if unsafe { posix_memalign(&raw mut address, ALIGNMENT as usize, bytes) } == 0 {
        address
    } else {
        null_mut()
    }
}

/// Frees what [`allocate`] gave.
///
/// # Safety
/// The address is one that [`allocate`] gave and nobody has freed.
pub(crate) unsafe fn release(address: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { free(address) }
}
