//! The reader: no standard library, no allocation, no panic.

use core::fmt;

use crate::format::{
    CHECKSUM_BYTES, DUPLICATE, Expected, FREE, MAGIC, MOST, PAGE_IN, PAGE_OUT, PLACE, RUN, VERSION, VERSION_PLACED,
    WORKSPACE, checksum, kind_bits,
};

/// One step. Ops and storages are numbers below [`Schedule::ops`] and [`Schedule::storages`]; `docs/schedule.md` says whose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// An op runs, for the first time or again.
    Run(u32),
    /// A storage is freed.
    Free(u32),
    /// A storage moves to the second memory.
    PageOut(u32),
    /// A storage comes back.
    PageIn(u32),
    /// What the next step makes or brings back lies here until it is freed or moved away. Only where there is a block, as the next two.
    Place {
        /// The storage.
        storage: u32,
        /// Its first byte in the block.
        offset: u64,
    },
    /// The storage is there already, and stays where it is: what the next step makes of it once more goes here, and is not read.
    Duplicate {
        /// The storage.
        storage: u32,
        /// The first byte in the block.
        offset: u64,
    },
    /// The workspace of the op that runs next begins here.
    Workspace {
        /// Its first byte in the block.
        offset: u64,
    },
}

/// The block of memory that everything lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its size.
    pub bytes: u64,
    /// Every offset is a multiple of this; at least 1.
    pub alignment: u64,
    /// Results that stay to the end lie in the first so many bytes; 0 where nothing is said of that.
    pub outputs_bytes: u64,
}

/// Why bytes are no schedule. Offsets count from the first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatError {
    /// They do not begin as schedules do.
    Magic,
    /// A version that this reader does not know.
    Version(u8),
    /// They end too early.
    Truncated,
    /// The checksum at the end is that of other bytes.
    Checksum,
    /// A number that is too large for its place, or takes more bytes than it needs.
    Number {
        /// Where the number begins.
        offset: usize,
    },
    /// A step or a size names something that is not there.
    Range {
        /// Where its number begins.
        offset: usize,
    },
    /// Bytes between the last step and the checksum.
    Trailing {
        /// Where they begin.
        offset: usize,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not a schedule: it does not begin with `RMTS`"),
            Self::Version(found) => write!(
                f,
                "schedule of version {found}, and only {VERSION} and {VERSION_PLACED} are known"
            ),
            Self::Truncated => f.write_str("the schedule ends too early"),
            Self::Checksum => f.write_str("the checksum is wrong: the schedule was cut or changed"),
            Self::Number { offset } => write!(f, "the number at byte {offset} is too large or too long"),
            Self::Range { offset } => write!(f, "the number at byte {offset} names something that is not there"),
            Self::Trailing { offset } => write!(f, "bytes after the last step, from byte {offset} on"),
        }
    }
}

impl core::error::Error for FormatError {}

/// A schedule in memory, checked from end to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule<'a> {
    ops: u32,
    storages: u32,
    steps: u32,
    peak: u64,
    second_peak: u64,
    block: Option<Block>,
    sizes: Sizes<'a>,
    body: Cursor<'a>,
}

impl<'a> Schedule<'a> {
    /// Checks all of the bytes.
    ///
    /// # Errors
    /// [`FormatError`] for the first thing that is wrong.
    pub fn open(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let Some((magic, rest)) = bytes.split_first_chunk() else {
            return Err(FormatError::Truncated);
        };
        if *magic != MAGIC {
            return Err(FormatError::Magic);
        }
        let is_placed = match rest.first() {
            None => return Err(FormatError::Truncated),
            Some(&VERSION) => false,
            Some(&VERSION_PLACED) => true,
            Some(&other) => return Err(FormatError::Version(other)),
        };
        let head = MAGIC.len() + 1;
        let end = bytes.len() - CHECKSUM_BYTES.min(bytes.len());
        let Some((content, sum)) = bytes.split_last_chunk().filter(|_| end >= head) else {
            return Err(FormatError::Truncated);
        };
        if checksum(content) != u32::from_le_bytes(*sum) {
            return Err(FormatError::Checksum);
        }
        let mut cursor = Cursor { content, at: head };
        let (ops, storages, steps) = (cursor.count()?, cursor.count()?, cursor.count()?);
        let (peak, second_peak) = (cursor.number()?, cursor.number()?);
        let block = is_placed.then(|| cursor.block()).transpose()?;
        let distinct = cursor.count()?;
        let table = cursor;
        for _ in 0..distinct {
            cursor.number()?;
        }
        let sizes = Sizes {
            table,
            indexes: cursor,
            left: storages,
        };
        for _ in 0..storages {
            cursor.below(distinct)?;
        }
        let schedule = Self {
            ops,
            storages,
            steps,
            peak,
            second_peak,
            block,
            sizes,
            body: cursor,
        };
        let mut walk = schedule.steps();
        for _ in 0..steps {
            walk.read()?;
        }
        if walk.cursor.at == content.len() {
            Ok(schedule)
        } else {
            Err(FormatError::Trailing { offset: walk.cursor.at })
        }
    }

