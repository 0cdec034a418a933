//! Weights of several models in one data file, laid out for processes that map it.
//!
//! ONNX Runtime maps each weight of a data file, and reads it where it lies: the system can drop such pages, and processes share them. What a
//! kernel makes of a weight when a session is loaded (a packed matrix) can lie in the file, too. The external data of the weight then has
//! entries `prepacked_N`, `KEY|OFFSET;LENGTH;FLAG`, with such a triple for each buffer. The runtime packs the weight again when it loads the
//! file, one weight at a time, and takes the bytes of the file if they are the same. So the plain weight has to be there.
//!
//! What runs read comes first in the file, in the order of its first use by the nodes; then what is read only while a session is
//! loaded; then what no session of the first model reads. Equal bytes are there once.

mod pieces;

use std::io::Read;
use std::path::Path;

use onnx_protobuf::tensor_proto::DataLocation;
use onnx_protobuf::{GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use remat_ir::ElementType;
use rustc_hash::{FxHashMap, FxHashSet};

use self::pieces::{Phase, Pieces, Source};
use crate::attributes::{subgraphs, subgraphs_mut};
use crate::external::{Folder, is_external, range};
use crate::scope::free_names;
use crate::{OnnxError, model, save, tensor};

/// Smaller weights stay in the model.
const LEAST_BYTES: u64 = 1024;
/// What the names of entries begin with that state packed copies.
const PACKED: &str = "prepacked_";

/// A model whose weights are to be laid out.
#[derive(Clone, Copy, Debug)]
pub struct LayOut<'a> {
    /// The model as it is.
    pub source: &'a Path,
    /// Where it goes: into the folder of the data file.
    pub out: &'a Path,
    /// Whether the nodes that run first stand last.
    pub is_reversed: bool,
    /// Whether it lies there for the case that the others cannot be used: its weights come last.
    pub is_spare: bool,
}

/// What became of the weights of a model, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaidOut {
    /// Packed copies, which runs read.
    pub packed_bytes: u64,
    /// Plain weights that runs read.
    pub plain_bytes: u64,
    /// Plain weights that are read only while a session is loaded.
    pub loading_bytes: u64,
    /// The largest of those.
    pub largest_loading_bytes: u64,
    /// Weights that stay in the model.
    pub inline_bytes: u64,
    /// Weights, those of subgraphs among them.
    pub weights: usize,
    /// Nodes, those of subgraphs among them.
    pub nodes: usize,
}

