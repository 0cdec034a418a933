//! Where buffers lie: offsets in one block of memory, or in several.
//!
//! A [`Buffer`] takes `size` bytes at every time of its lifetime but those in its gaps. A [`Placement`] gives each buffer a block
//! and an offset there. It is valid if
//! 1. every buffer has a place;
//! 2. no byte is taken twice at one time;
//! 3. every buffer lies within its block, where the block has a given size;
//! 4. every offset is a multiple of the buffer's alignment;
//! 5. a pinned buffer lies at its offset in the first block.
//!
//! A buffer without bytes takes nothing; its offset has to be aligned all the same. The *height* of a block is the end of the buffer that
//! ends last in it. A placement in a block without a given size is better the lower its height. The *load* is the largest sum of the sizes
//! that are taken at one time: no placement is lower.

use std::ops::Range;

use remat_files::shown;
use remat_ir::dense_id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use typed_index_collections::{TiSlice, TiVec};

use crate::{Status, StopReason};

dense_id!(
    /// A buffer among those that are placed together.
    BufferId
);

/// Memory that is needed for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// What it is called in messages and files.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Its offset is a multiple of this; at least 1.
    pub alignment: u64,
    /// The times at which it takes its bytes, in any unit; not empty.
    pub lifetime: Range<u64>,
    /// Times at which it takes none, ascending and apart from each other, within its lifetime, touching neither its first nor its last time.
    pub gaps: Vec<Range<u64>>,
    /// The offset that it has to have, in the first block.
    pub pinned: Option<u64>,
}

impl Buffer {
    /// A buffer without gaps that may lie anywhere.
    #[must_use]
    pub fn new(name: impl Into<String>, size: u64, lifetime: Range<u64>) -> Self {
        Self {
            name: name.into(),
            size,
            alignment: 1,
            lifetime,
            gaps: Vec::new(),
            pinned: None,
        }
    }

    /// The times at which it takes its bytes: the lifetime without the gaps, ascending.
    pub fn taken(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = std::iter::once(self.lifetime.start).chain(self.gaps.iter().map(|gap| gap.end));
        let ends = self
            .gaps
            .iter()
            .map(|gap| gap.start)
            .chain(std::iter::once(self.lifetime.end));
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// Checks the buffer for itself.
    ///
    /// # Errors
    /// [`BufferError`] with its name.
    pub fn validate(&self) -> Result<(), BufferError> {
        let fault = |why: String| BufferError::Malformed {
            buffer: self.name.clone(),
            why,
        };
        if self.lifetime.is_empty() {
            let Range { start, end } = self.lifetime;
            return Err(fault(format!(
                "its lifetime begins at {start} and ends before, at {end}"
            )));
        }
        if self.alignment == 0 {
            return Err(fault("its alignment is 0".to_owned()));
        }
        let mut from = self.lifetime.start;
        for gap in &self.gaps {
            let Range { start, end } = *gap;
            if start <= from || end <= start || end >= self.lifetime.end {
                let within = format!("{}-{}", self.lifetime.start, self.lifetime.end);
                return Err(fault(format!(
                    "its gap {start}-{end} does not lie inside of its lifetime {within} and behind the gap before"
                )));
            }
            from = end;
        }
        if let Some(offset) = self.pinned
            && !offset.is_multiple_of(self.alignment)
        {
            return Err(fault(format!(
                "it is pinned at {offset}, which is not a multiple of its alignment {}",
                self.alignment
            )));
        }
        Ok(())
    }
}

/// Checks buffers that are to be placed together: each for itself, and that all sums of sizes, alignments and pinned offsets fit 62 bits.
///
/// # Errors
/// [`BufferError`] for the first that is wrong.
pub fn validate_buffers(buffers: &TiSlice<BufferId, Buffer>) -> Result<(), BufferError> {
    let mut sum: u64 = 0;
    for buffer in buffers {
        buffer.validate()?;
        let parts = [buffer.size, buffer.alignment, buffer.pinned.unwrap_or(0)];
        let next = parts.iter().try_fold(sum, |sum, &part| sum.checked_add(part));
        let fits = next.filter(|&next| next < 1 << 62);
        sum = fits.ok_or_else(|| BufferError::TooLarge(buffer.name.clone()))?;
    }
    Ok(())
}

/// Why buffers cannot be placed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BufferError {
    /// A buffer contradicts itself.
    #[error("buffer `{}`: {why}", shown(.buffer))]
    Malformed {
        /// Its name.
        buffer: String,
        /// What is wrong.
        why: String,
    },
    /// With this buffer, all together are larger than 64 bits can tell.
    #[error("with buffer `{}` sizes, alignments and pinned offsets add up to more than 2^62", shown(.0))]
    TooLarge(String),
}

