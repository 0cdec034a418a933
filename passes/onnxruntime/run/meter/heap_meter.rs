//! Preloaded into a process (`LD_PRELOAD`), counts the bytes that `malloc` and its kin hand out: the live sum, and its peak since
//! the last reset. Two more peaks, which resets leave alone: that between two marks, and that since the least sum of a watched time.
//!
//! Bytes are those the allocator set aside (`malloc_usable_size`), so blocks cost what they really take. C++'s `operator new` and
//! everything else that a dynamically linked program allocates from the heap goes through these functions. Memory that a program
//! maps itself (`mmap`) is not seen.
//!
//! The crate's build script compiles this file to a shared library of its own, without the standard library: nothing in here may
//! allocate. `__libc_malloc` and its kin are glibc's own names for the functions that this file stands before; `dlsym` would itself
//! allocate.
#![no_std]

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static PEAK_SINCE_MARK: AtomicI64 = AtomicI64::new(0);
static LEAST: AtomicI64 = AtomicI64::new(0);
static PEAK_SINCE_LEAST: AtomicI64 = AtomicI64::new(0);
/// What is live up to so much above the least counts as the least: small blocks come and go.
static SLACK: AtomicI64 = AtomicI64::new(0);

// SAFETY: glibc has these functions, with these signatures.
#[link(name = "c")]
unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn malloc_usable_size(block: *mut c_void) -> usize;
    fn __errno_location() -> *mut c_int;
}

/// Bytes of a block; none of no block.
///
/// # Safety
/// The block is null or live, of the allocator.
unsafe fn bytes(block: *mut c_void) -> i64 {
    // SAFETY: the block is live.
    if block.is_null() { 0 } else { unsafe { malloc_usable_size(block) as i64 } }
}

/// Counts a block that was just handed out, if it was.
///
/// # Safety
/// That of [`bytes`].
unsafe fn taken(block: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's.
    let bytes = unsafe { bytes(block) };
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
    PEAK_SINCE_MARK.fetch_max(live, Relaxed);
    PEAK_SINCE_LEAST.fetch_max(live, Relaxed);
    block
}

/// Counts bytes that are given back.
fn given_back(bytes: i64) {
    let live = LIVE.fetch_sub(bytes, Relaxed) - bytes;
    if live <= LEAST.load(Relaxed) + SLACK.load(Relaxed) {
        LEAST.fetch_min(live, Relaxed);
        PEAK_SINCE_LEAST.store(live, Relaxed);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the allocator takes what the C standard allows here, which the caller promises; it returns null or a live block.
    unsafe { taken(__libc_malloc(size)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the allocator takes what the C standard allows here, which the caller promises; it returns null or a live block.
    unsafe { taken(__libc_calloc(count, size)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller gives null or a live block, whose size is read before it moves.
    unsafe {
        let before = bytes(block);
        let moved = __libc_realloc(block, size);
        // A failed call leaves the block; a size of zero frees it.
        if !moved.is_null() || size == 0 {
            given_back(before);
        }
        taken(moved)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as for `realloc`.
        Some(size) => unsafe { realloc(block, size) },
        None => {
            // SAFETY: every thread has its own error number, and this is where it lies.
            unsafe { *__errno_location() = ENOMEM };
            null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the allocator takes what the C standard allows here, which the caller promises; it returns null or a live block.
    unsafe { taken(__libc_memalign(alignment, size)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the allocator takes what the C standard allows here, which the caller promises; it returns null or a live block.
    unsafe { taken(__libc_memalign(alignment, size)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment % size_of::<*mut c_void>() != 0 {
        return EINVAL;
    }
    // SAFETY: the alignment is a power of two; the allocator returns null or a live block.
    let block = unsafe { taken(__libc_memalign(alignment, size)) };
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller says where the block goes.
    unsafe { *out = block };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller gives null or a live block, whose size is read before it goes.
    unsafe {
        given_back(bytes(block));
        __libc_free(block);
    }
}

/// Bytes handed out and not given back.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_live() -> i64 {
    LIVE.load(Relaxed)
}

/// Largest number of live bytes since the last reset.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_peak() -> i64 {
    PEAK.load(Relaxed)
}

/// Starts a new peak at what is live now.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_reset() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

/// Most live bytes since the last mark; sets another one.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_mark() -> i64 {
    PEAK_SINCE_MARK.swap(LIVE.load(Relaxed), Relaxed)
}

/// Starts a watched time: the least and the peak since then are what is live now.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_watch(slack: i64) {
    let live = LIVE.load(Relaxed);
    SLACK.store(slack, Relaxed);
    LEAST.store(live, Relaxed);
    PEAK_SINCE_LEAST.store(live, Relaxed);
}

/// Fewest live bytes of the watched time.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_least() -> i64 {
    LEAST.load(Relaxed)
}

/// Most live bytes since the last moment of the watched time with no more than the least and the slack.
#[unsafe(no_mangle)]
pub extern "C" fn remat_heap_peak_since_least() -> i64 {
    PEAK_SINCE_LEAST.load(Relaxed)
}

/// Never called: nothing in here can panic.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
