//! What is placed and where.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Memory that is needed for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Its bytes.
    pub size: u64,
    /// Its offset is a multiple of this; at least 1.
    pub alignment: u64,
    /// The times at which it takes its bytes, in any unit, the end excluded; not empty.
    pub lifetime: Range<u64>,
    /// Times at which it takes none, ascending and apart from each other, within its lifetime, touching neither its first nor its last time.
    pub gaps: Vec<Range<u64>>,
    /// The offset that it has to have, in the first block.
    pub pinned: Option<u64>,
}

impl Buffer {
    /// A buffer without gaps that may lie anywhere.
    #[must_use]
    pub fn new(size: u64, lifetime: Range<u64>) -> Self {
        Self {
            size,
            alignment: 1,
            lifetime,
            gaps: Vec::new(),
            pinned: None,
        }
    }

    /// A buffer that takes its bytes at some times, which are ascending and not empty.
    pub(crate) fn at_times(size: u64, times: &[Range<u64>]) -> Self {
        let gaps = times.windows(2).map(|pair| pair[0].end..pair[1].start).collect();
        let lifetime = match times {
            [first, .., last] => first.start..last.end,
            [only] => only.clone(),
            [] => 0..0,
        };
        Self {
            gaps,
            ..Self::new(size, lifetime)
        }
    }

    /// The times at which it takes its bytes: the lifetime without the gaps, ascending.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = core::iter::once(self.lifetime.start).chain(self.gaps.iter().map(|gap| gap.end));
        let ends = self.gaps.iter().map(|gap| gap.start);
        let ends = ends.chain(core::iter::once(self.lifetime.end));
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// What is wrong with it for itself.
    fn fault(&self) -> Option<Fault> {
        if self.lifetime.is_empty() {
            return Some(Fault::Lifetime);
        }
        if self.alignment == 0 {
            return Some(Fault::Alignment);
        }
        let mut from = self.lifetime.start;
        for gap in &self.gaps {
            if gap.start <= from || gap.is_empty() || gap.end >= self.lifetime.end {
                return Some(Fault::Gap);
            }
            from = gap.end;
        }
        let is_off = |offset: u64| !offset.is_multiple_of(self.alignment);
        self.pinned.is_some_and(is_off).then_some(Fault::Pinned)
    }
}

/// What is wrong with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Its lifetime is empty.
    Lifetime,
    /// Its alignment is 0.
    Alignment,
    /// A gap does not lie inside of its lifetime and behind the gap before.
    Gap,
    /// It is pinned at an offset that is no multiple of its alignment.
    Pinned,
    /// With it, sizes, alignments and pinned offsets add up to more than 2^62.
    TooLarge,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lifetime => "its lifetime is empty",
            Self::Alignment => "its alignment is 0",
            Self::Gap => "a gap does not lie inside of its lifetime and behind the gap before",
            Self::Pinned => "it is pinned at an offset that is no multiple of its alignment",
            Self::TooLarge => "with it, sizes, alignments and pinned offsets add up to more than 2^62",
        })
    }
}

/// Why buffers are not placed at all; buffers are named by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceError {
    /// A buffer contradicts itself, or all are too large.
    Buffer(usize, Fault),
    /// Two pinned buffers need the same bytes at the same time.
    PinnedTogether(usize, usize),
    /// There is no block.
    NoBlock,
    /// Several blocks are given, and no address suits all alignments.
    Alignments,
    /// There are more than 2^31 buffers and gaps.
    TooMany,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(at, fault) => write!(f, "buffer {at}: {fault}"),
            Self::PinnedTogether(first, second) => {
                write!(
                    f,
                    "buffers {first} and {second} are pinned to the same bytes at the same time"
                )
            }
            Self::NoBlock => f.write_str("there is no block to place buffers in"),
            Self::Alignments => {
                f.write_str("sizes of blocks and alignments are too large to place buffers in several blocks")
            }
            Self::TooMany => f.write_str("there are more than 2^31 buffers and gaps"),
        }
    }
}

impl core::error::Error for PlaceError {}

/// The most times at which buffers take bytes, all together.
const MOST: usize = 1 << 31;