    /// How many ops the model has.
    #[must_use]
    pub fn ops(&self) -> u32 {
        self.ops
    }

    /// How many storages ops make.
    #[must_use]
    pub fn storages(&self) -> u32 {
        self.storages
    }

    /// Most bytes in memory at once, workspace of ops included.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Most bytes in the second memory at once.
    #[must_use]
    pub fn second_peak(&self) -> u64 {
        self.second_peak
    }

    /// The block, where steps give offsets.
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        self.block
    }

    /// Bytes of each storage, in order.
    #[must_use]
    pub fn sizes(&self) -> Sizes<'a> {
        self.sizes
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> Steps<'a> {
        Steps {
            cursor: self.body,
            counts: [self.ops, self.storages],
            block: self.block,
            left: self.steps,
            expected: Expected::default(),
        }
    }
}

/// Bytes of each storage, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes<'a> {
    table: Cursor<'a>,
    indexes: Cursor<'a>,
    left: u32,
}

impl Iterator for Sizes<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        // Checked when the schedule was opened.
        let index = self.indexes.number().ok()?;
        let mut table = self.table;
        for _ in 0..index {
            table.number().ok()?;
        }
        table.number().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Sizes<'_> {}

/// The steps, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps<'a> {
    cursor: Cursor<'a>,
    /// Of ops and storages.
    counts: [u32; 2],
    block: Option<Block>,
    left: u32,
    expected: Expected,
}

impl Steps<'_> {
    fn read(&mut self) -> Result<Step, FormatError> {
        let offset = self.cursor.at;
        let code = u32::try_from(self.cursor.number()?).map_err(|_| FormatError::Number { offset })?;
        let bits = kind_bits(if self.block.is_some() { VERSION_PLACED } else { VERSION });
        let kind = (code & ((1 << bits) - 1)) as usize;
        if kind == WORKSPACE {
            return match code >> bits {
                0 => Ok(Step::Workspace { offset: self.offset()? }),
                _ => Err(FormatError::Range { offset }),
            };
        }
        // Below 2^30 either way, so all sums fit.
        let zigzag = i64::from(code >> bits);
        let difference = (zigzag >> 1) ^ -(zigzag & 1);
        let count = self.counts[usize::from(kind != RUN)];
        let named = self.expected.of(kind) + difference;
        let id = u32::try_from(named).ok().filter(|&id| id < count);
        let id = id.ok_or(FormatError::Range { offset })?;
        self.expected.see(kind, id);
        Ok(match kind {
            RUN => Step::Run(id),
            FREE => Step::Free(id),
            PAGE_OUT => Step::PageOut(id),
            PAGE_IN => Step::PageIn(id),
            PLACE => Step::Place {
                storage: id,
                offset: self.offset()?,
            },
            DUPLICATE => Step::Duplicate {
                storage: id,
                offset: self.offset()?,
            },
            _ => return Err(FormatError::Range { offset }),
        })
    }

    /// An offset in the block.
    fn offset(&mut self) -> Result<u64, FormatError> {
        let offset = self.cursor.at;
        let (bytes, alignment) = self.block.map_or((0, 1), |block| (block.bytes, block.alignment));
        let found = self.cursor.number()?.checked_mul(alignment);
        found
            .filter(|&found| found <= bytes)
            .ok_or(FormatError::Range { offset })
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        // Checked when the schedule was opened.
        self.read().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Steps<'_> {}

/// A place in the bytes without their checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cursor<'a> {
    content: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// A number of seven bits a byte, lowest first, in as few bytes as it needs.
    fn number(&mut self) -> Result<u64, FormatError> {
        let offset = self.at;
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let &byte = self.content.get(self.at).ok_or(FormatError::Truncated)?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::Number { offset })
    }

    /// How many there are of something.
    fn count(&mut self) -> Result<u32, FormatError> {
        let offset = self.at;
        match self.number()? {
            // Below 2^28, so it fits.
            value if value <= MOST => Ok(value as u32),
            _ => Err(FormatError::Number { offset }),
        }
    }

    fn block(&mut self) -> Result<Block, FormatError> {
        let bytes = self.number()?;
        let offset = self.at;
        let alignment = self.number()?;
        if alignment == 0 {
            return Err(FormatError::Range { offset });
        }
        let offset = self.at;
        let outputs_bytes = self.number()?;
        if outputs_bytes > bytes {
            return Err(FormatError::Range { offset });
        }
        Ok(Block {
            bytes,
            alignment,
            outputs_bytes,
        })
    }

    fn below(&mut self, count: u32) -> Result<(), FormatError> {
        let offset = self.at;
        if self.number()? < u64::from(count) {
            Ok(())
        } else {
            Err(FormatError::Range { offset })
        }
    }
}