/// Writes models to new places, with their weights, those of subgraphs too, in the data file `data`. The file appears whole or not at all, and before
/// the models.
///
/// # Errors
/// [`OnnxError::Io`] if a file cannot be read or written, [`OnnxError::NotOnnx`] for what is no model, [`OnnxError::BadTensor`] and
/// [`OnnxError::ExternalData`] for weights that are not what a model says of them.
pub fn lay_out(models: &[LayOut<'_>], data: &Path) -> Result<Vec<LaidOut>, OnnxError> {
    let mut pieces = Pieces::default();
    let opened = models
        .iter()
        .map(|wanted| {
            let mut proto = model::parse(&model::read(wanted.source)?)?;
            let folder = Folder::open(wanted.source.parent().unwrap_or(Path::new("")))?;
            let moved = collect(&mut proto, &folder, *wanted, &mut pieces)?;
            Ok((proto, moved))
        })
        .collect::<Result<Vec<(ModelProto, Vec<Moved>)>, OnnxError>>()?;
    let places = pieces.write(data)?;
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let written = opened.into_iter().zip(models).map(|((mut proto, moved), wanted)| {
        let mut found = LaidOut::default();
        if let Some(graph) = proto.graph.as_mut() {
            found = report(graph, &moved, &pieces)?;
            let mut all = moved.iter();
            each_weight(graph, &mut 0, &mut |weight, _| {
                if let Some((moved, plain)) = all.next().and_then(|moved| Some((moved, moved.plain?))) {
                    name_places(weight, (moved, plain), &name, (&pieces, &places));
                }
                Ok(())
            })?;
        }
        let bytes = save::to_bytes(&proto)?;
        remat_files::write(wanted.out, bytes).map_err(OnnxError::io(wanted.out))?;
        Ok(found)
    });
    written.collect()
}

/// What becomes of a weight.
#[derive(Default)]
struct Moved {
    /// The piece of its plain bytes; none where it stays in the model.
    plain: Option<usize>,
    /// Of each packed copy the key, and of each buffer its piece and flag.
    packed: Vec<(String, Vec<(usize, String)>)>,
    /// Whether runs read the plain bytes.
    is_read_plain: bool,
}

/// Takes the bytes of large weights out of a model.
fn collect(
    proto: &mut ModelProto,
    folder: &Folder,
    LayOut {
        is_reversed, is_spare, ..
    }: LayOut<'_>,
    pieces: &mut Pieces,
) -> Result<Vec<Moved>, OnnxError> {
    let mut all = Vec::new();
    let Some(graph) = proto.graph.as_mut() else {
        return Ok(all);
    };
    let mut positions = 0;
    each_weight(graph, &mut positions, &mut |weight, (first, last, readers)| {
        let first = if is_reversed { usize::MAX - last } else { first };
        let moved = match bytes_of(weight)?.filter(|&bytes| bytes >= LEAST_BYTES) {
            None => Moved::default(),
            Some(bytes) => {
                let mut packed = Vec::new();
                for entry in weight
                    .external_data
                    .iter()
                    .filter(|entry| entry.key.starts_with(PACKED))
                {
                    packed.push(packed_copy(weight, &entry.value, folder, |source, bytes| {
                        pieces.add(source, bytes, (Phase::of(true, is_spare), first))
                    })?);
                }
                let is_read_plain = readers > packed.len();
                let rank = (Phase::of(is_read_plain, is_spare), first);
                Moved {
                    plain: Some(pieces.add(plain(weight, bytes, folder)?, bytes, rank)?),
                    packed,
                    is_read_plain,
                }
            }
        };
        all.push(moved);
        Ok(())
    })?;
    Ok(all)
}

/// Every weight of a graph and of its subgraphs, always in the same order, with the positions of the first and the last node that reads it and
/// the number of nodes that do. A node that has subgraphs reads what they read of values around them.
fn each_weight(
    graph: &mut GraphProto,
    positions: &mut usize,
    visit: &mut impl FnMut(&mut TensorProto, (usize, usize, usize)) -> Result<(), OnnxError>,
) -> Result<(), OnnxError> {
    let start = *positions;
    let mut uses: FxHashMap<&str, (usize, usize, usize)> = FxHashMap::default();
    for (position, node) in graph.node.iter().enumerate() {
        let captured = subgraphs(node).flat_map(free_names);
        for name in node.input.iter().map(String::as_str).chain(captured) {
            let of_it = uses.entry(name).or_insert((start + position, 0, 0));
            (of_it.1, of_it.2) = (start + position, of_it.2 + 1);
        }
    }
    *positions += graph.node.len();
    for weight in &mut graph.initializer {
        let of_it = uses.get(weight.name.as_str()).copied().unwrap_or((start, start, 0));
        visit(weight, of_it)?;
    }
    let inner = graph.node.iter_mut().flat_map(subgraphs_mut);
    for subgraph in inner {
        each_weight(subgraph, positions, visit)?;
    }
    Ok(())
}

/// Where the plain bytes of a weight come from; those in the model are taken out of it.
fn plain(weight: &mut TensorProto, bytes: u64, folder: &Folder) -> Result<Source, OnnxError> {
    if is_external(weight) {
        folder.check(weight, bytes)?;
        let range = range(weight)?;
        return Ok(Source::File(folder.file(weight, range.location)?.0, range.offset));
    }
    if !weight.raw_data.is_empty() {
        return Ok(Source::Memory(std::mem::take(&mut weight.raw_data)));
    }
    let mut content = Vec::new();
    let read = tensor::reader(weight, None)?.read_to_end(&mut content);
    read.map_err(OnnxError::io("a weight"))?;
    Ok(Source::Memory(content))
}

/// The bytes of a weight; none where its elements are strings or parts of bytes.
fn bytes_of(weight: &TensorProto) -> Result<Option<u64>, OnnxError> {
    let ty = tensor::dense_type(weight, "a weight")?;
    let is_plain = ty
        .element()
        .is_some_and(|element| element != ElementType::String && element.bits().is_multiple_of(8));
    Ok(ty.bytes().ok().flatten().filter(|_| is_plain))
}

/// Key, and pieces with flags, of a packed copy.
fn packed_copy(
    weight: &TensorProto,
    text: &str,
    folder: &Folder,
    mut add: impl FnMut(Source, u64) -> Result<usize, OnnxError>,
) -> Result<(String, Vec<(usize, String)>), OnnxError> {
    let bad = |why: String| OnnxError::ExternalData {
        tensor: weight.name.clone(),
        why,
    };
    let (file, length) = folder.file(weight, range(weight)?.location)?;
    let mut parts = text.split('|');
    let key = parts.next().unwrap_or_default().to_owned();
    let mut buffers = Vec::new();
    for part in parts {
        let numbers: Vec<&str> = part.split(';').collect();
        let &[offset, bytes, flag] = numbers.as_slice() else {
            return Err(bad(format!("`{part}` is not the place of a packed copy")));
        };
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| bad(format!("`{text}` is not a number of bytes")))
        };
        let (offset, bytes) = (number(offset)?, number(bytes)?);
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(bad(format!(
                "a packed copy of {bytes} bytes at offset {offset} exceeds the file of {length} bytes"
            )));
        }
        buffers.push((add(Source::File(file.clone(), offset), bytes)?, flag.to_owned()));
    }
    Ok((key, buffers))
}

