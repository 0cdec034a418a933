//! Which format a file is in, and why one cannot be read.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use remat_files::shown;
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::Error;

/// Why an input cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {source}", path = shown(.path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The file is none of the formats that are read.
    #[error("`{path}` is neither an ONNX model nor a node-link graph nor a problem nor a log: {why}", path = shown(.path.display()), why = shown(.why))]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The file is a model of another program.
    #[error("`{path}` is {what}, and no ONNX model", path = shown(.path.display()))]
    ForeignFormat {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: ForeignFormat,
    },
    /// The input is a module of MLIR where one model is wanted.
    #[error("`{path}` is a module of MLIR, whose functions are models each, and one model is wanted", path = shown(.path.display()))]
    MlirModule {
        /// The file.
        path: PathBuf,
    },
    /// The ONNX model is broken or lacks something.
    #[error(transparent)]
    Onnx(#[from] remat_onnx::OnnxError),
    /// The node-link graph is broken.
    #[error(transparent)]
    NodeLink(#[from] remat_nodelink::NodeLinkError),
    /// The problem file is malformed.
    #[error(transparent)]
    Problem(#[from] remat_plan::ProblemError),
    /// The log is malformed.
    #[error(transparent)]
    Log(#[from] remat_dtr::LogError),
}

impl ReadError {
    /// The error of a file that the system does not let us read.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    fn unknown_format(path: &Path, why: &impl ToString) -> Self {
        Self::UnknownFormat {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// The bytes of a file.
///
/// # Errors
/// [`ReadError::Io`].
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    Ok(std::fs::read(path).map_err(ReadError::io(path))?)
}

/// The text of a file.
///
/// # Errors
/// [`ReadError::Io`], also if it is no text.
pub fn read_text(path: &Path) -> Result<String, Error> {
    Ok(std::fs::read_to_string(path).map_err(ReadError::io(path))?)
}

/// How many bytes of a file say what it is.
const HEAD: usize = 512;
/// What the first member of an archive of PyTorch is called, in a folder.
const PICKLE: &[u8] = b"/data.pkl";

/// Formats of models that are recognized and not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForeignFormat {
    /// An archive or a pickle of PyTorch.
    PyTorch,
    /// An archive of which only that is known.
    Archive,
    /// A flat buffer of TensorFlow Lite.
    TensorFlowLite,
    /// A graph or saved model of TensorFlow.
    TensorFlow,
    /// Weights in HDF5 or safetensors, without a graph.
    Weights,
}

impl ForeignFormat {
    /// What the first bytes of a file and its extension say.
    fn of(head: &[u8], extension: &str) -> Option<Self> {
        match extension {
            "safetensors" | "h5" | "hdf5" => return Some(Self::Weights),
            "tflite" => return Some(Self::TensorFlowLite),
            // ONNX models begin with their version, graphs with a node; version 1 is older than all that is read.
            "pb" if head.starts_with(&[0x0a]) || head.starts_with(&[0x08, 0x01]) => return Some(Self::TensorFlow),
            "pbtxt" | "keras" => return Some(Self::TensorFlow),
            "pt" | "pth" | "pt2" => return Some(Self::PyTorch),
            _ => {}
        }
        let is_archive = head.starts_with(b"PK\x03\x04");
        // PyTorch's begins with the pickle, whose name stands in the header.
        let has_pickle = head.windows(PICKLE.len()).any(|part| part == PICKLE);
        let is_pickle = head.starts_with(&[0x80]) && head.get(1).is_some_and(|version| (2..=5).contains(version));
        if head.get(4..8) == Some(b"TFL3") {
            Some(Self::TensorFlowLite)
        } else if head.starts_with(b"\x89HDF\r\n") {
            Some(Self::Weights)
        } else {
            match (is_archive, is_pickle || has_pickle) {
                (true, false) => Some(Self::Archive),
                (true, true) => Some(Self::PyTorch),
                (false, _) => is_pickle.then_some(Self::PyTorch),
            }
        }
    }

    /// What can be done with it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::PyTorch => "export the model: `torch.onnx.export(model, inputs, \"model.onnx\")`",
            Self::Archive => {
                "unpack it if the model is in it; if PyTorch wrote it, export the model: `torch.onnx.export(model, inputs, \"model.onnx\")`"
            }
            Self::TensorFlowLite | Self::TensorFlow => "convert it to ONNX: the Python package tf2onnx does",
            Self::Weights => "it has weights without a graph: export the model that they are for to ONNX",
        }
    }
}

impl std::fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PyTorch => "a file of PyTorch",
            Self::Archive => "a ZIP archive (PyTorch writes such)",
            Self::TensorFlowLite => "a model of TensorFlow Lite",
            Self::TensorFlow => "a model of TensorFlow",
            Self::Weights => "a file of weights",
        })
    }
}

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
    /// [`ReadError::Io`] if the file cannot be read, [`ReadError::UnknownFormat`] for JSON that is neither graph nor problem.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let io = ReadError::io(path);
        let extension = extension(path);
        if extension == "mlir" {
            return Ok(Self::Mlir);
        }
        if is_log(path) {
            return Ok(Self::Log);
        }
        let mut head = [0u8; HEAD];
        let mut file = std::fs::File::open(path).map_err(&io)?;
        let length = file.read(&mut head).map_err(&io)?;
        let is_json = head[..length].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if extension == "onnx" || !is_json {
            let what = ForeignFormat::of(&head[..length], &extension).filter(|_| extension != "onnx");
            return match what {
                Some(what) => Err(ReadError::ForeignFormat {
                    path: path.to_owned(),
                    what,
                }
                .into()),
                None => Ok(Self::Onnx),
            };
        }
        // What stands under the keys is passed over: as values it would take more memory than anything that comes later.
        let keys: BTreeMap<String, IgnoredAny> =
            serde_json::from_slice(&read(path)?).map_err(|error| ReadError::unknown_format(path, &error))?;
        if keys.contains_key("storages") {
            Ok(Self::Problem)
        } else if keys.contains_key("nodes") {
            Ok(Self::NodeLink)
        } else {
            let why = "the JSON has neither `nodes` nor `storages`";
            Err(ReadError::unknown_format(path, &why).into())
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

/// The extension of a path in lower case, which says what a file holds; empty where there is none.
#[must_use]
pub fn extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

/// Whether the name says that it is a log.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| name.ends_with(".log") || name.ends_with(".log.gz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_other_programs_are_recognized() {
        let folder = tempfile::tempdir().expect("a folder");
        let cases: [(&str, &[u8], &str); 8] = [
            (
                "step",
                b"PK\x03\x04\0\0\x08\x08\0\0 archive/data.pkl FB",
                "a file of PyTorch",
            ),
            (
                "model.zip",
                b"PK\x03\x04\0\0\x08\x08\0\0 model.onnx",
                "a ZIP archive (PyTorch writes such)",
            ),
            ("a.pt", b"PK\x03\x04 an archive", "a file of PyTorch"),
            ("checkpoint", b"\x80\x02 a pickle", "a file of PyTorch"),
            ("a.bin", b"\x1c\0\0\0TFL3", "a model of TensorFlow Lite"),
            ("frozen.pb", b"\x0a\x10 a node", "a model of TensorFlow"),
            ("weights.safetensors", b"\x40\0\0\0\0\0\0\0{", "a file of weights"),
            ("weights", b"\x89HDF\r\n\x1a\n", "a file of weights"),
        ];
        for (name, content, what) in cases {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("it can be written");
            let error = Format::of(&path).expect_err(name).to_string();
            assert!(error.contains(&format!("is {what}, and no ONNX model")), "{error}");
        }
        for (name, content) in [
            ("model.pb", &b"\x08\x08 onnx"[..]),
            ("model.onnx", b"PK\x03\x04"),
            ("model", b"\x08\x08 onnx"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("it can be written");
            assert_eq!(Format::of(&path).expect("it may be one"), Format::Onnx);
        }
    }
}
