//! What the system is told of weights that are mapped from a file. All of it may be told at any time of any address: it changes when pages are
//! read, and never what they hold, so that an address whose mapping is gone does no harm.

use std::ffi::{c_int, c_long, c_void};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::uses::WeightUse;

const MADV_COLD: c_int = 20;
const MADV_PAGEOUT: c_int = 21;
const POSIX_FADV_WILLNEED: c_int = 3;
const POSIX_FADV_DONTNEED: c_int = 4;
const SC_PAGESIZE: c_int = 30;

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn posix_fadvise(file: c_int, offset: c_long, bytes: c_long, advice: c_int) -> c_int;
    fn sysconf(name: c_int) -> c_long;
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the function may always be called.
    let bytes = unsafe { sysconf(SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| bytes.is_power_of_two())
        .unwrap_or(1 << 12)
}

/// The pages at these addresses leave the memory if they can be read again, and if that is denied they are the first to leave it when
/// there is no room.
pub(crate) fn page_out(addresses: &Range<usize>, page_bytes: usize) {
    let start = addresses.start / page_bytes * page_bytes;
    let bytes = addresses.end.next_multiple_of(page_bytes) - start;
    for advice in [MADV_PAGEOUT, MADV_COLD] {
        // SAFETY: unlike `MADV_DONTNEED`, this advice keeps what the pages hold, whatever is mapped at these addresses by now.
        unsafe { madvise(start as *mut c_void, bytes, advice) };
    }
}

/// The system reads this part of a file ahead.
pub(crate) fn ask(file: &File, part: &WeightUse) {
    advise(file, part, POSIX_FADV_WILLNEED);
}

/// The system forgets what it has read of this part of a file, unless a process has mapped it.
pub(crate) fn forget(file: &File, part: &WeightUse) {
    advise(file, part, POSIX_FADV_DONTNEED);
}

fn advise(file: &File, part: &WeightUse, advice: c_int) {
    let (Ok(offset), Ok(bytes)) = (c_long::try_from(part.offset), c_long::try_from(part.bytes)) else {
        return;
    };
    // SAFETY: the file is open, and advice does not change what it holds.
    unsafe { posix_fadvise(file.as_raw_fd(), offset, bytes, advice) };
}