/// States where the bytes of a weight lie now.
fn name_places(
    weight: &mut TensorProto,
    (moved, plain): (&Moved, usize),
    data: &str,
    (pieces, places): (&Pieces, &[u64]),
) {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: key.to_owned(),
        value,
        ..StringStringEntryProto::default()
    };
    let mut entries = vec![
        entry("location", data.to_owned()),
        entry("offset", places[plain].to_string()),
        entry("length", pieces.bytes(plain).to_string()),
    ];
    for (index, (key, buffers)) in moved.packed.iter().enumerate() {
        let buffers = buffers
            .iter()
            .map(|&(piece, ref flag)| format!("|{};{};{flag}", places[piece], pieces.bytes(piece)));
        entries.push(entry(
            &format!("{PACKED}{index}"),
            key.clone() + &buffers.collect::<String>(),
        ));
    }
    weight.external_data = entries;
    weight.data_location = DataLocation::EXTERNAL.into();
    // What stood in typed fields is in the file now.
    weight.float_data.clear();
    weight.double_data.clear();
    weight.int32_data.clear();
    weight.int64_data.clear();
    weight.uint64_data.clear();
}

/// Where the bytes of the weights of a model lie.
fn report(graph: &mut GraphProto, moved: &[Moved], pieces: &Pieces) -> Result<LaidOut, OnnxError> {
    let mut found = LaidOut {
        weights: moved.len(),
        ..LaidOut::default()
    };
    let mut seen = FxHashSet::default();
    let mut all = moved.iter();
    each_weight(graph, &mut found.nodes, &mut |weight, _| {
        let Some(moved) = all.next() else { return Ok(()) };
        for &(piece, _) in moved.packed.iter().flat_map(|(_, buffers)| buffers) {
            found.packed_bytes += if seen.insert(piece) { pieces.bytes(piece) } else { 0 };
        }
        match moved.plain {
            None => found.inline_bytes += bytes_of(weight)?.unwrap_or(0),
            Some(plain) if !seen.insert(plain) => {}
            Some(plain) if moved.is_read_plain => found.plain_bytes += pieces.bytes(plain),
            Some(plain) => {
                let bytes = pieces.bytes(plain);
                found.loading_bytes += bytes;
                found.largest_loading_bytes = found.largest_loading_bytes.max(bytes);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
