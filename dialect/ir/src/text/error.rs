//! What can be wrong with a text.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use crate::{GraphError, SizeError};

/// Why a text is not a graph, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}, column {column}: {kind}")]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text does not follow the grammar.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the grammar expects there.
        expected: Cow<'static, str>,
        /// What was found there; a long text is cut to its start.
        found: String,
    },
    /// A string in quotes does not end on its line.
    #[error("the string that starts here does not end on this line")]
    OpenString,
    /// A backslash in a string starts nothing known.
    #[error("unknown escape `{0}` in a string")]
    BadEscape(String),
    /// A tensor is used that no line above defines.
    #[error("tensor `{0}` is not defined above")]
    UndefinedTensor(String),
    /// An op is repeated that no line above defines.
    #[error("op `{0}` is not defined above")]
    UndefinedOp(String),
    /// An op has two attributes of one name.
    #[error("attribute `{0}` is given twice")]
    DuplicateAttribute(String),
    /// An offset before any block is stated.
    #[error("there is no `block` above that this could lie in")]
    NoBlock,
    /// Types are nested too deeply.
    #[error("types nest deeper than {0}")]
    TooDeep(usize),
    /// The text is too long for dense ids.
    #[error("a text of {0} bytes is too long, the limit is {max} bytes", max = u32::MAX)]
    TooLong(usize),
    /// The type of a storage has no size in 64 bits.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The text follows the grammar, but the graph breaks its invariants; the position is that of the first error.
    #[error("{}", Errors(.0))]
    Invalid(Vec<GraphError>),
}

/// The first of several errors, and how many follow.
struct Errors<'a>(&'a [GraphError]);

impl Display for Errors<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("invalid graph"),
            [only] => only.fmt(f),
            [first, rest @ ..] => write!(f, "{first} (and {} more errors)", rest.len()),
        }
    }
}

/// An error at a byte offset, before anyone has counted lines.
#[derive(Debug)]
pub(super) struct ErrorAt {
    pub(super) offset: usize,
    pub(super) kind: ParseErrorKind,
}

impl ErrorAt {
    pub(super) fn new(offset: usize, kind: impl Into<ParseErrorKind>) -> Self {
        Self {
            offset,
            kind: kind.into(),
        }
    }

    /// The error with its line and column in `text`.
    pub(super) fn locate(self, text: &str) -> ParseError {
        let before = &text[..text.floor_char_boundary(self.offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        ParseError {
            line: before.bytes().filter(|&b| b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            kind: self.kind,
        }
    }
}
