//! Whether a model computes the members of a batch apart: [`IndependentBatch`] reads the model at several sizes of its open dimensions, and has
//! [`remat_fission::by_member`] prove it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use remat_files::shown;
use remat_fission::{Batch, BatchSample, NotByMember, NotIndependent, Reason, WhyMixed, by_member, fix};
use remat_ir::{Dim, Graph};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use thiserror::Error;

/// Members of the batch at which the model is read: for the first sizes of the other dimensions, and for the second ones.
const MEMBERS: [&[u64]; 2] = [&[1, 2, 3, 5], &[1, 3]];
/// The model is read with that many members, too, unless the caller has more.
const MANY_MEMBERS: u64 = 1_031;
/// Sizes of other dimensions are multiples of one of these, the first that the model takes: images that are halved again and again need the first, short
/// tables of places the last.
const SCALES: [u64; 3] = [32, 8, 1];
/// By which they are multiplied: each dimension has another one.
const FACTORS: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Why the members of a batch are not known to be independent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// The model cannot be read.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// No input leaves a dimension of this name open.
    #[error("no input has an open dimension `{}`{}", shown(.name), listed(.known))]
    UnknownDim {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No input leaves its first dimension open.
    #[error("no input has an open first dimension that could be the batch")]
    NoDim,
    /// They are not, or that is not proved.
    #[error(transparent)]
    Dependent(#[from] NotIndependent),
}

impl MembersError {
    /// The op that it is about.
    #[must_use]
    pub fn op(&self) -> Option<&str> {
        match self {
            Self::Dependent(NotIndependent::Op(refused)) => Some(&refused.op),
            _ => None,
        }
    }
}

fn listed(known: &[String]) -> String {
    match known {
        [] => "; all sizes are fixed".to_owned(),
        known => format!("; there are {}", shown(known.join(", "))),
    }
}

/// A proof that a model computes every member of a batch by itself, and where the batch is.
#[derive(Debug)]
pub struct IndependentBatch {
    /// Without its weights.
    model: OnnxModel,
    dim: String,
    batch: Batch,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl IndependentBatch {
    /// Reads the ONNX model at `path` and proves that it computes the members of the batch, the open dimension `dim`, apart; without
    /// a name, the first dimension of the first input that leaves its own open. That holds for as
    /// many members as there are in `ranges`, or about a thousand. Sizes of the other dimensions are chosen within these ranges, by name, the smallest and the
    /// largest; those without a range may have any size.
    ///
    /// # Errors
    /// [`MembersError`]; that the members are not independent, or may not be, names the op.
    pub fn open(path: &Path, dim: Option<&str>, ranges: &BTreeMap<String, (u64, u64)>) -> Result<Self, MembersError> {
        let options = ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        };
        let model = OnnxModel::open_for_run(path, &options)?.without_weights();
        let known = open_dims(model.graph());
        let first = first_dim(model.graph());
        let dim = dim.or(first.as_deref()).ok_or(MembersError::NoDim)?;
        if !known.iter().any(|name| name == dim) {
            let name = dim.to_owned();
            return Err(MembersError::UnknownDim { name, known });
        }
        let others: Vec<&String> = known.iter().filter(|name| *name != dim).collect();
        let mut first = None;
        for scale in SCALES {
            let found = samples(&model, dim, &others, scale, ranges).and_then(|samples| Ok(by_member(samples)?));
            match found {
                Ok(batch) => return Ok(Self::new(model, dim, batch)),
                Err(error) if is_of_sizes(&error) && !others.is_empty() => _ = first.get_or_insert(error),
                Err(error) => return Err(first.unwrap_or(error)),
            }
        }
        Err(first.unwrap_or(NotIndependent::Samples.into()))
    }

    fn new(model: OnnxModel, dim: &str, batch: Batch) -> Self {
        let graph = model.graph();
        let named = |tensors: &[remat_ir::TensorId]| {
            let names = tensors.iter().map(|&tensor| graph.tensors[tensor].name.clone());
            names.collect()
        };
        Self {
            dim: dim.to_owned(),
            batch,
            inputs: named(&graph.inputs),
            outputs: named(&graph.outputs),
            model,
        }
    }

    /// The name of the dimension that is the batch.
    #[must_use]
    pub fn dim(&self) -> &str {
        &self.dim
    }

    /// Every input by name, with the axis that is the batch.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.inputs
            .iter()
            .map(String::as_str)
            .zip(self.batch.inputs.iter().copied())
    }

    /// Every output by name, with the axis that is the batch; one without it is the same whatever the batch.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.outputs
            .iter()
            .map(String::as_str)
            .zip(self.batch.outputs.iter().copied())
    }

    /// The first op, by name and kind, that may round otherwise in one of these parts of the batch than in the whole, in
    /// ONNX Runtime on a CPU with up to `threads` threads within an op; none where every bit is the same. `dims` has a size of every open dimension.
    ///
    /// # Errors
    /// [`MembersError`] if the model cannot have these sizes.
    pub fn other_bits(
        &self,
        dims: &BTreeMap<String, u64>,
        parts: &[Range<u64>],
        threads: u32,
    ) -> Result<Option<(String, String)>, MembersError> {
        let mut graph = self.model.graph_with_integers(&sized(dims.clone()))?;
        fix(&mut graph);
        let members = dims.get(&self.dim).copied().unwrap_or(0);
        let found = parts
            .iter()
            .find_map(|part| self.batch.other_bits(&graph, members, part, threads));
        Ok(found.map(|op| (op.name.clone(), op.op_type.clone())))
    }
}

