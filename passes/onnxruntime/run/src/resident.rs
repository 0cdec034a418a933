//! Resident memory of this process, as the system counts it.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::nanoseconds;

/// By how many bytes a process grew at most, above what it had before the first run. What loading a model left free in the heap is not had: it went back
/// to the system before, where the C library can do that, so that runs do not seem to take less after a larger file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resident {
    /// In the first run.
    pub first: u64,
    /// In the runs after it, where there were any; what the process kept counts.
    pub later: Option<u64>,
    /// How much of the growth in the first run are pages of files, the code of kernels for the most part.
    pub files: u64,
}

/// Bytes that a process can take now without pushing others out, where the system says it.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// The high-water mark of resident memory; on Linux, where the process may reset it.
pub(crate) struct ResidentMeter {
    before: u64,
    files: u64,
}

impl ResidentMeter {
    /// Starts at what is resident now, and in use.
    pub(crate) fn start() -> Option<Self> {
        #[cfg(target_os = "linux")]
        remat_onnxruntime_arena::trim_heap();
        reset()?;
        Some(Self {
            before: status("VmHWM:")?,
            files: status("RssFile:")?,
        })
    }

    /// Bytes above the start, at most since the last reset.
    pub(crate) fn growth(&self) -> Option<u64> {
        Some(status("VmHWM:")?.saturating_sub(self.before))
    }

    /// Bytes of files above the start, now.
    pub(crate) fn files(&self) -> Option<u64> {
        Some(status("RssFile:")?.saturating_sub(self.files))
    }

    /// Starts a new mark.
    pub(crate) fn reset(&self) {
        let _ = reset();
    }
}

fn reset() -> Option<()> {
    /// What `proc(5)` names for the mark.
    const MARK: &[u8] = b"5";
    use std::io::Write;
    let mut switch = fs::OpenOptions::new().write(true).open("/proc/self/clear_refs").ok()?;
    switch.write_all(MARK).ok()
}

/// A figure of this process in bytes.
pub(crate) fn status(name: &str) -> Option<u64> {
    kilobytes("/proc/self/status", name)
}

fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Nanoseconds for each MiB that the system hands out for the first time: mapping, faults and giving it back. The least of a few.
///
/// The block is larger than what the C library keeps free, so it is mapped apart, and no threshold changes; only its beginning is touched.
pub(crate) fn fresh_ns_per_mib() -> u64 {
    const BLOCK: usize = 128 << 20;
    const TOUCHED_MIB: usize = 16;
    const PAGE: usize = 4096;
    let once = || {
        let start = Instant::now();
        let mut block = vec![0_u8; BLOCK];
        let touched = block.iter_mut().take(TOUCHED_MIB << 20).step_by(PAGE);
        touched.for_each(|byte| *byte = 1);
        drop(black_box(block));
        nanoseconds(start) / TOUCHED_MIB as u64
    };
    (0..3).map(|_| once()).min().unwrap_or(0)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_written_and_freed_counts() {
        let Some(meter) = ResidentMeter::start() else {
            return;
        };
        let bytes = 64 << 20;
        drop(black_box(vec![1u8; bytes]));
        let growth = meter.growth().expect("it was there before");
        assert!(growth >= bytes as u64 / 2, "{growth}");
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn memory_that_was_free_before_is_not_at_hand() {
        const PIECES: usize = 2_048;
        let pieces = || -> Vec<Vec<u8>> { (0..PIECES).map(|_| black_box(vec![1; 16 << 10])).collect() };
        let (before, last) = (pieces(), black_box(vec![1_u8; 16 << 10]));
        drop(before);
        let Some(meter) = ResidentMeter::start() else {
            return;
        };
        drop(pieces());
        let growth = meter.growth().expect("it was there before");
        assert!(growth >= (PIECES as u64) << 13, "{growth}");
        drop(last);
    }
}
