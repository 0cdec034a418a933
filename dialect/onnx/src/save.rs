//! Writing a model and the files it needs, whole or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use onnx_protobuf::{GraphProto, Message, ModelProto, NodeProto, TensorProto};
use tempfile::NamedTempFile;

use crate::attributes::subgraphs;
use crate::external::{range, relative};
use crate::tensor::is_external;
use crate::{OnnxError, OnnxModel, wire};

/// The model's bytes.
///
/// # Errors
/// [`OnnxError::Unsupported`] if they are too many for a protobuf message.
pub(crate) fn to_bytes(proto: &ModelProto) -> Result<Vec<u8>, OnnxError> {
    let unwritable = |what: String| OnnxError::Unsupported {
        name: "the model".to_owned(),
        what,
    };
    let size = proto.compute_size();
    if size > wire::MAX_BYTES {
        return Err(unwritable(format!(
            "{size} bytes exceed the {} that a model file can have",
            wire::MAX_BYTES
        )));
    }
    proto.write_to_bytes().map_err(|error| unwritable(error.to_string()))
}

/// Writes `proto`, a descendant of `model`, to `out`; see [`OnnxModel::save`].
pub(crate) fn save(model: &OnnxModel, proto: &ModelProto, out: &Path) -> Result<(), OnnxError> {
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = parent.canonicalize().map_err(OnnxError::io(parent))?;
    let refused = |why: &str| OnnxError::Refused {
        path: out.to_owned(),
        why: why.to_owned(),
    };
    let target = out.canonicalize().ok();
    if target.is_some() && target == model.path.as_ref().and_then(|path| path.canonicalize().ok()) {
        return Err(refused("it is the input"));
    }
    let tensors = external_tensors(proto);
    let mut copied: BTreeSet<&str> = BTreeSet::new();
    for tensor in tensors {
        let location = range(tensor)?.location;
        if !copied.insert(location) {
            continue;
        }
        let unreachable = |why: String| OnnxError::ExternalData {
            tensor: tensor.name.clone(),
            why,
        };
        let Some(source_folder) = &model.folder else {
            return Err(unreachable("the model came without its folder".to_owned()));
        };
        let (source, _) = source_folder.file(tensor, location)?;
        let place = folder.join(relative(location).map_err(unreachable)?);
        if target.as_deref() == Some(source.as_path()) || place == folder.join(out.file_name().unwrap_or_default()) {
            return Err(refused("it is a data file of the model"));
        }
        if folder != source_folder.path() {
            copy(&source, &place, &folder, tensor)?;
        }
    }
    let bytes = to_bytes(proto)?;
    let mut file = temporary(&folder)?;
    file.write_all(&bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(OnnxError::io(out))?;
    file.persist(out).map_err(|error| OnnxError::Io {
        path: out.to_owned(),
        source: error.error,
    })?;
    Ok(())
}

/// Copies a data file to `place` below `folder`, unless an equal file is there.
fn copy(source: &Path, place: &Path, folder: &Path, tensor: &TensorProto) -> Result<(), OnnxError> {
    let parent = place.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(OnnxError::io(parent))?;
    let outside = |why: &str| OnnxError::ExternalData {
        tensor: tensor.name.clone(),
        why: why.to_owned(),
    };
    if !parent
        .canonicalize()
        .map_err(OnnxError::io(parent))?
        .starts_with(folder)
    {
        return Err(outside("its place leads out of the output's folder"));
    }
    let differs = || outside(&format!("`{}` exists and differs", place.display()));
    if place.symlink_metadata().is_ok() {
        return if equal(source, place)? { Ok(()) } else { Err(differs()) };
    }
    let mut input = File::open(source).map_err(OnnxError::io(source))?;
    let mut output = temporary(parent)?;
    io::copy(&mut input, output.as_file_mut()).map_err(OnnxError::io(place))?;
    match output.persist_noclobber(place) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            if equal(source, place)? {
                Ok(())
            } else {
                Err(differs())
            }
        }
        Err(error) => Err(OnnxError::Io {
            path: place.to_owned(),
            source: error.error,
        }),
    }
}

/// A file that vanishes unless it is given its name. Its permissions are those of any new file.
fn temporary(folder: &Path) -> Result<NamedTempFile, OnnxError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".remat-").suffix(".tmp");
    #[cfg(unix)]
    let permissions = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(permissions);
    builder.tempfile_in(folder).map_err(OnnxError::io(folder))
}

fn equal(a: &Path, b: &Path) -> Result<bool, OnnxError> {
    let open = |path: &Path| -> Result<(BufReader<File>, u64), OnnxError> {
        let file = File::open(path).map_err(OnnxError::io(path))?;
        let length = file.metadata().map_err(OnnxError::io(path))?.len();
        Ok((BufReader::with_capacity(1 << 20, file), length))
    };
    let ((mut left, left_length), (mut right, right_length)) = (open(a)?, open(b)?);
    if left_length != right_length {
        return Ok(false);
    }
    let (mut left_block, mut right_block) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut rest = left_length;
    while rest > 0 {
        let count = usize::try_from(rest).unwrap_or(usize::MAX).min(left_block.len());
        left.read_exact(&mut left_block[..count]).map_err(OnnxError::io(a))?;
        right.read_exact(&mut right_block[..count]).map_err(OnnxError::io(b))?;
        if left_block[..count] != right_block[..count] {
            return Ok(false);
        }
        rest -= count as u64;
    }
    Ok(true)
}

/// Every tensor in the model whose values live in another file.
fn external_tensors(model: &ModelProto) -> Vec<&TensorProto> {
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
