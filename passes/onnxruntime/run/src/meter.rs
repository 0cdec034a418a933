//! The heap meter: a shared library that a process is started with (`LD_PRELOAD`), and its figures, read inside that process.

use std::io;
use std::path::{Path, PathBuf};

/// The meter's shared library, which the build script compiled from `meter/heap_meter.rs`.
#[cfg(heap_meter)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("REMAT_HEAP_METER")));
/// The meter's shared library; `None` where this crate was built for a system without it.
#[cfg(not(heap_meter))]
pub const LIBRARY: Option<&[u8]> = None;

/// Why there are no figures where the meter was not compiled.
pub(crate) const ABSENT: &str = "this build has no heap meter: it is made for Linux with glibc only";

/// Writes the meter into a folder; `None` where it was not compiled.
pub(crate) fn write(folder: &Path) -> io::Result<Option<PathBuf>> {
    let Some(library) = LIBRARY else { return Ok(None) };
    let path = folder.join("heap_meter.so");
    remat_files::write(&path, library)?;
    Ok(Some(path))
}

/// The figures of the meter in this process.
pub(crate) struct HeapMeter {
    live: unsafe extern "C" fn() -> i64,
    peak: unsafe extern "C" fn() -> i64,
    reset: unsafe extern "C" fn(),
}

impl HeapMeter {
    /// The meter that this process was started with; an explanation where there is none.
    #[cfg(unix)]
    #[expect(unsafe_code, reason = "functions of a preloaded library are found by name only")]
    pub(crate) fn find() -> Result<Self, String> {
        let missing = |_| {
            let why = "the heap meter was not preloaded: are programs in the folder for temporary files refused?";
            if LIBRARY.is_some() { why } else { ABSENT }.to_owned()
        };
        let process = libloading::os::unix::Library::this();
        // SAFETY: nothing but the meter has these names, and it declares the functions with these types. It stays loaded as
        // long as the process lives.
        unsafe {
            Ok(Self {
                live: *process.get(b"remat_heap_live\0").map_err(missing)?,
                peak: *process.get(b"remat_heap_peak\0").map_err(missing)?,
                reset: *process.get(b"remat_heap_reset\0").map_err(missing)?,
            })
        }
    }

    /// The meter that this process was started with; an explanation where there is none.
    #[cfg(not(unix))]
    pub(crate) fn find() -> Result<Self, String> {
        Err(ABSENT.to_owned())
    }

    /// Bytes that are handed out now.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn live(&self) -> i64 {
        // SAFETY: it reads a counter.
        unsafe { (self.live)() }
    }

    /// Most bytes that were handed out since the last reset.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn peak(&self) -> i64 {
        // SAFETY: it reads a counter.
        unsafe { (self.peak)() }
    }

    /// Starts a new peak.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn reset(&self) {
        // SAFETY: it writes a counter.
        unsafe { (self.reset)() }
    }
}
