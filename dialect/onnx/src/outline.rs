//! Models of which only the graph is read, while large weights stay where they lie: for files that are too large for memory.
//!
//! [`outline`] leaves the elements of large tensors behind, and has the tensors say where in the file they lie, as external data does.
//! [`restore`] says what a model made from that consists of, piece by piece: bytes of its own, and ranges of the file.

use std::io::{BufReader, Read, Seek, SeekFrom};

use onnx_protobuf::tensor_proto::DataLocation;
use onnx_protobuf::{Message, StringStringEntryProto, TensorProto};
use protobuf::EnumOrUnknown;

use crate::OnnxError;
use crate::external::{is_external, range};
use crate::wire::{self, Kind};

/// What tensors name instead of a data file.
const LEFT: &str = "remat_opt.left_in_place";
/// Bytes up to which a field is read whole. No tensor of so few bytes is worth a range, and values that shapes depend on are smaller.
const SMALL: u64 = 1 << 16;

/// A part of a model's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A range of the file that the model was read from.
    Range {
        /// Its first byte.
        offset: u64,
        /// How many bytes it has.
        length: u64,
    },
}

/// The bytes of a model without the elements of its large tensors.
///
/// # Errors
/// [`OnnxError::Truncated`], [`OnnxError::NotOnnx`] and [`OnnxError::TooDeep`] for bytes that are no model, and
/// [`OnnxError::Unsupported`] for more than a model may have. Whoever reads the result scans all of it again.
pub fn outline(file: impl Read + Seek) -> Result<Vec<u8>, OnnxError> {
    let mut source = Source::new(file)?;
    wire::check_length(source.length)?;
    let mut out = Vec::new();
    let end = source.length;
    source.copy(Kind::Model, end, 0, &mut out)?;
    Ok(out)
}

struct Source<R> {
    file: BufReader<R>,
    at: u64,
    length: u64,
}

impl<R: Read + Seek> Source<R> {
    fn new(mut file: R) -> Result<Self, OnnxError> {
        let length = file.seek(SeekFrom::End(0)).map_err(|cause| unread(0, &cause))?;
        file.rewind().map_err(|cause| unread(0, &cause))?;
        let file = BufReader::with_capacity(SMALL as usize, file);
        Ok(Self { file, at: 0, length })
    }

    /// Copies the fields of a message up to `end`, its large tensors without their elements.
    fn copy(&mut self, kind: Kind, end: u64, depth: usize, out: &mut Vec<u8>) -> Result<(), OnnxError> {
        if depth >= wire::MAX_DEPTH {
            let what = format!("messages at byte {}", self.at);
            return Err(OnnxError::TooDeep {
                what,
                limit: wire::MAX_DEPTH,
            });
        }
        while self.at < end {
            let tag = self.varint(end)?;
            let number = tag >> 3;
            match (tag & 7) as u8 {
                wire::VARINT => {
                    let value = self.varint(end)?;
                    wire::put_varint(tag, out);
                    wire::put_varint(value, out);
                }
                wire::FIXED64 => self.field(tag, 8, end, out)?,
                wire::FIXED32 => self.field(tag, 4, end, out)?,
                wire::LENGTH => {
                    let length = self.varint(end)?;
                    self.within(length, end)?;
                    if kind.holds_elements(number) && length > SMALL {
                        let from = self.at;
                        self.skip(length)?;
                        leave(from, length, out)?;
                    } else if let Some(inner) = kind.message(number).filter(|_| length > SMALL) {
                        let mut content = Vec::new();
                        self.copy(inner, self.at + length, depth + 1, &mut content)?;
                        wire::put_varint(tag, out);
                        wire::put_varint(content.len() as u64, out);
                        out.append(&mut content);
                    } else {
                        wire::put_varint(tag, out);
                        wire::put_varint(length, out);
                        self.read(length, out)?;
                    }
                }
                other => {
                    let why = format!("field {number} has wire type {other}");
                    return Err(OnnxError::NotOnnx { offset: self.at, why });
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, tag: u64, length: u64, end: u64, out: &mut Vec<u8>) -> Result<(), OnnxError> {
        self.within(length, end)?;
        wire::put_varint(tag, out);
        self.read(length, out)
    }

    fn within(&self, need: u64, end: u64) -> Result<(), OnnxError> {
        let have = end - self.at;
        if need <= have {
            return Ok(());
        }
        let offset = self.at;
        Err(OnnxError::Truncated { offset, need, have })
    }

    fn varint(&mut self, end: u64) -> Result<u64, OnnxError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            self.within(1, end)?;
            let mut byte = [0];
            self.file
                .read_exact(&mut byte)
                .map_err(|cause| unread(self.at, &cause))?;
            self.at += 1;
            if shift < 64 {
                value |= u64::from(byte[0] & 0x7f) << shift;
            }
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        let why = "a number of more than ten bytes".to_owned();
        Err(OnnxError::NotOnnx { offset: start, why })
    }

    fn read(&mut self, length: u64, out: &mut Vec<u8>) -> Result<(), OnnxError> {
        let mut part = self.file.by_ref().take(length);
        let read = part.read_to_end(out).map_err(|cause| unread(self.at, &cause))? as u64;
        if read < length {
            let offset = self.at;
            return Err(OnnxError::Truncated {
                offset,
                need: length,
                have: read,
            });
        }
        self.at += length;
        Ok(())
    }

    fn skip(&mut self, length: u64) -> Result<(), OnnxError> {
        let relative = i64::try_from(length).unwrap_or(i64::MAX);
        self.file
            .seek_relative(relative)
            .map_err(|cause| unread(self.at, &cause))?;
        self.at += length;
        Ok(())
    }
}

fn unread(offset: u64, cause: &std::io::Error) -> OnnxError {
    let why = format!("the file cannot be read: {cause}");
    OnnxError::NotOnnx { offset, why }
}

/// Writes the fields by which a tensor says where its elements lie.
fn leave(offset: u64, length: u64, out: &mut Vec<u8>) -> Result<(), OnnxError> {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: key.to_owned(),
        value,
        ..StringStringEntryProto::default()
    };
    let tensor = TensorProto {
        data_location: EnumOrUnknown::new(DataLocation::EXTERNAL),
        external_data: vec![
            entry("location", LEFT.to_owned()),
            entry("offset", offset.to_string()),
            entry("length", length.to_string()),
        ],
        ..TensorProto::default()
    };
    out.extend(written(&tensor)?);
    Ok(())
}

fn written(tensor: &TensorProto) -> Result<Vec<u8>, OnnxError> {
    tensor.write_to_bytes().map_err(|cause| OnnxError::Unsupported {
        name: tensor.name.clone(),
        what: cause.to_string(),
    })
}

/// The file of a model, as pieces, that was made from an [`outline`]. `bytes` is that model, `length` that of the file of the outline.
///
/// # Errors
/// [`OnnxError::NotOnnx`] and others for bytes that are no model, [`OnnxError::ExternalData`] for a tensor whose elements do not lie in
/// the file, and [`OnnxError::Unsupported`] where all is more than a model may have.
pub fn restore(bytes: &[u8], length: u64) -> Result<Vec<Piece>, OnnxError> {
    wire::scan(bytes)?;
    let mut restored = Restored::default();
    restored.message(Kind::Model, bytes, length)?;
    wire::check_length(restored.length)?;
    Ok(restored.pieces)
}

#[derive(Default)]
struct Restored {
    pieces: Vec<Piece>,
    length: u64,
}

impl Restored {
    /// Adds the fields of a message that the scan has accepted.
    fn message(&mut self, kind: Kind, bytes: &[u8], file: u64) -> Result<(), OnnxError> {
        for field in wire::fields(bytes) {
            match kind.message(field.number) {
                Some(Kind::Tensor) => self.nested(field.number, |inner| inner.tensor(field.content, file))?,
                Some(inner) => self.nested(field.number, |nested| nested.message(inner, field.content, file))?,
                None => self.bytes(field.whole),
            }
        }
        Ok(())
    }

