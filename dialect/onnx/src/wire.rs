//! A look at the bytes of a model before they are parsed.
//!
//! The protobuf runtime in use recurses without limit into unknown groups (RUSTSEC-2024-0437) and says nothing about where
//! a file is broken. This scanner walks the wire format of exactly those messages that the parser will enter, without
//! recursion and without allocating per field, and rejects with a byte offset: groups, fields that end after the message
//! that holds them, known fields of a foreign wire type, text that is not UTF-8, deep nesting and absurd numbers of
//! messages (an empty message takes two bytes in the file but hundreds in memory).
//!
//! Source: the encoding chapter of the protocol buffers documentation; `onnx.proto` for the messages.

use crate::OnnxError;

/// Messages may nest this deep; the parser's own limit is 100.
pub(crate) const MAX_DEPTH: usize = 96;

/// More messages than this are refused; a model of 100,000 nodes has about two million.
const MAX_MESSAGES: u64 = 1 << 24;

/// Models are at most this long; longer ones keep their weights outside. This is a limit of protobuf itself.
pub(crate) const MAX_BYTES: u64 = (1 << 31) - 1;

/// The messages of `onnx.proto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    ValueInfo,
    Type,
    TypeTensor,
    TypeElement,
    TypeMap,
    Shape,
    Dimension,
    Tensor,
    Segment,
    SparseTensor,
    Entry,
    OperatorSet,
    Training,
    Function,
    Annotation,
}

/// How a known field is written.
#[derive(Clone, Copy)]
enum Field {
    Varint,
    Fixed32,
    Text,
    Bytes,
    /// Repeated numbers, one length-delimited run or one by one with this wire type.
    Numbers(u8),
    Message(Kind),
}

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const LENGTH: u8 = 2;
pub(crate) const FIXED32: u8 = 5;

/// The field of a tensor with its elements as bytes.
pub(crate) const RAW_DATA: u64 = 9;
const FLOAT_DATA: u64 = 4;
const DOUBLE_DATA: u64 = 10;

