//! A model file and the graph it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use onnx_protobuf::{Message, ModelProto, TensorProto};
use remat_ir::{ElementType, Graph};
use remat_operators::share_overwritten;

use crate::external::{self, Folder};
use crate::fixed::{check_fixed, fix_dims};
use crate::import::{Imported, import, known_values};
use crate::inline::inline_functions;
use crate::values::{Follows, MAX_ELEMENTS, Tensor};
use crate::{ImportOptions, LostMarks, OnnxError, presence, scope, tensor, wire};

/// A value that is known before the model runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownValue {
    /// Type of its elements.
    pub element: ElementType,
    /// Its shape.
    pub dims: Vec<usize>,
    /// Its elements, little-endian and packed as in `raw_data`.
    pub bytes: Vec<u8>,
}

/// An ONNX model with its main graph imported.
///
/// The file's own content is kept whole: exporting changes the list of nodes and adds to the list of value types, nothing
/// else.
#[derive(Debug)]
pub struct OnnxModel {
    pub(crate) proto: ModelProto,
    pub(crate) path: Option<PathBuf>,
    pub(crate) folder: Option<Folder>,
    pub(crate) graph: Graph,
    pub(crate) names: Vec<String>,
    pub(crate) captures: Vec<Vec<String>>,
    /// Names of the model that this one is a subgraph of.
    pub(crate) outer_names: BTreeSet<String>,
}

impl OnnxModel {
    /// Reads the model at `path`. Memory and time do not depend on the size of external weights, which are not read.
    ///
    /// Of its values those are followed that a runtime can follow when it loads the model: shapes that were made dynamic stay so.
    ///
    /// # Errors
    /// [`OnnxError`]; see there.
    pub fn open(path: &Path, options: &ImportOptions) -> Result<Self, OnnxError> {
        Self::read(path, Follows::AtLoad, options)
    }

    /// The same, with every value that is the same in all runs: shapes that were made dynamic are known.
    ///
    /// # Errors
    /// [`OnnxError`]; see there.
    pub fn open_for_run(path: &Path, options: &ImportOptions) -> Result<Self, OnnxError> {
        Self::read(path, Follows::All, options)
    }

    fn read(path: &Path, follows: Follows, options: &ImportOptions) -> Result<Self, OnnxError> {
        let bytes = read(path)?;
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        Self::build(&bytes, Some(folder), Some(path), follows, options)
    }

    /// Reads a model from memory, as [`OnnxModel::open_for_run`] does; `folder` is where its external data lies.
    ///
    /// Without a folder, external weights are not checked and the model can be exported but not saved.
    ///
    /// # Errors
    /// [`OnnxError`]; see there.
    pub fn from_bytes(bytes: &[u8], folder: Option<&Path>, options: &ImportOptions) -> Result<Self, OnnxError> {
        Self::build(
            bytes,
            folder.map(Folder::open).transpose()?,
            None,
            Follows::All,
            options,
        )
    }

    fn build(
        bytes: &[u8],
        folder: Option<Folder>,
        path: Option<&Path>,
        follows: Follows,
        options: &ImportOptions,
    ) -> Result<Self, OnnxError> {
        let proto = parse(bytes)?;
        check_fixed(&proto, options)?;
        Self::finish(proto, folder, path, follows, options)
    }

    /// A model that this program wrote, with what it changed in it: [`OnnxModel::export_proto`] gives one. Nothing is opened, so
    /// external weights are not checked.
    ///
    /// # Errors
    /// [`OnnxError`]; see there.
    pub fn from_proto(proto: ModelProto, options: &ImportOptions) -> Result<Self, OnnxError> {
        Self::finish(proto, None, None, Follows::AtLoad, options)
    }

    /// The model that this one becomes as `rewritten`, with the data files of this one.
    ///
    /// # Errors
    /// Those of [`OnnxModel::export_proto`] and [`OnnxModel::open_for_run`].
    pub fn rewritten(&self, rewritten: &Graph, options: &ImportOptions) -> Result<Self, OnnxError> {
        let proto = self.export_without_readers(rewritten)?;
        let folder = self.folder.as_ref().map(Folder::again);
        Self::finish(proto, folder, self.path.as_deref(), Follows::All, options)
    }

    pub(crate) fn finish(
        mut proto: ModelProto,
        folder: Option<Folder>,
        path: Option<&Path>,
        follows: Follows,
        options: &ImportOptions,
    ) -> Result<Self, OnnxError> {
        fix_dims(&mut proto, options);
        let Imported { graph, names, captures } = import(&proto, folder.as_ref(), follows, &options.of_fixed())?;
        Ok(Self {
            proto,
            path: path.map(Path::to_owned),
            folder,
            graph,
            names,
            captures,
            outer_names: BTreeSet::new(),
        })
    }

    /// The main graph, in reference order.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same model, with results that ONNX Runtime's kernels write over their operand in the storage of that, where they are the last to
    /// read it in every plan.
    #[must_use]
    pub fn with_kernels_in_place(mut self) -> Self {
        share_overwritten(&mut self.graph);
        self
    }