    fn nested(&mut self, number: u64, fill: impl FnOnce(&mut Self) -> Result<(), OnnxError>) -> Result<(), OnnxError> {
        let mut inner = Self::default();
        fill(&mut inner)?;
        self.head(number, inner.length);
        for piece in inner.pieces {
            match piece {
                Piece::Bytes(bytes) => self.bytes(&bytes),
                Piece::Range { offset, length } => self.range(offset, length),
            }
        }
        Ok(())
    }

    fn tensor(&mut self, bytes: &[u8], file: u64) -> Result<(), OnnxError> {
        let parsed = TensorProto::parse_from_bytes(bytes);
        let mut tensor = parsed.map_err(|cause| OnnxError::NotOnnx {
            offset: 0,
            why: cause.to_string(),
        })?;
        let Some((offset, length)) = left(&tensor, file)? else {
            self.bytes(bytes);
            return Ok(());
        };
        tensor
            .external_data
            .retain(|entry| !["location", "offset", "length"].contains(&entry.key.as_str()));
        tensor.data_location = EnumOrUnknown::default();
        self.bytes(&written(&tensor)?);
        self.head(wire::RAW_DATA, length);
        self.range(offset, length);
        Ok(())
    }

    fn head(&mut self, number: u64, length: u64) {
        let mut head = Vec::new();
        wire::put_varint(number << 3 | u64::from(wire::LENGTH), &mut head);
        wire::put_varint(length, &mut head);
        self.bytes(&head);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    fn range(&mut self, offset: u64, length: u64) {
        self.length += length;
        self.pieces.push(Piece::Range { offset, length });
    }
}

/// The range of the file in which the elements of a tensor were left.
fn left(tensor: &TensorProto, file: u64) -> Result<Option<(u64, u64)>, OnnxError> {
    if !is_external(tensor) {
        return Ok(None);
    }
    let found = range(tensor)?;
    if found.location != LEFT {
        return Ok(None);
    }
    let length = found.length.unwrap_or(0);
    match found.offset.checked_add(length) {
        Some(end) if end <= file => Ok(Some((found.offset, length))),
        _ => Err(OnnxError::ExternalData {
            tensor: tensor.name.clone(),
            why: format!("its elements would end behind the file of {file} bytes"),
        }),
    }
}

#[cfg(test)]
mod tests;
