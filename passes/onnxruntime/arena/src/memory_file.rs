//! A file in memory that several mappings and processes show.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;

const PROT_READ_WRITE: c_int = 1 | 2;
const MAP_SHARED_NORESERVE: c_int = 0x01 | 0x4000;
const MFD_CLOEXEC: c_uint = 1;
const FALLOC_KEEP_SIZE_PUNCH_HOLE: c_int = 1 | 2;
/// A multiple of every size of pages.
const PAGE: usize = 1 << 16;

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

/// The address at which the first bytes of a file lie, for others that map it, too.
pub(crate) fn map(file: &File, bytes: usize) -> Option<usize> {
    let length = bytes.next_multiple_of(PAGE);
    // SAFETY: the kernel chooses the addresses.
    let start = unsafe {
        mmap(
            null_mut(),
            length,
            PROT_READ_WRITE,
            MAP_SHARED_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    (start as isize != -1).then_some(start as usize)
}

/// Ends that.
pub(crate) fn unmap(start: usize, bytes: usize) {
    // SAFETY: it was mapped by [`map`], and nothing in it is live.
    unsafe { munmap(start as *mut c_void, bytes.next_multiple_of(PAGE)) };
}

/// A file in memory loses what it holds, and keeps its length.
pub(crate) fn empty(file: &File, length: u64) {
    if let Ok(length) = c_long::try_from(length) {
        // SAFETY: the file is open, and who maps it has nothing there that is live.
        unsafe { fallocate(file.as_raw_fd(), FALLOC_KEEP_SIZE_PUNCH_HOLE, 0, length) };
    }
}