impl Kind {
    /// The field of this number, `None` if the parser does not know it and keeps its bytes unread.
    fn field(self, number: u64) -> Option<Field> {
        use Field::{Bytes, Fixed32, Message, Numbers, Text, Varint};
        Some(match (self, number) {
            (Self::Model, 1 | 5) => Varint,
            (Self::Model, 2 | 3 | 4 | 6) => Text,
            (Self::Model, 7) => Message(Self::Graph),
            (Self::Model, 8) => Message(Self::OperatorSet),
            (Self::Model, 14) => Message(Self::Entry),
            (Self::Model, 20) => Message(Self::Training),
            (Self::Model, 25) => Message(Self::Function),
            (Self::Graph, 1) => Message(Self::Node),
            (Self::Graph, 2 | 10) => Text,
            (Self::Graph, 5) => Message(Self::Tensor),
            (Self::Graph, 11..=13) => Message(Self::ValueInfo),
            (Self::Graph, 14) => Message(Self::Annotation),
            (Self::Graph, 15) => Message(Self::SparseTensor),
            (Self::Graph, 16) => Message(Self::Entry),
            (Self::Node, 1..=4 | 6..=8) => Text,
            (Self::Node, 5) => Message(Self::Attribute),
            (Self::Node, 9) => Message(Self::Entry),
            (Self::Attribute, 1 | 13 | 21) => Text,
            (Self::Attribute, 3 | 20) => Varint,
            (Self::Attribute, 2) => Fixed32,
            (Self::Attribute, 4 | 9) => Bytes,
            (Self::Attribute, 5 | 10) => Message(Self::Tensor),
            (Self::Attribute, 6 | 11) => Message(Self::Graph),
            (Self::Attribute, 7) => Numbers(FIXED32),
            (Self::Attribute, 8) => Numbers(VARINT),
            (Self::Attribute, 14 | 15) => Message(Self::Type),
            (Self::Attribute, 22 | 23) => Message(Self::SparseTensor),
            (Self::ValueInfo, 1 | 3) => Text,
            (Self::ValueInfo, 2) => Message(Self::Type),
            (Self::ValueInfo, 4) => Message(Self::Entry),
            (Self::Type, 1 | 8) => Message(Self::TypeTensor),
            (Self::Type, 4 | 9) => Message(Self::TypeElement),
            (Self::Type, 5) => Message(Self::TypeMap),
            (Self::Type, 6) => Text,
            (Self::TypeTensor, 1) => Varint,
            (Self::TypeTensor, 2) => Message(Self::Shape),
            (Self::TypeElement, 1) => Message(Self::Type),
            (Self::TypeMap, 1) => Varint,
            (Self::TypeMap, 2) => Message(Self::Type),
            (Self::Shape, 1) => Message(Self::Dimension),
            (Self::Dimension, 1) => Varint,
            (Self::Dimension, 2 | 3) => Text,
            (Self::Tensor, 1 | 5 | 7 | 11) => Numbers(VARINT),
            (Self::Tensor, 2 | 14) => Varint,
            (Self::Tensor, 3) => Message(Self::Segment),
            (Self::Tensor, 4) => Numbers(FIXED32),
            (Self::Tensor, 6 | 9) => Bytes,
            (Self::Tensor, 8 | 12) => Text,
            (Self::Tensor, 10) => Numbers(FIXED64),
            (Self::Tensor, 13 | 16) => Message(Self::Entry),
            (Self::Segment, 1 | 2) => Varint,
            (Self::SparseTensor, 1 | 2) => Message(Self::Tensor),
            (Self::SparseTensor, 3) => Numbers(VARINT),
            (Self::Entry, 1 | 2) => Text,
            (Self::OperatorSet, 1) => Text,
            (Self::OperatorSet, 2) => Varint,
            (Self::Training, 1 | 2) => Message(Self::Graph),
            (Self::Training, 3 | 4) => Message(Self::Entry),
            (Self::Function, 1 | 4 | 5 | 6 | 8 | 10 | 13) => Text,
            (Self::Function, 7) => Message(Self::Node),
            (Self::Function, 9) => Message(Self::OperatorSet),
            (Self::Function, 11) => Message(Self::Attribute),
            (Self::Function, 12) => Message(Self::ValueInfo),
            (Self::Function, 14) => Message(Self::Entry),
            (Self::Annotation, 1) => Text,
            (Self::Annotation, 2) => Message(Self::Entry),
            _ => return None,
        })
    }

    /// The message that the field of this number holds, where it holds one that the parser enters.
    pub(crate) fn message(self, number: u64) -> Option<Self> {
        match self.field(number) {
            Some(Field::Message(inner)) => Some(inner),
            _ => None,
        }
    }

    /// Whether the field of this number, in one run, is what `raw_data` of the same tensor would be.
    pub(crate) fn holds_elements(self, number: u64) -> bool {
        self == Self::Tensor && [FLOAT_DATA, RAW_DATA, DOUBLE_DATA].contains(&number)
    }
}

/// Writes a number as fields and lengths are written.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of a message.
pub(crate) struct Span<'a> {
    /// Its number.
    pub(crate) number: u64,
    /// All of its bytes.
    pub(crate) whole: &'a [u8],
    /// What it holds, where its length is stated.
    pub(crate) content: &'a [u8],
}

/// The fields of a message that was scanned; what is none ends them.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = Span<'_>> {
    let mut reader = Reader { bytes, at: 0 };
    let end = bytes.len();
    std::iter::from_fn(move || {
        let start = reader.at;
        if start == end {
            return None;
        }
        let tag = reader.varint(end).ok()?;
        let mut content = end..end;
        match (tag & 7) as u8 {
            VARINT => drop(reader.varint(end).ok()?),
            FIXED64 => reader.skip(8, end).ok()?,
            FIXED32 => reader.skip(4, end).ok()?,
            LENGTH => {
                let length = reader.varint(end).ok()?;
                content.start = reader.at;
                reader.skip(length, end).ok()?;
                content.end = reader.at;
            }
            _ => return None,
        }
        Some(Span {
            number: tag >> 3,
            whole: &bytes[start..reader.at],
            content: &bytes[content],
        })
    })
}