/// Checks each buffer for itself, that all sums of sizes, alignments and pinned offsets fit 62 bits, and their number.
pub(crate) fn validate(buffers: &[Buffer]) -> Result<(), PlaceError> {
    let (mut sum, mut times) = (0u64, 0usize);
    for (at, buffer) in buffers.iter().enumerate() {
        if let Some(fault) = buffer.fault() {
            return Err(PlaceError::Buffer(at, fault));
        }
        let parts = [buffer.size, buffer.alignment, buffer.pinned.unwrap_or(0)];
        let next = parts.iter().try_fold(sum, |sum, &part| sum.checked_add(part));
        let fits = next.filter(|&next| next < 1 << 62);
        sum = fits.ok_or(PlaceError::Buffer(at, Fault::TooLarge))?;
        times = times.saturating_add(1 + buffer.gaps.len());
    }
    if times > MOST { Err(PlaceError::TooMany) } else { Ok(()) }
}

/// The largest sum of sizes that are taken at one time, which no placement undercuts.
#[must_use]
pub fn load(buffers: &[Buffer]) -> u64 {
    let mut ends: Vec<(u64, bool, u64)> = Vec::new();
    for buffer in buffers {
        for times in buffer.taken() {
            ends.extend([(times.start, true, buffer.size), (times.end, false, buffer.size)]);
        }
    }
    // What ends makes room for what begins.
    ends.sort_unstable();
    let (mut load, mut most) = (0u128, 0);
    for (_, begins, size) in ends {
        if begins {
            load += u128::from(size);
            most = most.max(load);
        } else {
            load -= u128::from(size);
        }
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// The memory that buffers are placed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocks {
    /// One block, as low as possible.
    Lowest,
    /// Blocks of these sizes; every buffer lies within one of them.
    Given(Vec<u64>),
}

/// Where one buffer lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Which block, from 0.
    pub block: usize,
    /// Its first byte in the block.
    pub offset: u64,
}

/// The height of all blocks together: of each, the end of the buffer that ends last.
pub(crate) fn height(buffers: &[Buffer], places: &[Place]) -> u64 {
    let mut heights: Vec<u64> = vec![0];
    for (buffer, place) in buffers.iter().zip(places) {
        heights.resize(heights.len().max(place.block + 1), 0);
        let height = &mut heights[place.block];
        *height = (*height).max(place.offset + buffer.size);
    }
    heights.iter().sum()
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a gap is a range")]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_contradicts_itself_is_found() {
        let good = Buffer {
            gaps: vec![4..6, 10..11],
            ..Buffer::new(8, 2..20)
        };
        assert_eq!(good.taken().collect::<Vec<_>>(), [2..4, 6..10, 11..20]);
        assert_eq!(Buffer::at_times(8, &[2..4, 6..10, 11..20]), good);
        let wrong = |change: fn(&mut Buffer), fault| {
            let mut buffer = good.clone();
            change(&mut buffer);
            assert_eq!(validate(&[good.clone(), buffer]), Err(PlaceError::Buffer(1, fault)));
        };
        wrong(|buffer| buffer.lifetime = 3..3, Fault::Lifetime);
        wrong(|buffer| buffer.alignment = 0, Fault::Alignment);
        wrong(|buffer| buffer.gaps = vec![2..4], Fault::Gap);
        wrong(|buffer| buffer.gaps = vec![4..6, 6..8], Fault::Gap);
        wrong(|buffer| buffer.gaps = vec![4..20], Fault::Gap);
        wrong(
            |buffer| (buffer.alignment, buffer.pinned) = (8, Some(12)),
            Fault::Pinned,
        );
        wrong(|buffer| buffer.size = (1 << 62) - 10, Fault::TooLarge);
        wrong(|buffer| buffer.size = u64::MAX, Fault::TooLarge);
    }

    #[test]
    fn gaps_do_not_count_for_the_load() {
        let with_gap = Buffer {
            gaps: vec![2..7],
            ..Buffer::new(64, 0..9)
        };
        let buffers = [with_gap, Buffer::new(64, 3..6), Buffer::new(32, 0..9)];
        assert_eq!(load(&buffers), 96);
    }
}
