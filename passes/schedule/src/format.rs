//! What reader and writer share: marks, limits, kinds of steps, the checksum.

/// The first bytes.
pub(crate) const MAGIC: [u8; 4] = *b"RMTS";
/// The byte after them: of schedules without a block, and of those with offsets in one.
pub(crate) const VERSION: u8 = 1;
pub(crate) const VERSION_PLACED: u8 = 2;
/// Bytes of the checksum at the end.
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// Largest number of ops, storages or steps.
pub(crate) const MOST: u64 = (1 << 28) - 1;

/// The lowest bits of a step: two of them, three in schedules with offsets.
pub(crate) const RUN: usize = 0;
pub(crate) const FREE: usize = 1;
pub(crate) const PAGE_OUT: usize = 2;
pub(crate) const PAGE_IN: usize = 3;
pub(crate) const PLACE: usize = 4;
pub(crate) const DUPLICATE: usize = 5;
pub(crate) const WORKSPACE: usize = 6;
pub(crate) const KINDS: usize = 8;

/// How many bits of a step are its kind.
pub(crate) fn kind_bits(version: u8) -> u32 {
    if version == VERSION_PLACED { 3 } else { 2 }
}

/// CRC-32 as in Ethernet and PNG (polynomial 0xEDB88320, reflected), bit by bit: schedules are short, and devices have no room for tables.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(sum & 1));
        }
    }
    !sum
}

/// What steps are expected to name, so that most of them say in one byte by how much they differ.
///
/// Runs follow each other, and so do the storages that they make. Of storages that are freed or moved, a backward pass frees two by turns, results and gradients, each one before the last of its
/// own: so a step is expected to name what the step before the last one of its kind named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Expected {
    next: [u32; KINDS],
    last: [u32; KINDS],
}

impl Expected {
    pub(crate) fn of(&self, kind: usize) -> i64 {
        i64::from(self.next[kind])
    }

    /// A step of this kind named this. Ids are smaller than 2^28.
    pub(crate) fn see(&mut self, kind: usize, id: u32) {
        self.next[kind] = if matches!(kind, RUN | PLACE) {
            id + 1
        } else {
            self.last[kind]
        };
        self.last[kind] = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }
}