/// Checks that `bytes` can be parsed as a model without harm.
///
/// # Errors
/// [`OnnxError::NotOnnx`], [`OnnxError::Truncated`], [`OnnxError::TooDeep`] or [`OnnxError::Unsupported`] (too large).
pub(crate) fn scan(bytes: &[u8]) -> Result<(), OnnxError> {
    scan_as(bytes, Kind::Model)
}

/// Checks that `bytes` can be parsed as a tensor without harm.
///
/// # Errors
/// Those of [`scan`].
pub(crate) fn scan_tensor(bytes: &[u8]) -> Result<(), OnnxError> {
    scan_as(bytes, Kind::Tensor)
}

/// Checks that a message can have so many bytes, before they are read.
///
/// # Errors
/// [`OnnxError::Unsupported`].
pub(crate) fn check_length(bytes: u64) -> Result<(), OnnxError> {
    if bytes > MAX_BYTES {
        return Err(too_large(format!(
            "{bytes} bytes are more than a protobuf message can have"
        )));
    }
    Ok(())
}

fn scan_as(bytes: &[u8], kind: Kind) -> Result<(), OnnxError> {
    if bytes.is_empty() {
        return Err(OnnxError::NotOnnx {
            offset: 0,
            why: "the file is empty".to_owned(),
        });
    }
    check_length(bytes.len() as u64)?;
    let mut reader = Reader { bytes, at: 0 };
    let mut open = vec![(bytes.len(), kind)];
    let mut messages = 0_u64;
    while let Some(&(end, kind)) = open.last() {
        if reader.at == end {
            open.pop();
            continue;
        }
        if let Some((inner_end, inner)) = reader.field(end, kind)? {
            messages += 1;
            if messages > MAX_MESSAGES {
                return Err(too_large(format!("more than {MAX_MESSAGES} messages")));
            }
            if open.len() >= MAX_DEPTH {
                let what = format!("messages at byte {}", reader.at);
                return Err(OnnxError::TooDeep { what, limit: MAX_DEPTH });
            }
            open.push((inner_end, inner));
        }
    }
    Ok(())
}

