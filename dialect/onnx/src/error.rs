//! What can be wrong with a model, and where.

use std::path::PathBuf;

use remat_files::shown;
use thiserror::Error;

/// Why a model could not be read, understood or written. Every message names the node, tensor or byte offset it is about.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// A file could not be read or written.
    #[error("cannot access `{}`: {source}", shown(path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// The bytes are not an ONNX model.
    #[error("not an ONNX model: {why}, at byte {offset}", why = shown(.why))]
    NotOnnx {
        /// Offset from the start of the file.
        offset: u64,
        /// What was found.
        why: String,
    },
    /// The file ends inside a field.
    #[error("the model is cut off: a field at byte {offset} needs {need} bytes, the file has {have} left")]
    Truncated {
        /// Offset of the field's content from the start of the file.
        offset: u64,
        /// Bytes the field says it has.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// Messages, subgraphs or function calls are nested beyond the limit.
    #[error("{what} nest deeper than {limit} levels", what = shown(.what))]
    TooDeep {
        /// What is nested, with its place.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// Nodes depend on each other in a cycle.
    #[error("the graph has a cycle through {}", quoted(nodes, LISTED))]
    Cycle {
        /// The nodes on the cycle, each one reading a result of the one before it.
        nodes: Vec<String>,
    },
    /// A node reads a value that nothing defines.
    #[error("node `{node}` reads `{tensor}`, which is neither a graph input, an initializer nor the output of a node", node = shown(.node), tensor = shown(.tensor))]
    UndefinedInput {
        /// The node that reads.
        node: String,
        /// What it reads.
        tensor: String,
    },
    /// A graph returns a value that nothing defines.
    #[error("graph output `{tensor}` is neither a graph input, an initializer nor the output of a node", tensor = shown(.tensor))]
    UndefinedOutput {
        /// The output.
        tensor: String,
    },
    /// A value is defined twice; ONNX graphs are in single static assignment form.
    #[error("`{name}` is defined twice, by {first} and by {second}", name = shown(.name), first = shown(.first), second = shown(.second))]
    DuplicateName {
        /// The value.
        name: String,
        /// One definition.
        first: String,
        /// The other.
        second: String,
    },
    /// Sizes of values that need memory cannot be derived from the model.
    #[error(
        "{}the size of {} is unknown{}",
        without_dims(dims),
        quoted(tensors, if dims.is_empty() { LISTED } else { 1 }),
        causes_text(causes)
    )]
    UnknownSizes {
        /// The values, in reference order.
        tensors: Vec<String>,
        /// The dimensions that would settle some of them.
        dims: Vec<String>,
        /// What shape inference reports about the nodes involved.
        causes: Vec<String>,
    },
    /// The caller set a dimension that no value has.
    #[error("no dimension is named `{name}`; {}", known_text("the open dimensions are", known), name = shown(.name))]
    UnknownDim {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The caller fixed a dimension and did not say at which value.
    #[error("dimension `{}` is to be fixed, and no value is given", shown(.0))]
    FixedWithoutValue(String),
    /// The caller stated the size of a value that does not exist.
    #[error("no value is named `{name}`, so its size cannot be set", name = shown(.name))]
    UnknownTensor {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A size does not fit 64 bits, or a dimension is negative.
    #[error("`{tensor}`, defined by {node}, has an impossible shape: {why}", node = shown(.node), tensor = shown(.tensor), why = shown(.why))]
    ShapeOverflow {
        /// What defines the value.
        node: String,
        /// The value.
        tensor: String,
        /// What is wrong with its shape.
        why: String,
    },
    /// An initializer's values do not fit its shape or type.
    #[error("initializer `{tensor}`: {why}", tensor = shown(.tensor), why = shown(.why))]
    BadTensor {
        /// The initializer.
        tensor: String,
        /// What is wrong.
        why: String,
    },
    /// The file that holds a tensor's values is missing, too short, or outside the model's folder.
    #[error("external data of `{tensor}`: {why}", tensor = shown(.tensor), why = shown(.why))]
    ExternalData {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        why: String,
    },
    /// The model is sound, but something in it is not supported.
    #[error("`{name}`: {what}", name = shown(.name), what = shown(.what))]
    Unsupported {
        /// The node, function or tensor.
        name: String,
        /// What is not supported.
        what: String,
    },
    /// The graph to be written does not come from this model.
    #[error("cannot write op `{op}`: {why}", op = shown(.op), why = shown(.why))]
    Foreign {
        /// The op.
        op: String,
        /// What is wrong with it.
        why: String,
    },
    /// The output would overwrite the input or a file the input needs, or is not a regular file.
    #[error(transparent)]
    Output(#[from] remat_files::OutputError),
}

impl OnnxError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// An op that cannot be written.
    pub(crate) fn foreign(op: &str, why: &str) -> Self {
        Self::Foreign {
            op: op.to_owned(),
            why: why.to_owned(),
        }
    }
}

/// Names listed in a message at most; the error's fields hold all of them.
const LISTED: usize = 8;

fn quoted(names: &[String], most: usize) -> String {
    let mut text = names
        .iter()
        .take(most)
        .map(|n| format!("`{}`", shown(n)))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > most {
        text.push_str(&format!(" and {} more", names.len() - most));
    }
    text
}

fn without_dims(dims: &[String]) -> String {
    match dims {
        [] => String::new(),
        [dim] => format!("without the dimension `{}`, ", shown(dim)),
        dims => format!("without the dimensions {}, ", quoted(dims, LISTED)),
    }
}

fn causes_text(causes: &[String]) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let more = if causes.len() > 3 {
        format!("; and {} more", causes.len() - 3)
    } else {
        String::new()
    };
    format!(" ({}{more})", shown(causes[..causes.len().min(3)].join("; ")))
}

fn known_text(label: &str, names: &[String]) -> String {
    if names.is_empty() {
        "no dimension is open".to_owned()
    } else {
        format!("{label} {}", quoted(names, LISTED))
    }
}
