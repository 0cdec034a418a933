//! Bytes as people read them.

use std::fmt;

use bytesize::ByteSize;

/// Writes a number of bytes exactly, and from a kibibyte on also in the unit that fits.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 byte"),
            bytes if bytes < 1024 => write!(f, "{bytes} bytes"),
            bytes => write!(f, "{} ({bytes} bytes)", ByteSize(bytes).display().iec()),
        }
    }
}
