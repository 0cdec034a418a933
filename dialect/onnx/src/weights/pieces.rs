//! The bytes of a data file: what they are, and where they lie.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use remat_files::OutputFile;
use rustc_hash::FxHashMap;

use crate::OnnxError;

/// From so many bytes on they lie in pages that hold nothing else, which can be dropped.
const PAGED_BYTES: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// What kernels expect of an address.
const ALIGNMENT: u64 = 64;

/// Where bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    /// From this offset of a file.
    File(PathBuf, u64),
    /// From a model.
    Memory(Vec<u8>),
}

/// When bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// In runs.
    Run,
    /// While a session is loaded.
    Load,
    /// By sessions of a model that is there for the case that the others cannot be used.
    Spare,
}

impl Phase {
    pub(super) fn of(is_read_by_runs: bool, is_spare: bool) -> Self {
        match (is_spare, is_read_by_runs) {
            (true, _) => Self::Spare,
            (false, true) => Self::Run,
            (false, false) => Self::Load,
        }
    }
}

struct Piece {
    source: Source,
    bytes: u64,
    /// When it is read first.
    rank: (Phase, usize),
}

/// All that goes into a data file, each content once.
#[derive(Default)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    known: FxHashMap<(u64, [u8; 32]), usize>,
}

impl Pieces {
    /// The number of the piece that has these bytes, which are read at `rank` at the latest.
    pub(super) fn add(&mut self, source: Source, bytes: u64, rank: (Phase, usize)) -> Result<usize, OnnxError> {
        let mut hasher = blake3::Hasher::new();
        match &source {
            Source::Memory(content) => _ = hasher.update(content),
            Source::File(path, offset) => {
                let content = open(path, *offset, bytes).and_then(|content| {
                    hasher.update_reader(content)?;
                    Ok(hasher.count())
                });
                is_whole(path, content, bytes)?;
            }
        }
        let key = (bytes, *hasher.finalize().as_bytes());
        if let Some(&known) = self.known.get(&key) {
            let piece = &mut self.all[known];
            piece.rank = piece.rank.min(rank);
            return Ok(known);
        }
        self.known.insert(key, self.all.len());
        self.all.push(Piece { source, bytes, rank });
        Ok(self.all.len() - 1)
    }

    /// The size of a piece.
    pub(super) fn bytes(&self, piece: usize) -> u64 {
        self.all[piece].bytes
    }

    /// Writes all pieces in the order in which they are read; the offset of each.
    pub(super) fn write(&self, data: &Path) -> Result<Vec<u64>, OnnxError> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|&index| (self.all[index].rank, index));
        let mut file = OutputFile::create(data).map_err(OnnxError::io(data))?;
        let mut offsets = vec![0; self.all.len()];
        let (mut end, mut was_paged) = (0_u64, false);
        for index in order {
            let piece = &self.all[index];
            let is_paged = piece.bytes >= PAGED_BYTES;
            let start = end.next_multiple_of(if is_paged || was_paged { PAGE } else { ALIGNMENT });
            io::copy(&mut io::repeat(0).take(start - end), &mut file).map_err(OnnxError::io(data))?;
            match &piece.source {
                Source::Memory(content) => file.write_all(content).map_err(OnnxError::io(data))?,
                Source::File(path, offset) => {
                    let copied = open(path, *offset, piece.bytes).and_then(|mut from| io::copy(&mut from, &mut file));
                    is_whole(path, copied, piece.bytes)?;
                }
            }
            offsets[index] = start;
            (end, was_paged) = (start + piece.bytes, is_paged);
        }
        file.commit().map_err(OnnxError::io(data))?;
        Ok(offsets)
    }
}

fn open(path: &Path, offset: u64, bytes: u64) -> io::Result<io::Take<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file.take(bytes))
}

/// That as many bytes of a file were read as a model says.
fn is_whole(path: &Path, read: io::Result<u64>, bytes: u64) -> Result<(), OnnxError> {
    let read = read.map_err(OnnxError::io(path))?;
    if read == bytes {
        return Ok(());
    }
    let why = format!("{bytes} bytes of weights were expected, and {read} are there: it changed while it was read");
    Err(OnnxError::io(path)(io::Error::new(io::ErrorKind::UnexpectedEof, why)))
}
