//! Types and attributes: printing and parsing side by side, so that they stay inverse to each other.

use std::fmt::{self, Display, Formatter};

use crate::{Attribute, Dim, ElementType, ValueType};

use super::cursor::Cursor;
use super::error::{ErrorAt, ParseErrorKind};
use super::lexer::Token;
use super::name::{ByteString, Quoted, Symbol, starts_symbol};

/// How deep types may nest in a text: `sequence<i64[]>` is one deep.
pub const MAX_TYPE_DEPTH: usize = 32;

/// The bits of the NaN that prints as plain `nan`.
const PLAIN_NAN: u32 = 0x7fc0_0000;

/// Writes `items` with `, ` between them.
pub(super) fn comma_separated<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}

/// A dimension as the textual form writes it: `224`, `batch`, `?`.
impl Display for Dim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(size) => size.fmt(f),
            Self::Symbol(name) => Symbol(name).fmt(f),
            Self::Free { size, name: Some(name) } => write!(f, "{}={size}", Symbol(name)),
            Self::Free { size, name: None } => write!(f, "?={size}"),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// A type as the textual form writes it: `f32[batch, 3]`, `sequence<i64[..]>`.
impl Display for ValueType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { element, shape } => write_tensor(f, *element, shape.as_deref()),
            Self::SparseTensor { element, shape } => {
                f.write_str("sparse<")?;
                write_tensor(f, *element, shape.as_deref())?;
                f.write_str(">")
            }
            Self::Sequence(inner) => write!(f, "sequence<{inner}>"),
            Self::Optional(inner) => write!(f, "optional<{inner}>"),
            Self::Map { key, value } => write!(f, "map<{}, {value}>", key.name()),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

fn write_tensor(f: &mut Formatter<'_>, element: ElementType, shape: Option<&[Dim]>) -> fmt::Result {
    f.write_str(element.name())?;
    let Some(dims) = shape else {
        return f.write_str("[..]");
    };
    f.write_str("[")?;
    comma_separated(f, dims, |f, dim| dim.fmt(f))?;
    f.write_str("]")
}

/// An attribute as the textual form writes it: `7`, `0.5`, `"SAME"`, `[7, 7]`, `opaque "subgraph"`.
impl Display for Attribute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => write_float(f, *value),
            Self::String(bytes) => ByteString(bytes).fmt(f),
            Self::Ints(values) => write_list(f, "ints", values, |f, value| value.fmt(f)),
            Self::Floats(values) => write_list(f, "floats", values, |f, value| write_float(f, *value)),
            Self::Strings(values) => write_list(f, "strings", values, |f, value| ByteString(value).fmt(f)),
            Self::Opaque(text) => write!(f, "opaque {}", Quoted(text)),
        }
    }
}

/// A list; an empty one says of what.
fn write_list<T>(
    f: &mut Formatter<'_>,
    kind: &str,
    items: &[T],
    write: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    if items.is_empty() {
        f.write_str(kind)?;
    }
    f.write_str("[")?;
    comma_separated(f, items, write)?;
    f.write_str("]")
}

/// The shortest number that reads back to the same bits, always with a point or an exponent.
fn write_float(f: &mut Formatter<'_>, value: f32) -> fmt::Result {
    match value.to_bits() {
        PLAIN_NAN => f.write_str("nan"),
        bits if value.is_nan() => write!(f, "nan({bits:#010x})"),
        _ => write!(f, "{value:?}"),
    }
}