    /// The same model without the elements of its large weights, which no type, shape or known value needs: for models that are kept to be asked
    /// again. It must not be written.
    #[must_use]
    pub fn without_weights(mut self) -> Self {
        let weights = self.proto.graph.as_mut().map(|graph| &mut graph.initializer);
        for tensor in weights.into_iter().flatten().filter(|tensor| is_large(tensor)) {
            tensor.raw_data = Vec::new();
            tensor.float_data = Vec::new();
            tensor.double_data = Vec::new();
            tensor.int32_data = Vec::new();
            tensor.int64_data = Vec::new();
            tensor.uint64_data = Vec::new();
        }
        self
    }

    /// The file's content as it was read.
    #[must_use]
    pub fn proto(&self) -> &ModelProto {
        &self.proto
    }

    /// The file's content with every call of its own functions replaced by their nodes, as far as that is possible.
    #[must_use]
    pub fn inlined(&self) -> ModelProto {
        let mut proto = self.proto.clone();
        inline_functions(&mut proto);
        proto
    }

    /// How many of the nodes that a rewritten model states are missing.
    #[must_use]
    pub fn lost_marks(&self) -> Option<LostMarks> {
        LostMarks::of(&self.proto)
    }

    /// Every name of a value or node anywhere in the model, subgraphs and functions included, and the names the graph
    /// gives to unnamed nodes. New names must avoid them.
    #[must_use]
    pub fn reserved_names(&self) -> BTreeSet<&str> {
        let mut names = scope::all_names(&self.proto);
        names.extend(self.names.iter().map(String::as_str));
        names.extend(self.outer_names.iter().map(String::as_str));
        names
    }

    /// Every file that the model was read from and refers to: the model itself and the data files of external weights.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let data = self.data_locations().into_iter();
        let data =
            data.filter_map(|location| Some(self.folder.as_ref()?.path().join(external::relative(location).ok()?)));
        self.path.iter().cloned().chain(data).collect()
    }

    /// The data files of external weights as the model names them, relative to its folder.
    #[must_use]
    pub fn data_locations(&self) -> BTreeSet<&str> {
        let tensors = external::tensors(&self.proto).into_iter();
        tensors
            .filter_map(|tensor| Some(external::range(tensor).ok()?.location))
            .collect()
    }

    /// The values of the main graph that are known before the model runs, small initializers among them: what follows from constants
    /// and from shapes, if `options` settle those.
    ///
    /// # Errors
    /// [`OnnxError`]; see there.
    pub fn known_values(&self, options: &ImportOptions) -> Result<BTreeMap<String, KnownValue>, OnnxError> {
        let known = known_values(&self.proto, self.folder.as_ref(), &options.of_fixed())?;
        let value = |tensor: &Tensor| KnownValue {
            element: tensor.element,
            dims: tensor.dims.clone(),
            bytes: tensor.to_bytes(),
        };
        Ok(known.into_iter().map(|(name, tensor)| (name, value(&tensor))).collect())
    }

    /// The elements of a tensor of this model, little-endian and packed as in `raw_data`, from wherever the tensor keeps them. Values in
    /// other files are read piece by piece; those in the file are borrowed, unless they stand in a typed field.
    ///
    /// # Errors
    /// [`OnnxError::ExternalData`] if the values lie in a file that cannot be read or is too short, [`OnnxError::BadTensor`] for strings.
    pub fn values<'m>(&'m self, tensor: &'m TensorProto) -> Result<Box<dyn Read + 'm>, OnnxError> {
        tensor::reader(tensor, self.folder.as_ref())
    }
}

/// The message that a model file holds.
///
/// # Errors
/// [`OnnxError::NotOnnx`] for what is none.
pub(crate) fn parse(bytes: &[u8]) -> Result<ModelProto, OnnxError> {
    wire::scan(bytes)?;
    let parsed = ModelProto::parse_from_bytes(bytes);
    let mut proto = parsed.map_err(|error| OnnxError::NotOnnx {
        offset: 0,
        why: error.to_string(),
    })?;
    presence::keep_zeros(&mut proto);
    Ok(proto)
}

/// Whether a tensor has more elements than are ever looked at.
fn is_large(tensor: &TensorProto) -> bool {
    let dims = tensor
        .dims
        .iter()
        .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    dims.fold(1, usize::saturating_mul) > MAX_ELEMENTS
}

/// The bytes of a model file.
///
/// They are read, not mapped: where another process shortens a mapped file, the system ends this process. What is read is gone when the
/// model is parsed; until then a model holds its weights twice, those in external data apart.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, OnnxError> {
    let file = File::open(path).map_err(OnnxError::io(path))?;
    let metadata = file.metadata().map_err(OnnxError::io(path))?;
    if !metadata.is_file() {
        let why = Error::new(ErrorKind::InvalidInput, "not a regular file");
        return Err(OnnxError::io(path)(why));
    }
    wire::check_length(metadata.len())?;
    read_whole(file, metadata.len()).map_err(OnnxError::io(path))
}

/// The bytes of a file that had `length` of them when it was opened.
fn read_whole(file: impl Read, length: u64) -> std::io::Result<Vec<u8>> {
    let capacity = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(capacity)
        .map_err(|cause| Error::new(ErrorKind::OutOfMemory, cause))?;
    // No further than the length, should the file grow meanwhile.
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() != capacity {
        let why = format!(
            "it had {length} bytes and ends after {}: it changed while it was read",
            bytes.len()
        );
        return Err(Error::new(ErrorKind::UnexpectedEof, why));
    }
    Ok(bytes)
}
