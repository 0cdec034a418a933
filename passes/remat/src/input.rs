//! Which format a file is in.

use std::io::Read;
use std::path::Path;

use crate::Error;

/// The formats that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// An ONNX model.
    Onnx,
    /// A networkx node-link graph in JSON.
    NodeLink,
    /// A module of MLIR, in its textual form.
    Mlir,
    /// A problem in JSON, as `remat-opt` saves it.
    Problem,
    /// A log of an eager execution, as the DTR paper's prototype writes it, plain or compressed.
    Log,
}

impl Format {
    /// Tells the format from the content: JSON starts with a brace, and says by its keys what it is. Logs end in `.log` or `.log.gz`,
    /// modules of MLIR in `.mlir`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::UnknownFormat`] for JSON that is neither graph nor problem.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        if path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("mlir"))
        {
            return Ok(Self::Mlir);
        }
        if is_log(path) {
            return Ok(Self::Log);
        }
        let mut head = [0u8; 64];
        let mut file = std::fs::File::open(path).map_err(io)?;
        let read = file.read(&mut head).map_err(io)?;
        let is_json = head[..read].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if extension == "onnx" || !is_json {
            return Ok(Self::Onnx);
        }
        let bytes = std::fs::read(path).map_err(io)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| Error::UnknownFormat {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        if value.get("storages").is_some() {
            Ok(Self::Problem)
        } else if value.get("nodes").is_some() {
            Ok(Self::NodeLink)
        } else {
            let why = "the JSON has neither `nodes` nor `storages`".to_owned();
            Err(Error::UnknownFormat {
                path: path.to_owned(),
                why,
            })
        }
    }

    /// What to call an input of this format in a message.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Onnx => "an ONNX model",
            Self::NodeLink => "a node-link graph",
            Self::Mlir => "an MLIR module",
            Self::Problem => "a problem",
            Self::Log => "a log",
        }
    }
}

/// Whether the name says that it is a log.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| name.ends_with(".log") || name.ends_with(".log.gz"))
}
