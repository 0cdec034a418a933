//! Writing a model and the files it needs, whole or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use onnx_protobuf::{Message, ModelProto, TensorProto};
use remat_files::{OutputFile, Outputs};
use remat_ir::Graph;

use crate::external::{range, relative, tensors};
use crate::{OnnxError, OnnxModel, wire};

impl OnnxModel {
    /// [`OnnxModel::export_proto`] as bytes.
    ///
    /// # Errors
    /// Those of [`OnnxModel::export_proto`], and [`OnnxError::Unsupported`] if the result is too large for a file.
    pub fn export(&self, rewritten: &Graph) -> Result<Vec<u8>, OnnxError> {
        to_bytes(&self.export_proto(rewritten)?)
    }

    /// Writes [`OnnxModel::export_proto`] to `out`, whole or not at all.
    ///
    /// If `out` lies in another folder than the model, the data files of external weights are copied there. A data file
    /// that is there already is left alone if it is equal and an error otherwise.
    ///
    /// # Errors
    /// Those of [`OnnxModel::export`], [`OnnxError::Output`] if `out` is the model itself, one of its data files or no regular file,
    /// [`OnnxError::ExternalData`] and [`OnnxError::Io`].
    pub fn save(&self, rewritten: &Graph, out: &Path) -> Result<(), OnnxError> {
        save(self, &self.export_proto(rewritten)?, out)
    }

    /// Like [`OnnxModel::save`], for a model that was changed after [`OnnxModel::export_proto`].
    ///
    /// # Errors
    /// Those of [`OnnxModel::save`].
    pub fn save_proto(&self, proto: &ModelProto, out: &Path) -> Result<(), OnnxError> {
        save(self, proto, out)
    }
}

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
fn save(model: &OnnxModel, proto: &ModelProto, out: &Path) -> Result<(), OnnxError> {
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = parent.canonicalize().map_err(OnnxError::io(parent))?;
    let mut files = Outputs::default();
    for path in model.files() {
        let is_model = model.path.as_ref() == Some(&path);
        files.reads(
            if is_model {
                "the input"
            } else {
                "a data file of the input"
            },
            &path,
        )?;
    }
    files.writes("the model", out)?;
    // What is written may be the input's own data, where it lies in the same folder.
    let mut results = Outputs::default();
    results.writes("the model", out)?;
    let mut copied: BTreeSet<&str> = BTreeSet::new();
    for tensor in tensors(proto) {
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
        let (source, length) = source_folder.file(tensor, location)?;
        let place = folder.join(relative(location).map_err(unreachable)?);
        if folder != source_folder.path() {
            make_room(&place, &folder, tensor)?;
            results.writes("a data file of the model", &place)?;
            copy((&source, length), &place, tensor)?;
        }
    }
    let bytes = to_bytes(proto)?;
    remat_files::write(out, bytes).map_err(OnnxError::io(out))
}

/// Makes the folder of `place`, which must lie in the output's `folder`.
fn make_room(place: &Path, folder: &Path, tensor: &TensorProto) -> Result<(), OnnxError> {
    let parent = place.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(OnnxError::io(parent))?;
    if parent
        .canonicalize()
        .map_err(OnnxError::io(parent))?
        .starts_with(folder)
    {
        return Ok(());
    }
    Err(OnnxError::ExternalData {
        tensor: tensor.name.clone(),
        why: "its place leads out of the output's folder".to_owned(),
    })
}

/// Copies a data file of a known length to `place`, unless an equal file is there.
fn copy((source, length): (&Path, u64), place: &Path, tensor: &TensorProto) -> Result<(), OnnxError> {
    let error = |why: String| OnnxError::ExternalData {
        tensor: tensor.name.clone(),
        why,
    };
    let is_equal = || {
        if equal(source, place)? {
            Ok(())
        } else {
            Err(error(format!("`{}` exists and differs", place.display())))
        }
    };
    if place.symlink_metadata().is_ok() {
        return is_equal();
    }
    let mut input = File::open(source).map_err(OnnxError::io(source))?;
    let mut output = OutputFile::create(place).map_err(OnnxError::io(place))?;
    let copied = io::copy(&mut input, &mut output).map_err(OnnxError::io(place))?;
    if copied != length {
        let file = source.display();
        return Err(error(format!(
            "`{file}` had {length} bytes when the model was read and has {copied} now"
        )));
    }
    match output.commit_new() {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => is_equal(),
        other => other.map_err(OnnxError::io(place)),
    }
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
