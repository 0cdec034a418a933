//! Tensors whose values live in other files beside the model.
//!
//! A model may name any file. Only regular files inside the model's own folder are touched: absolute paths, `..` and links
//! that lead out are rejected, and every range is checked against the real length of its file. Nothing is read but the
//! values of small tensors (see [`crate::tensor`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use onnx_protobuf::tensor_proto::DataLocation;
use onnx_protobuf::{GraphProto, ModelProto, NodeProto, TensorProto};

use crate::OnnxError;
use crate::attributes::subgraphs;

/// Whether the values live in another file.
pub(crate) fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location.enum_value() == Ok(DataLocation::EXTERNAL)
}

/// Where the values of an external tensor are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range<'a> {
    /// The file, relative to the model's folder.
    pub(crate) location: &'a str,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes; up to the end of the file if not stated.
    pub(crate) length: Option<u64>,
}

/// Reads the entries of `external_data`.
///
/// # Errors
/// [`OnnxError::ExternalData`] if the location is missing or a number is none.
pub(crate) fn range(tensor: &TensorProto) -> Result<Range<'_>, OnnxError> {
    let entry = |key: &str| {
        tensor
            .external_data
            .iter()
            .find(|e| e.key == key)
            .map(|e| e.value.as_str())
    };
    let number = |key: &str| {
        entry(key)
            .map(|text| {
                text.parse::<u64>()
                    .map_err(|_| error(tensor, format!("{key} `{text}` is not a number")))
            })
            .transpose()
    };
    let location = entry("location").ok_or_else(|| error(tensor, "it names no file".to_owned()))?;
    Ok(Range {
        location,
        offset: number("offset")?.unwrap_or(0),
        length: number("length")?,
    })
}

fn error(tensor: &TensorProto, why: String) -> OnnxError {
    OnnxError::ExternalData {
        tensor: tensor.name.clone(),
        why,
    }
}

/// The real path and length of a file, or why it cannot be used.
type DataFile = Result<(PathBuf, u64), String>;

/// The folder of a model, inside which its data files must lie.
#[derive(Debug)]
pub(crate) struct Folder {
    canonical: PathBuf,
    /// What is known of each location, so that a thousand tensors in one file ask the system once.
    files: Mutex<BTreeMap<String, DataFile>>,
}

impl Folder {
    /// The folder at `path`.
    ///
    /// # Errors
    /// [`OnnxError::Io`] if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, OnnxError> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let canonical = path.canonicalize().map_err(OnnxError::io(path))?;
        Ok(Self {
            canonical,
            files: Mutex::default(),
        })
    }

    /// The same folder for another model, even where it is gone by now: a model without data files does not need it.
    pub(crate) fn again(&self) -> Self {
        Self {
            canonical: self.canonical.clone(),
            files: Mutex::default(),
        }
    }

    /// The folder without links.
    pub(crate) fn path(&self) -> &Path {
        &self.canonical
    }

    /// The real path and length of the file at `location`.
    pub(crate) fn file(&self, tensor: &TensorProto, location: &str) -> Result<(PathBuf, u64), OnnxError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(location) {
            return known.clone().map_err(|why| error(tensor, why));
        }
        let found = self.find(location);
        files.insert(location.to_owned(), found.clone());
        found.map_err(|why| error(tensor, why))
    }

    fn find(&self, location: &str) -> DataFile {
        let relative = relative(location)?;
        let shown = |error: std::io::Error| format!("cannot access `{location}`: {error}");
        let path = self.canonical.join(relative).canonicalize().map_err(shown)?;
        if !path.starts_with(&self.canonical) {
            return Err(format!("`{location}` leads out of the model's folder"));
        }
        let metadata = path.metadata().map_err(shown)?;
        if !metadata.is_file() {
            return Err(format!("`{location}` is not a regular file"));
        }
        Ok((path, metadata.len()))
    }

    /// Checks that the tensor's values, `bytes` of them, lie inside a file of the folder.
    ///
    /// # Errors
    /// [`OnnxError::ExternalData`].
    pub(crate) fn check(&self, tensor: &TensorProto, bytes: u64) -> Result<(), OnnxError> {
        let Range {
            location,
            offset,
            length,
        } = range(tensor)?;
        let (_, size) = self.file(tensor, location)?;
        let length = length.unwrap_or(bytes);
        if length != bytes {
            return Err(error(
                tensor,
                format!("its shape needs {bytes} bytes, the file entry has {length}"),
            ));
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            let why = format!("{length} bytes at offset {offset} exceed `{location}` of {size} bytes");
            return Err(error(tensor, why));
        }
        Ok(())
    }

    /// The values of a tensor, `bytes` of them, to be read from its file.
    ///
    /// # Errors
    /// [`OnnxError::ExternalData`].
    pub(crate) fn reader(&self, tensor: &TensorProto, bytes: u64) -> Result<std::io::Take<File>, OnnxError> {
        self.check(tensor, bytes)?;
        let Range { location, offset, .. } = range(tensor)?;
        let (path, _) = self.file(tensor, location)?;
        let open = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file.take(bytes))
        };
        open().map_err(|cause: std::io::Error| error(tensor, format!("cannot read `{location}`: {cause}")))
    }

    /// The `bytes` bytes of a small tensor, `None` if they cannot be had.
    pub(crate) fn read(&self, tensor: &TensorProto, bytes: usize) -> Option<Vec<u8>> {
        self.check(tensor, bytes as u64).ok()?;
        let Range { location, offset, .. } = range(tensor).ok()?;
        let (path, _) = self.file(tensor, location).ok()?;
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut data = vec![0; bytes];
        file.read_exact(&mut data).ok()?;
        Some(data)
    }
}

/// The location as a path below the folder.
///
/// # Errors
/// A text, if it is empty, absolute or climbs with `..`.
pub(crate) fn relative(location: &str) -> Result<&Path, String> {
    let path = Path::new(location);
    let inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let windows = location.contains('\\') || location.contains(':');
    if location.is_empty() || location.contains('\0') || !inside || windows {
        return Err(format!("`{location}` is not a path inside the model's folder"));
    }
    Ok(path)
}

/// Every tensor in the model whose values live in another file.
pub(crate) fn tensors(model: &ModelProto) -> Vec<&TensorProto> {
    let mut found = Vec::new();
    let graphs = model
        .training_info
        .iter()
        .flat_map(|t| t.initialization.iter().chain(&t.algorithm));
    for graph in model.graph.iter().chain(graphs) {
        of_graph(graph, &mut found);
    }
    model
        .functions
        .iter()
        .flat_map(|f| &f.node)
        .for_each(|node| of_node(node, &mut found));
    found.retain(|tensor| is_external(tensor));
    found
}

fn of_graph<'m>(graph: &'m GraphProto, found: &mut Vec<&'m TensorProto>) {
    found.extend(&graph.initializer);
    found.extend(
        graph
            .sparse_initializer
            .iter()
            .flat_map(|s| s.values.iter().chain(&s.indices)),
    );
    graph.node.iter().for_each(|node| of_node(node, found));
}

fn of_node<'m>(node: &'m NodeProto, found: &mut Vec<&'m TensorProto>) {
    for attribute in &node.attribute {
        found.extend(attribute.t.iter().chain(&attribute.tensors));
        let sparse = attribute.sparse_tensor.iter().chain(&attribute.sparse_tensors);
        found.extend(sparse.flat_map(|s| s.values.iter().chain(&s.indices)));
    }
    subgraphs(node).for_each(|graph| of_graph(graph, found));
}
