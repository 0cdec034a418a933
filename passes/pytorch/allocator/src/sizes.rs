//! What a request is rounded to, and what is taken from the device for it. All in bytes.

use crate::settings::{MIB, Settings};

/// Blocks are multiples of this, and the least rest that is kept of a small block.
pub(crate) const LEAST_BLOCK: u64 = 512;
/// The largest small block; the least rest that is kept of another block is above it.
pub(crate) const MOST_SMALL: u64 = MIB;
/// A segment for small blocks; a page of one that grows.
pub(crate) const SMALL_SEGMENT: u64 = 2 * MIB;
/// A segment for blocks below [`LEAST_OF_ITS_OWN`]; a page of one that grows.
pub(crate) const LARGE_SEGMENT: u64 = 20 * MIB;
/// Blocks from here on have segments that are as large as they are, in multiples of [`SEGMENT_STEP`].
const LEAST_OF_ITS_OWN: u64 = 10 * MIB;
const SEGMENT_STEP: u64 = 2 * MIB;

/// The bytes of the block that a request gets.
#[must_use]
pub fn rounded(settings: &Settings, requested: u64) -> u64 {
    if requested < LEAST_BLOCK {
        return LEAST_BLOCK;
    }
    let divisions = settings.divisions_of(requested);
    if divisions > 1 && requested > LEAST_BLOCK.saturating_mul(divisions) {
        return next_division(requested, divisions);
    }
    requested.div_ceil(LEAST_BLOCK).saturating_mul(LEAST_BLOCK)
}

/// What is taken from the device for a block of so many bytes, where none is free and segments do not grow.
#[must_use]
pub fn taken(block: u64) -> u64 {
    match block {
        0..=MOST_SMALL => SMALL_SEGMENT,
        _ if block < LEAST_OF_ITS_OWN => LARGE_SEGMENT,
        _ => block.div_ceil(SEGMENT_STEP).saturating_mul(SEGMENT_STEP),
    }
}

/// The next of the steps into which the range between two powers of two is divided.
fn next_division(bytes: u64, divisions: u64) -> u64 {
    let step = (1 << bytes.ilog2()) / divisions;
    match step {
        0 => bytes.checked_next_power_of_two().unwrap_or(u64::MAX),
        _ => bytes.div_ceil(step).saturating_mul(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_rounded_to_512_bytes_or_to_divisions() {
        let plain = Settings::default();
        assert_eq!(
            [0, 1, 512, 513, 1200].map(|bytes| rounded(&plain, bytes)),
            [512, 512, 512, 1024, 1536]
        );
        let divided = Settings::parse("roundup_power2_divisions:4").unwrap();
        // 2048 and below are rounded as ever.
        assert_eq!(
            [1200, 2048, 2049, 2561, 4096, 5000].map(|bytes| rounded(&divided, bytes)),
            [1536, 2048, 2560, 3072, 4096, 5120]
        );
    }

    #[test]
    fn segments_are_of_two_sizes_or_as_large_as_the_block() {
        assert_eq!(taken(512), 2 * MIB);
        assert_eq!(taken(MIB), 2 * MIB);
        assert_eq!(taken(MIB + 512), 20 * MIB);
        assert_eq!(taken(10 * MIB), 10 * MIB);
        assert_eq!(taken(11 * MIB + 512), 12 * MIB);
    }
}
