//! Bytes to lines, plain or compressed.

use std::io::{BufRead, BufReader};

use flate2::bufread::MultiGzDecoder;

use super::build::Builder;
use super::instruction::Instruction;
use super::{LogError, LogErrorKind};
use crate::Trace;

/// Most bytes of a log, decompressed: a hundred times the largest log of the paper.
const LONGEST: u64 = 256 << 20;

/// Reads a log, as text or compressed with gzip.
///
/// # Errors
/// [`LogError`] with the line and what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Trace, LogError> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    if bytes.starts_with(GZIP) {
        read_lines(BufReader::new(MultiGzDecoder::new(bytes)))
    } else {
        read_lines(bytes)
    }
}

fn read_lines(input: impl BufRead) -> Result<Trace, LogError> {
    let mut input = input.take(LONGEST + 1);
    let mut builder = Builder::default();
    let mut text = Vec::new();
    let (mut line, mut total) = (0, 0);
    loop {
        text.clear();
        let error = |kind| LogError { line: line + 1, kind };
        let read = input.read_until(b'\n', &mut text);
        let read = read.map_err(|source| error(LogErrorKind::Unreadable(source.to_string())))?;
        if read == 0 {
            break;
        }
        total += read as u64;
        if total > LONGEST {
            return Err(error(LogErrorKind::TooLong { limit: LONGEST }));
        }
        let text = str::from_utf8(&text).map_err(|source| error(LogErrorKind::Unreadable(source.to_string())))?;
        if !text.trim().is_empty() {
            let instruction = Instruction::parse(text).map_err(error)?;
            builder.add(instruction).map_err(error)?;
        }
        line += 1;
    }
    let line = line.max(1);
    builder.finish().map_err(|kind| LogError { line, kind })
}
