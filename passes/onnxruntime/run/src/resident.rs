//! Resident memory of this process, as the system states it, and its high-water mark.

use std::io;

/// Writing `5` to it starts a new high-water mark.
const MARK: &str = "/proc/self/clear_refs";

/// The high-water mark of resident memory above what was resident when it was started.
pub(crate) struct Resident {
    before: u64,
}

impl Resident {
    /// Starts a high-water mark; `None` where the system has none.
    pub(crate) fn start() -> Option<Self> {
        start_mark().ok()?;
        Some(Self {
            before: status("VmRSS:")?,
        })
    }

    /// Starts a new high-water mark; growth is still above what was resident at first.
    pub(crate) fn restart(&self) {
        // What can be started once can be started again.
        let _ = start_mark();
    }

    /// By how many bytes the process grew at most since.
    pub(crate) fn growth(&self) -> Option<u64> {
        Some(status("VmHWM:")?.saturating_sub(self.before))
    }
}

#[cfg(target_os = "linux")]
fn start_mark() -> io::Result<()> {
    use std::io::Write;
    let mut mark = std::fs::OpenOptions::new().write(true).open(MARK)?;
    mark.write_all(b"5")
}

#[cfg(not(target_os = "linux"))]
fn start_mark() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, MARK))
}

/// A line of the process's status, in bytes.
fn status(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_written_and_freed_counts() {
        let Some(resident) = Resident::start() else {
            return;
        };
        let bytes = 64 << 20;
        drop(std::hint::black_box(vec![1u8; bytes]));
        let growth = resident.growth().expect("it was there before");
        assert!(growth >= bytes as u64 / 2, "{growth}");
    }
}
