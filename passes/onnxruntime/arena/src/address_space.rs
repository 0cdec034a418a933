//! Address space from the system, and files in memory to map there.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;

const PROT_READ_WRITE: c_int = 1 | 2;
/// Bytes of this process, which take memory when they are written.
pub(crate) const PRIVATE: c_int = 0x02 | 0x4000;
/// Those that others have who map the same file.
pub(crate) const SHARED: c_int = 0x01 | 0x4000;
const MAP_ANONYMOUS: c_int = 0x20;
const MFD_CLOEXEC: c_uint = 1;
const FALLOC_KEEP_SIZE_PUNCH_HOLE: c_int = 1 | 2;
/// A multiple of every size of pages.
pub(crate) const PAGE: usize = 1 << 16;

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    fn fallocate(file: c_int, mode: c_int, at: c_long, bytes: c_long) -> c_int;
    fn mmap(
        address: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        at: c_long,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, bytes: usize) -> c_int;
}

/// A nameless file in memory. The name is for who looks at the process.
pub(crate) fn create(name: &str) -> io::Result<File> {
    let name = CString::new(name).map_err(io::Error::other)?;
    // SAFETY: the name ends in a zero.
    let file = unsafe { memfd_create(name.as_ptr(), MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// The address of so many bytes of zeros, or of a file from an offset on, that may be read and written; `None` where there are none.
pub(crate) fn map(bytes: usize, how: c_int, file: Option<&File>, offset: u64) -> Option<usize> {
    let (how, file) = file.map_or((how | MAP_ANONYMOUS, -1), |file| (how, file.as_raw_fd()));
    let offset = c_long::try_from(offset).ok()?;
    // SAFETY: the kernel chooses addresses where nothing is, and a file that is mapped is open.
    let start = unsafe { mmap(null_mut(), bytes, PROT_READ_WRITE, how, file, offset) };
    (start as isize != -1).then_some(start as usize)
}

/// Gives bytes back that [`map`] gave, and in which nothing is live.
pub(crate) fn unmap(start: usize, bytes: usize) {
    // SAFETY: nobody else has addresses that `map` gave, and who gives them back no longer uses them.
    unsafe { munmap(start as *mut c_void, bytes) };
}

/// A file in memory loses what it holds, and keeps its length.
pub(crate) fn empty(file: &File, length: u64) {
    if let Ok(length) = c_long::try_from(length) {
        // SAFETY: the file is open, and who maps it has nothing there that is live.
        unsafe { fallocate(file.as_raw_fd(), FALLOC_KEEP_SIZE_PUNCH_HOLE, 0, length) };
    }
}