/// Where one buffer lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Which block, from 0.
    pub block: usize,
    /// Its first byte in the block.
    pub offset: u64,
}

/// Where every buffer lies; `None` for one that has no place, which the checker rejects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// The places.
    pub places: TiVec<BufferId, Option<Place>>,
}

/// The memory that buffers are placed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocks {
    /// One block, as low as possible.
    Lowest,
    /// Blocks of these sizes; every buffer lies within one of them.
    Given(Vec<u64>),
}

/// What a lower bound on the height, or the claim that there is no placement, rests on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementProof {
    /// At one time so much is taken, or a pinned buffer ends there.
    Load,
    /// An exact search has tried every placement below it; of several blocks, none can be filled to its end.
    Refutation,
    /// CP-SAT of OR-Tools says that there is none below it.
    CpSat,
}

/// What a solver claims about a placement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementCertificate {
    /// `OPTIMAL`: no placement is lower, or the blocks are given and hold all buffers. `FEASIBLE`: a lower one may exist. `INFEASIBLE`: the
    /// given blocks cannot hold the buffers. `UNKNOWN`: neither a placement nor a proof was found.
    pub status: Status,
    /// The height of the placement, that of all blocks together; absent where there is none.
    pub height: Option<u64>,
    /// No placement is lower.
    pub bound: u64,
    /// What the bound, or the claim that there is no placement, rests on.
    pub proof: PlacementProof,
    /// Why the search stopped.
    pub stop: StopReason,
    /// Seed of the random choices.
    pub seed: u64,
    /// How often a buffer was tried at an offset.
    pub tries: u64,
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a gap is a range")]
mod tests {
    use super::*;

    #[test]
    fn taken_times_are_the_lifetime_without_the_gaps() {
        let mut buffer = Buffer::new("a", 8, 2..20);
        assert_eq!(buffer.taken().collect::<Vec<_>>(), [2..20]);
        buffer.gaps = vec![4..6, 10..11];
        assert_eq!(buffer.taken().collect::<Vec<_>>(), [2..4, 6..10, 11..20]);
        assert_eq!(buffer.validate(), Ok(()));
    }

    #[test]
    fn a_buffer_that_contradicts_itself_is_named() {
        let wrong = |change: fn(&mut Buffer)| {
            let mut buffer = Buffer::new("a", 8, 2..20);
            change(&mut buffer);
            buffer.validate().unwrap_err().to_string()
        };
        let found = [
            wrong(|buffer| buffer.lifetime = 3..3),
            wrong(|buffer| buffer.alignment = 0),
            wrong(|buffer| buffer.gaps = vec![2..4]),
            wrong(|buffer| buffer.gaps = vec![4..6, 6..8]),
            wrong(|buffer| buffer.gaps = vec![4..20]),
            wrong(|buffer| (buffer.alignment, buffer.pinned) = (8, Some(12))),
        ];
        assert!(
            found
                .iter()
                .all(|text| text.starts_with("buffer `a`: its ") || text.contains("pinned at 12"))
        );
    }

    #[test]
    fn sums_beyond_the_range_are_refused() {
        let mut buffers: TiVec<BufferId, Buffer> = TiVec::new();
        buffers.push(Buffer::new("a", 1 << 61, 0..1));
        assert_eq!(validate_buffers(&buffers), Ok(()));
        buffers.push(Buffer::new("b", 1 << 61, 0..1));
        assert_eq!(validate_buffers(&buffers), Err(BufferError::TooLarge("b".to_owned())));
        buffers[BufferId::new(1)].size = u64::MAX;
        assert_eq!(validate_buffers(&buffers), Err(BufferError::TooLarge("b".to_owned())));
    }
}
