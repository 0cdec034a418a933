//! A file without a name, which goes with the process.
//!
//! Bytes are written and read by calls of the system, not through a mapping: a full disk is an error of a call and no signal, and memory that
//! a run gave back meanwhile is one, too.

use std::ffi::{c_int, c_long, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const POSIX_FADV_RANDOM: c_int = 1;
const POSIX_FADV_WILLNEED: c_int = 3;
const POSIX_FADV_DONTNEED: c_int = 4;
/// Waits for what is on its way to the disk, writes the rest, and waits for that.
const SYNC_FILE_RANGE_ALL: c_int = 1 | 2 | 4;
/// File systems that keep their files in memory, by the system's numbers: tmpfs and ramfs.
const IN_MEMORY: [c_long; 2] = [0x0102_1994, 0x8584_58f6];
/// The most bytes of one call.
const CALL: usize = 8 << 20;

// SAFETY: the C library of every 64-bit Linux has these functions, with these signatures.
unsafe extern "C" {
    fn pwrite(file: c_int, from: *const c_void, bytes: usize, at: c_long) -> isize;
    fn posix_fadvise(file: c_int, at: c_long, bytes: c_long, advice: c_int) -> c_int;
    fn sync_file_range(file: c_int, at: c_long, bytes: c_long, flags: c_int) -> c_int;
    fn fstatfs(file: c_int, found: *mut FileSystem) -> c_int;
}

/// `struct statfs`, which is not larger than this.
#[repr(C)]
struct FileSystem {
    kind: c_long,
    rest: [c_long; 31],
}

/// Whether a file system of this number keeps its files in memory.
fn keeps_in_memory(kind: c_long) -> bool {
    IN_MEMORY.contains(&kind)
}

/// Where a second memory lies unless a session says otherwise: the folder for temporary files that are on a disk everywhere, where there is one.
pub(crate) fn default_folder() -> PathBuf {
    let on_disk = Path::new("/var/tmp");
    match on_disk.is_dir() {
        true => on_disk.to_owned(),
        false => std::env::temp_dir(),
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct Nameless(File);

impl Nameless {
    /// A new one in a folder, for this user only.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".remat-pages-{}-{number}", std::process::id()));
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    std::fs::remove_file(&path)?;
                    let file = Self(file);
                    // Pages are read whole, by announcement: no other readahead.
                    file.advise(0, 0, POSIX_FADV_RANDOM);
                    return Ok(file);
                }
            }
        }
    }

    /// Writes memory of the run, from its address on. Where that is memory no more, it is an error.
    pub(crate) fn write(&self, from: usize, bytes: u64, at: u64) -> io::Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let start = c_long::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut done = 0;
        while done < bytes {
            let place = c_long::try_from(done).ok().and_then(|done| start.checked_add(done));
            let place = place.ok_or(io::ErrorKind::FileTooLarge)?;
            let from = std::ptr::without_provenance::<c_void>(from + done);
            // SAFETY: the system reads the memory and says where it cannot; nothing in this program does.
            let written = unsafe { pwrite(self.0.as_raw_fd(), from, CALL.min(bytes - done), place) };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads as many bytes as there is room for.
    pub(crate) fn read(&self, to: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(to, at)
    }

    /// Has the system read bytes ahead.
    pub(crate) fn read_ahead(&self, at: u64, bytes: u64) {
        self.advise(at, bytes, POSIX_FADV_WILLNEED);
    }

    /// Whether its file system keeps it in memory.
    pub(crate) fn lies_in_memory(&self) -> bool {
        let mut found = FileSystem { kind: 0, rest: [0; 31] };
        // SAFETY: the system writes its figures, which fit.
        let asked = unsafe { fstatfs(self.0.as_raw_fd(), &raw mut found) };
        asked == 0 && keeps_in_memory(found.kind)
    }

    /// Has bytes leave memory that nobody will read again, as far as they are on the disk already.
    pub(crate) fn is_done_with(&self, at: u64, bytes: u64) {
        self.advise(at, bytes, POSIX_FADV_DONTNEED);
    }

    /// Has bytes reach the disk, and leave memory. What cannot be done is left out.
    pub(crate) fn drop_from_memory(&self, at: u64, bytes: u64) {
        if let Some((place, length)) = c_long::try_from(at).ok().zip(c_long::try_from(bytes).ok()) {
            // SAFETY: plain numbers.
            unsafe { sync_file_range(self.0.as_raw_fd(), place, length, SYNC_FILE_RANGE_ALL) };
        }
        self.advise(at, bytes, POSIX_FADV_DONTNEED);
    }

    /// The file ends here.
    pub(crate) fn cut(&self, end: u64) {
        let is_longer = self.0.metadata().is_ok_and(|metadata| metadata.len() > end);
        if is_longer {
            // The bytes stay where they cannot be given back.
            let _ = self.0.set_len(end);
        }
    }

    fn advise(&self, at: u64, bytes: u64, advice: c_int) {
        if let Some((at, bytes)) = c_long::try_from(at).ok().zip(c_long::try_from(bytes).ok()) {
            // SAFETY: plain numbers.
            unsafe { posix_fadvise(self.0.as_raw_fd(), at, bytes, advice) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_memory_that_is_none_is_an_error() {
        let file = Nameless::create(&std::env::temp_dir()).expect("the folder for temporary files");
        let written: Vec<u8> = (0..100_000u32).map(|place| place.to_le_bytes()[0]).collect();
        file.write(written.as_ptr().expose_provenance(), 100_000, 4096)
            .expect("room");
        file.drop_from_memory(4096, 100_000);
        file.read_ahead(4096, 100_000);
        let mut read = vec![0u8; 100_000];
        file.read(&mut read, 4096).expect("they are there");
        assert_eq!(read, written);
        assert!(file.write(1 << 4, 4096, 0).is_err());
        file.cut(0);
        assert!(file.read(&mut read, 0).is_err());
    }

    #[test]
    fn a_folder_in_memory_is_told_from_a_disk() {
        assert!(default_folder().is_dir());
        if let Ok(file) = Nameless::create(Path::new("/dev/shm")) {
            assert!(file.lies_in_memory());
        }
        // ext4 and overlayfs.
        assert!([0xef53, 0x794c_7630].into_iter().all(|kind| !keeps_in_memory(kind)));
    }
}