fn too_large(what: String) -> OnnxError {
    OnnxError::Unsupported {
        name: "the model file".to_owned(),
        what,
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Reads one field of a message that ends at `end`; returns the message to be entered, if it is one.
    fn field(&mut self, end: usize, kind: Kind) -> Result<Option<(usize, Kind)>, OnnxError> {
        let start = self.at;
        let tag = self.varint(end)?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        if number == 0 || tag > u64::from(u32::MAX) {
            return Err(bad(start, format!("field number {number} does not exist")));
        }
        let known = kind.field(number);
        let fits = match known {
            None => true,
            Some(Field::Varint) => wire == VARINT,
            Some(Field::Fixed32) => wire == FIXED32,
            Some(Field::Numbers(single)) => wire == single || wire == LENGTH,
            Some(Field::Text | Field::Bytes | Field::Message(_)) => wire == LENGTH,
        };
        if !fits {
            return Err(bad(
                start,
                format!("field {number} of a {kind:?} message has wire type {wire}"),
            ));
        }
        match wire {
            VARINT => {
                self.varint(end)?;
            }
            FIXED64 => self.skip(8, end)?,
            FIXED32 => self.skip(4, end)?,
            LENGTH => {
                let length = self.varint(end)?;
                let content = self.at;
                if let Some(Field::Message(inner)) = known {
                    return Ok(Some((self.within(length, end)?, inner)));
                }
                self.at = self.within(length, end)?;
                self.check_content(known, content)?;
            }
            3 | 4 => return Err(bad(start, "a protobuf group".to_owned())),
            _ => return Err(bad(start, format!("wire type {wire} does not exist"))),
        }
        Ok(None)
    }

    /// Checks the content between `content` and the present position.
    fn check_content(&mut self, known: Option<Field>, content: usize) -> Result<(), OnnxError> {
        let end = self.at;
        match known {
            Some(Field::Text) => std::str::from_utf8(&self.bytes[content..end])
                .map(drop)
                .map_err(|error| bad(content + error.valid_up_to(), "text that is not UTF-8".to_owned())),
            Some(Field::Numbers(VARINT)) => {
                self.at = content;
                while self.at < end {
                    self.varint(end)?;
                }
                Ok(())
            }
            Some(Field::Numbers(single)) => {
                let width = if single == FIXED32 { 4 } else { 8 };
                if (end - content).is_multiple_of(width) {
                    return Ok(());
                }
                Err(bad(
                    content,
                    format!("{} bytes of numbers that are {width} bytes each", end - content),
                ))
            }
            _ => Ok(()),
        }
    }

    fn varint(&mut self, end: usize) -> Result<u64, OnnxError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            if self.at >= end {
                return Err(self.short(start, 1, end));
            }
            let byte = self.bytes[self.at];
            self.at += 1;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(bad(start, "a number of more than ten bytes".to_owned()))
    }

    fn skip(&mut self, count: u64, end: usize) -> Result<(), OnnxError> {
        self.at = self.within(count, end)?;
        Ok(())
    }

    /// The position `count` bytes on, which must not lie after `end`.
    fn within(&self, count: u64, end: usize) -> Result<usize, OnnxError> {
        let left = (end - self.at) as u64;
        if count > left {
            Err(self.short(self.at, count, end))
        } else {
            Ok(end - (left - count) as usize)
        }
    }

    /// The error for a field that needs `need` bytes at `offset` but must end at `end`.
    fn short(&self, offset: usize, need: u64, end: usize) -> OnnxError {
        let have = (end - self.at) as u64;
        if end == self.bytes.len() {
            return OnnxError::Truncated {
                offset: offset as u64,
                need,
                have,
            };
        }
        bad(
            offset,
            format!("a field of {need} bytes in a message with {have} bytes left"),
        )
    }
}

fn bad(offset: usize, why: String) -> OnnxError {
    OnnxError::NotOnnx {
        offset: offset as u64,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(field: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![field << 3 | LENGTH];
        put_varint(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn an_unknown_group_is_rejected_at_its_offset() {
        let mut bytes = vec![1 << 3, 8];
        bytes.extend(std::iter::repeat_n(0x7b, 1 << 20));
        assert!(matches!(scan(&bytes), Err(OnnxError::NotOnnx { offset: 2, .. })));
    }

    #[test]
    fn nesting_is_limited_and_what_the_parser_accepts_is_accepted() {
        let nested = |levels: usize| {
            let mut graph = message(2, b"inner");
            for _ in 0..levels {
                graph = message(1, &message(5, &message(6, &graph)));
            }
            message(7, &graph)
        };
        assert!(scan(&nested(30)).is_ok());
        assert!(matches!(scan(&nested(40)), Err(OnnxError::TooDeep { .. })));
    }

    #[test]
    fn a_length_behind_the_file_is_truncation_and_behind_its_message_is_corruption() {
        assert!(matches!(
            scan(&[0x3a, 5, 0]),
            Err(OnnxError::Truncated {
                offset: 2,
                need: 5,
                have: 1
            })
        ));
        assert!(matches!(
            scan(&[0x3a, 2, 0x12, 9, 0, 0, 0]),
            Err(OnnxError::NotOnnx { offset: 4, .. })
        ));
        let absurd = [0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(matches!(
            scan(&absurd),
            Err(OnnxError::Truncated { need: u64::MAX, .. })
        ));
    }

    #[test]
    fn other_files_are_no_models() {
        for bytes in [
            &b""[..],
            b"{\"nodes\": []}",
            b"hello world",
            b"\x89PNG\r\n\x1a\n",
            b"PK\x03\x04",
            b"\x00\x00",
        ] {
            assert!(scan(bytes).is_err(), "{bytes:?}");
        }
    }
}
