//! One line of a log.

use std::borrow::Cow;

use serde::Deserialize;

use super::LogErrorKind;

/// Largest size, time or sum of them: two such numbers add up without overflow.
pub(super) const LARGEST: u64 = 1 << 62;

/// An instruction; names are those of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Instruction {
    /// A remark; `START` begins the execution.
    Annotate { is_start: bool },
    /// A tensor that exists from outside.
    Constant { name: String },
    /// Bytes of the tensor defined last.
    Memory { name: String, bytes: u64 },
    /// Which argument the result defined last looks into.
    Alias { name: String, argument: Option<usize> },
    /// An operator.
    Call {
        op: String,
        arguments: Vec<String>,
        results: Vec<String>,
        duration: u64,
    },
    /// An operator that changes arguments in place.
    Mutate {
        op: String,
        arguments: Vec<String>,
        mutated: Vec<usize>,
        duration: u64,
    },
    /// Another name for a tensor.
    Copy { to: String, from: String },
    /// A name is given to another tensor.
    CopyFrom { to: String, from: String },
    /// A name goes out of use.
    Release { name: String },
}

/// Every field that an instruction may have.
#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct Fields<'a> {
    #[serde(borrow)]
    instruction: Cow<'a, str>,
    #[serde(borrow, default)]
    annotation: Option<Cow<'a, str>>,
    name: Option<String>,
    #[serde(borrow, default)]
    memory: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    alias: Option<Cow<'a, str>>,
    args: Option<Vec<String>>,
    result: Option<Vec<String>>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    mutate: Option<Vec<i64>>,
    dst: Option<String>,
    src: Option<String>,
}

impl Instruction {
    /// Reads one line.
    pub(super) fn parse(line: &str) -> Result<Self, LogErrorKind> {
        if !line.trim_start().starts_with('{') {
            return Err(LogErrorKind::Json("expected an object".to_owned()));
        }
        let fields: Fields<'_> =
            serde_json::from_str(line).map_err(|error| LogErrorKind::Json(without_line(&error.to_string())))?;
        Self::of(fields)
    }

    fn of(fields: Fields<'_>) -> Result<Self, LogErrorKind> {
        fn need<T>(instruction: &'static str, field: &'static str, value: Option<T>) -> Result<T, LogErrorKind> {
            value.ok_or(LogErrorKind::MissingField { instruction, field })
        }
        Ok(match fields.instruction.as_ref() {
            "ANNOTATE" => Self::Annotate {
                is_start: need("ANNOTATE", "ANNOTATION", fields.annotation)? == "START",
            },
            "CONSTANT" => Self::Constant {
                name: need("CONSTANT", "NAME", fields.name)?,
            },
            "MEMORY" => Self::Memory {
                name: need("MEMORY", "NAME", fields.name)?,
                bytes: natural("MEMORY", &need("MEMORY", "MEMORY", fields.memory)?)?,
            },
            "ALIAS" => Self::Alias {
                name: need("ALIAS", "NAME", fields.name)?,
                argument: argument(&need("ALIAS", "ALIAS", fields.alias)?)?,
            },
            "CALL" => Self::Call {
                op: need("CALL", "NAME", fields.name)?,
                arguments: need("CALL", "ARGS", fields.args)?,
                results: need("CALL", "RESULT", fields.result)?,
                duration: natural("TIME", &need("CALL", "TIME", fields.time)?)?,
            },
            "MUTATE" => Self::mutate(
                need("MUTATE", "NAME", fields.name)?,
                need("MUTATE", "ARGS", fields.args)?,
                &need("MUTATE", "MUTATE", fields.mutate)?,
                natural("TIME", &need("MUTATE", "TIME", fields.time)?)?,
            )?,
            "COPY" => Self::Copy {
                to: need("COPY", "DST", fields.dst)?,
                from: need("COPY", "SRC", fields.src)?,
            },
            "COPY_FROM" => Self::CopyFrom {
                to: need("COPY_FROM", "DST", fields.dst)?,
                from: need("COPY_FROM", "SRC", fields.src)?,
            },
            "RELEASE" => Self::Release {
                name: need("RELEASE", "NAME", fields.name)?,
            },
            other => return Err(LogErrorKind::UnknownInstruction(other.to_owned())),
        })
    }

    fn mutate(op: String, arguments: Vec<String>, indices: &[i64], duration: u64) -> Result<Self, LogErrorKind> {
        let mut seen = vec![false; arguments.len()];
        let mut mutated = Vec::with_capacity(indices.len());
        for &index in indices {
            let position = usize::try_from(index).ok().filter(|&position| position < seen.len());
            let Some(position) = position else {
                let count = arguments.len();
                return Err(LogErrorKind::NoSuchArgument {
                    field: "MUTATE",
                    index,
                    count,
                });
            };
            if std::mem::replace(&mut seen[position], true) {
                return Err(LogErrorKind::MutatedTwice(position));
            }
            mutated.push(position);
        }
        Ok(Self::Mutate {
            op,
            arguments,
            mutated,
            duration,
        })
    }

    /// What to call it in a message.
    pub(super) fn describe(&self) -> String {
        let (word, name) = match self {
            Self::Annotate { .. } => return "`ANNOTATE`".to_owned(),
            Self::Constant { name } => ("CONSTANT", name),
            Self::Memory { name, .. } => ("MEMORY", name),
            Self::Alias { name, .. } => ("ALIAS", name),
            Self::Call { op, .. } => ("CALL", op),
            Self::Mutate { op, .. } => ("MUTATE", op),
            Self::Copy { to, .. } => ("COPY", to),
            Self::CopyFrom { to, .. } => ("COPY_FROM", to),
            Self::Release { name } => ("RELEASE", name),
        };
        format!("`{word}` of `{name}`")
    }
}

/// Bytes or nanoseconds.
fn natural(field: &'static str, text: &str) -> Result<u64, LogErrorKind> {
    let value = text.parse().ok().filter(|&value: &u64| value <= LARGEST);
    value.ok_or_else(|| not_a_number(field, text, 0))
}

/// An index into the arguments; -1 for none.
fn argument(text: &str) -> Result<Option<usize>, LogErrorKind> {
    if text == "-1" {
        return Ok(None);
    }
    match text.parse() {
        Ok(index) => Ok(Some(index)),
        Err(_) => Err(not_a_number("ALIAS", text, -1)),
    }
}

fn not_a_number(field: &'static str, text: &str, least: i64) -> LogErrorKind {
    let text = text.chars().take(40).collect();
    LogErrorKind::NotANumber { field, text, least }
}

/// Each line is read for itself, so the parser's own line number says nothing.
fn without_line(message: &str) -> String {
    message.replacen(" at line 1 column ", " at column ", 1)
}
