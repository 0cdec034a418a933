//! Models with pages need the operators of the arena library: sessions that load one have it, whatever is asked of them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ort::session::builder::SessionBuilder;
use remat_files::ScratchFolder;
use remat_onnxruntime_arena::LIBRARY;

use crate::RuntimeError;

/// The domain of the operators, as an import of a set of operators names it.
const DOMAIN: &[u8] = b"com.remat";
/// `opset_import` of a model, and `domain` of such an import.
const IMPORT: u64 = 8;
const NAME: u64 = 1;
/// The most bytes of an import that is looked at.
const MOST: u64 = 4096;

/// Whether a model moves results to a second memory, so that its sessions need the arena library. One that cannot be read does not.
#[must_use]
pub fn needs_arena_library(model: &Path) -> bool {
    File::open(model).is_ok_and(|file| needs_operators(BufReader::new(file)))
}

/// The session with the arena library's operators, if the model needs them.
pub(crate) fn with_operators(builder: SessionBuilder, model: &Path) -> Result<SessionBuilder, RuntimeError> {
    if !needs_arena_library(model) {
        return Ok(builder);
    }
    let failed = |why: String| RuntimeError::Load {
        model: model.to_owned(),
        why: format!("it moves results to a second memory: {why}"),
    };
    let content = LIBRARY.ok_or_else(|| failed("this program has no arena library".to_owned()))?;
    let folder = ScratchFolder::new("pages-").map_err(|error| failed(error.to_string()))?;
    let library = folder.path().join("libremat_arena.so");
    remat_files::write(&library, content).map_err(|error| failed(error.to_string()))?;
    // Once it is loaded, the file may go.
    builder
        .with_operator_library(&library)
        .map_err(|error| failed(error.to_string()))
}

/// Whether a model imports the set of operators.
fn needs_operators(mut file: impl BufRead + Seek) -> bool {
    while let Some((field, kind)) = key(&mut file) {
        let Some(length) = length(&mut file, kind) else {
            return false;
        };
        if field == IMPORT && kind == 2 && length <= MOST {
            let mut import = Vec::new();
            if file.by_ref().take(length).read_to_end(&mut import).is_err() {
                return false;
            }
            if names(&import) {
                return true;
            }
        } else if file
            .seek(SeekFrom::Current(i64::try_from(length).unwrap_or(i64::MAX)))
            .is_err()
        {
            return false;
        }
    }
    false
}

/// Whether an import is that of the domain.
fn names(mut import: &[u8]) -> bool {
    while let Some((field, kind)) = key(&mut import) {
        let Some(length) = length(&mut import, kind).and_then(|length| usize::try_from(length).ok()) else {
            return false;
        };
        let Some((content, rest)) = import.split_at_checked(length) else {
            return false;
        };
        if field == NAME && content == DOMAIN {
            return true;
        }
        import = rest;
    }
    false
}

/// The number and the kind of the next field.
fn key(file: &mut impl Read) -> Option<(u64, u64)> {
    let key = varint(file)?;
    Some((key >> 3, key & 7))
}

/// How many bytes a field of this kind still has.
fn length(file: &mut impl Read, kind: u64) -> Option<u64> {
    match kind {
        0 => varint(file).map(|_| 0),
        1 => Some(8),
        2 => varint(file),
        5 => Some(4),
        _ => None,
    }
}

fn varint(file: &mut impl Read) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        file.read_exact(&mut byte).ok()?;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn model(domain: &[u8]) -> Vec<u8> {
        let length = u8::try_from(domain.len()).expect("a short name");
        // The version of the format, a graph of three bytes, and an import.
        let mut bytes = vec![8, 10, 0x3a, 3, 1, 2, 3, 0x42, length + 4, 0x0a, length];
        bytes.extend(domain);
        bytes.extend([0x10, 1]);
        bytes
    }

    #[test]
    fn models_that_import_the_operators_are_told_from_others() {
        assert!(needs_operators(Cursor::new(model(DOMAIN))));
        assert!(!needs_operators(Cursor::new(model(b"com.microsoft"))));
        let whole = model(DOMAIN);
        for cut in 0..whole.len() - 2 {
            assert!(!needs_operators(Cursor::new(&whole[..cut])), "{cut}");
        }
        assert!(!needs_operators(Cursor::new([0xff; 40])));
    }
}
