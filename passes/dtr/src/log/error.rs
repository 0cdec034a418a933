//! What can be wrong with a log.

use remat_files::shown;
use thiserror::Error;

/// Why a log is malformed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line} of the log: {kind}")]
pub struct LogError {
    /// Number of the line, from 1; of the last one where something is missing at the end.
    pub line: usize,
    /// What is wrong there.
    pub kind: LogErrorKind,
}

/// What is wrong with a line of a log.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LogErrorKind {
    /// The bytes cannot be decompressed, or are no text.
    #[error("cannot be read: {}", shown(.0))]
    Unreadable(String),
    /// The log is longer than is read.
    #[error("the log is longer than {limit} bytes")]
    TooLong {
        /// Most bytes that are read, decompressed.
        limit: u64,
    },
    /// The line is no object of strings.
    #[error("not an instruction: {}", shown(.0))]
    Json(String),
    /// There is no such instruction.
    #[error("there is no instruction `{}`", shown(.0))]
    UnknownInstruction(String),
    /// The instruction lacks a field.
    #[error("`{instruction}` lacks the field `{field}`")]
    MissingField {
        /// The instruction.
        instruction: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field is not a number in range.
    #[error("`{field}` is `{text}`, expected an integer from {least} to 2^62", text = shown(.text))]
    NotANumber {
        /// The field.
        field: &'static str,
        /// What stands there.
        text: String,
        /// Smallest value allowed.
        least: i64,
    },
    /// A name is used that nothing defines, or that was released.
    #[error("`{}` is not defined here", shown(.0))]
    UnknownName(String),
    /// A name is defined again while it is in use.
    #[error("`{}` is defined already", shown(.0))]
    DuplicateName(String),
    /// An instruction stands where the size or the alias of a result is due.
    #[error("expected `{expected}` of `{name}`, found {found}", name = shown(.name), found = shown(.found))]
    OutOfPlace {
        /// The instruction that is due.
        expected: &'static str,
        /// The tensor it is due for.
        name: String,
        /// What stands there.
        found: String,
    },
    /// A size or an alias belongs to no result.
    #[error("`{instruction}` of `{name}` follows no instruction that defines it", name = shown(.name))]
    Stray {
        /// `MEMORY` or `ALIAS`.
        instruction: &'static str,
        /// The tensor it names.
        name: String,
    },
    /// An index points behind the arguments.
    #[error("`{field}` is {index}, but the call has {count} arguments")]
    NoSuchArgument {
        /// `ALIAS` or `MUTATE`.
        field: &'static str,
        /// The index.
        index: i64,
        /// Number of arguments.
        count: usize,
    },
    /// A call changes one argument twice.
    #[error("`MUTATE` names argument {0} twice")]
    MutatedTwice(usize),
    /// Sizes or durations are so large that their sum cannot be counted.
    #[error("the sum of all {0} exceeds 2^62")]
    Overflow(&'static str),
    /// The log never says where the execution starts.
    #[error("the log has no `START` annotation")]
    NoStart,
}