/// The dimensions that inputs leave open, each once.
fn open_dims(graph: &Graph) -> Vec<String> {
    let inputs = graph.inputs.iter().flat_map(|&input| graph.tensors[input].ty.dims());
    let mut names = Vec::new();
    for dim in inputs {
        if let Dim::Symbol(name) = dim
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

/// The first dimension of the first input that leaves it open.
fn first_dim(graph: &Graph) -> Option<String> {
    let firsts = graph.inputs.iter().map(|&input| graph.tensors[input].ty.dims().first());
    firsts.flatten().find_map(|dim| match dim {
        Dim::Symbol(name) => Some(name.clone()),
        _ => None,
    })
}

fn sized(dims: BTreeMap<String, u64>) -> ImportOptions {
    ImportOptions {
        dims,
        open_sizes: true,
        ..ImportOptions::default()
    }
}

/// The model at several sizes of the batch, for one or two choices of the other dimensions.
fn samples(
    model: &OnnxModel,
    dim: &str,
    others: &[&String],
    scale: u64,
    ranges: &BTreeMap<String, (u64, u64)>,
) -> Result<Vec<BatchSample>, MembersError> {
    let settings = if others.is_empty() { 1 } else { MEMBERS.len() };
    let mut samples = Vec::new();
    for (setting, members) in MEMBERS.into_iter().enumerate().take(settings) {
        let most = ranges.get(dim).map_or(0, |&(_, most)| most).max(MANY_MEMBERS);
        let many = (setting == 0).then_some(most);
        for members in members.iter().copied().chain(many) {
            let size = |(place, name): (usize, &&String)| {
                let factor = FACTORS[(place + setting) % FACTORS.len()];
                let (least, most) = ranges.get(*name).copied().unwrap_or((1, u64::MAX));
                ((*name).clone(), scale.saturating_mul(factor).min(most).max(least))
            };
            let mut dims: BTreeMap<String, u64> = others.iter().enumerate().map(size).collect();
            dims.insert(dim.to_owned(), members);
            samples.push(sample(model, &sized(dims), members, setting)?);
        }
    }
    Ok(samples)
}

fn sample(
    model: &OnnxModel,
    options: &ImportOptions,
    members: u64,
    setting: usize,
) -> Result<BatchSample, MembersError> {
    let graph = model.graph_with_integers(options)?;
    let mut elements = model.known_values(options)?;
    let known = graph.tensors.iter_enumerated();
    let known = known.filter_map(|(id, tensor)| Some((id, elements.remove(&tensor.name)?.bytes)));
    Ok(BatchSample {
        members,
        setting,
        known: known.collect(),
        graph,
    })
}

/// Whether an error may be about the sizes at which the model was read.
fn is_of_sizes(error: &MembersError) -> bool {
    match error {
        MembersError::Onnx(_) => true,
        MembersError::Dependent(NotIndependent::Op(NotByMember { why, .. })) => {
            matches!(
                why,
                WhyMixed::Shapes | WhyMixed::Extent | WhyMixed::Rule(Reason::Shapes)
            )
        }
        MembersError::Dependent(_) | MembersError::UnknownDim { .. } | MembersError::NoDim => false,
    }
}