impl Cursor<'_> {
    /// A type.
    pub(super) fn value_type(&mut self) -> Result<ValueType, ErrorAt> {
        self.nested_type(0)
    }

    fn nested_type(&mut self, depth: usize) -> Result<ValueType, ErrorAt> {
        if depth > MAX_TYPE_DEPTH {
            return Err(ErrorAt::new(self.offset(), ParseErrorKind::TooDeep(MAX_TYPE_DEPTH)));
        }
        let word = match *self.token() {
            Token::Word(word) => word,
            _ => "",
        };
        if let Some(element) = ElementType::from_name(word) {
            self.advance()?;
            let shape = self.shape()?;
            return Ok(ValueType::Tensor { element, shape });
        }
        if !["sparse", "sequence", "optional", "map", "unknown"].contains(&word) {
            return Err(self.unexpected("a type"));
        }
        self.advance()?;
        if word == "unknown" {
            return Ok(ValueType::Unknown);
        }
        self.mark("<")?;
        let ty = match word {
            "sparse" => ValueType::SparseTensor {
                element: self.element()?,
                shape: self.shape()?,
            },
            "map" => {
                let key = self.element()?;
                self.mark(",")?;
                let value = Box::new(self.nested_type(depth + 1)?);
                ValueType::Map { key, value }
            }
            "sequence" => ValueType::Sequence(Box::new(self.nested_type(depth + 1)?)),
            _ => ValueType::Optional(Box::new(self.nested_type(depth + 1)?)),
        };
        self.mark(">")?;
        Ok(ty)
    }

    fn element(&mut self) -> Result<ElementType, ErrorAt> {
        self.word_as("an element type", ElementType::from_name)
    }

    fn shape(&mut self) -> Result<Option<Vec<Dim>>, ErrorAt> {
        self.mark("[")?;
        if self.eat_word("..")? {
            self.mark("]")?;
            return Ok(None);
        }
        self.items("]", Self::dim).map(Some)
    }

    fn dim(&mut self) -> Result<Dim, ErrorAt> {
        if let Token::String(name) = self.token() {
            let name = name.clone().into_owned();
            self.advance()?;
            return self.at_size(Some(name));
        }
        if self.eat_mark("?")? {
            return self.at_size(None);
        }
        let dim = self.word_as("a dimension (a number, a name or `?`)", |word| {
            if starts_symbol(word) {
                Some(Dim::Symbol(word.to_owned()))
            } else {
                word.parse().ok().map(Dim::Known)
            }
        })?;
        match dim {
            Dim::Symbol(name) => self.at_size(Some(name)),
            dim => Ok(dim),
        }
    }

    /// An open dimension, with the size after it where one is given.
    fn at_size(&mut self, name: Option<String>) -> Result<Dim, ErrorAt> {
        if self.eat_mark("=")? {
            let size = self.word_as("the size of a dimension", |word| word.parse().ok())?;
            return Ok(Dim::Free { size, name });
        }
        Ok(name.map_or(Dim::Unknown, Dim::Symbol))
    }

    /// The value of an attribute.
    pub(super) fn attribute(&mut self) -> Result<Attribute, ErrorAt> {
        if self.at_mark("[") {
            return self.attribute_list();
        }
        if self.eat_word("opaque")? {
            let Token::String(text) = self.token() else {
                return Err(self.unexpected("a string that says what is opaque"));
            };
            let text = text.clone().into_owned();
            self.advance()?;
            return Ok(Attribute::Opaque(text));
        }
        let empty = match self.token() {
            Token::Word("ints") => Attribute::Ints(Vec::new()),
            Token::Word("floats") => Attribute::Floats(Vec::new()),
            Token::Word("strings") => Attribute::Strings(Vec::new()),
            Token::String(_) | Token::Bytes(_) => return self.byte_string().map(Attribute::String),
            Token::Word(word) if is_float(word) => return self.float().map(Attribute::Float),
            Token::Word(word) if starts_number(word) => return self.int().map(Attribute::Int),
            _ => return Err(self.unexpected("the value of an attribute")),
        };
        self.advance()?;
        self.mark("[")?;
        self.mark("]")?;
        Ok(empty)
    }

    /// A list whose first item says what the others are.
    fn attribute_list(&mut self) -> Result<Attribute, ErrorAt> {
        let mut first = None;
        let mut ints = Vec::new();
        let mut floats = Vec::new();
        let mut strings = Vec::new();
        self.mark("[")?;
        if self.at_mark("]") {
            return Err(self.unexpected("an item (an empty list is `ints[]`, `floats[]` or `strings[]`)"));
        }
        self.items("]", |cursor| {
            let kind = *first.get_or_insert(match cursor.token() {
                Token::Word(word) if is_float(word) => ItemKind::Float,
                Token::Word(word) if starts_number(word) => ItemKind::Int,
                Token::String(_) | Token::Bytes(_) => ItemKind::String,
                _ => return Err(cursor.unexpected("a number or a string")),
            });
            match kind {
                ItemKind::Int => ints.push(cursor.int()?),
                ItemKind::Float => floats.push(cursor.float()?),
                ItemKind::String => strings.push(cursor.byte_string()?),
            }
            Ok(())
        })?;
        match first {
            Some(ItemKind::Int) => Ok(Attribute::Ints(ints)),
            Some(ItemKind::Float) => Ok(Attribute::Floats(floats)),
            _ => Ok(Attribute::Strings(strings)),
        }
    }

    fn int(&mut self) -> Result<i64, ErrorAt> {
        self.number("an integer of 64 bits")
    }

    fn float(&mut self) -> Result<f32, ErrorAt> {
        if self.eat_word("nan")? {
            if !self.eat_mark("(")? {
                return Ok(f32::from_bits(PLAIN_NAN));
            }
            let value = self.word_as("the bits of a NaN, like `0x7fc00001`", |word| {
                let bits = u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
                Some(f32::from_bits(bits)).filter(|value| value.is_nan())
            })?;
            self.mark(")")?;
            return Ok(value);
        }
        self.word_as("a float", |word| match word {
            "inf" => Some(f32::INFINITY),
            "-inf" => Some(f32::NEG_INFINITY),
            _ if is_float(word) => word.parse().ok().filter(|value: &f32| value.is_finite()),
            _ => None,
        })
    }

    fn byte_string(&mut self) -> Result<Vec<u8>, ErrorAt> {
        let bytes = match self.token() {
            Token::String(text) => text.as_bytes().to_vec(),
            Token::Bytes(bytes) => bytes.clone(),
            _ => return Err(self.unexpected("a string")),
        };
        self.advance()?;
        Ok(bytes)
    }
}

#[derive(Clone, Copy)]
enum ItemKind {
    Int,
    Float,
    String,
}

fn starts_number(word: &str) -> bool {
    word.strip_prefix('-')
        .unwrap_or(word)
        .starts_with(|c: char| c.is_ascii_digit())
}

fn is_float(word: &str) -> bool {
    matches!(word, "nan" | "inf" | "-inf") || (starts_number(word) && word.contains(['.', 'e', 'E']))
}
