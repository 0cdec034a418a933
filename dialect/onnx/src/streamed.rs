//! Normalizations in two passes ([`STREAMED_DOMAIN`]) as nodes of ONNX.
//!
//! What ops of this domain find stays in two values of `N x C x 1 x 1`, a mean and squares or a factor and a summand: only where an op of
//! another domain reads both, they stand side by side in one.
//!
//! | op | nodes |
//! |---|---|
//! | `Moments` | `ReduceMean`, `Sub`, `ReduceSumSquare`: the difference may take the place of the part, where that is not read again |
//! | `CombineMoments` | means relative to the first one, weighted; squares with what lies between the means added |
//! | `Normalizer` | `f = scale * factor / sqrt(variance + epsilon)`, `o = bias * factor + summand - mean * f`: the factor that is multiplied by is the one that is subtracted with, so that its rounding does not matter where means are large |
//! | `Normalize` | `Mul`, `Add`: in place |
//! | `CombineMeans` | `Mean`; with unequal counts a `Sum` of products |
//!
//! Statistics of halves are kept in single precision, and halves multiplied there: the squares of a part would not fit, nor would the factor of a
//! small variance.

mod nodes;
mod normalize;
mod sums;

use std::collections::BTreeSet;

use onnx_protobuf::{GraphProto, NodeProto, TensorProto};
use remat_ir::{Attribute, ElementType, Graph, Op, TensorId};
use remat_operators::STREAMED_DOMAIN;
use rustc_hash::{FxHashMap, FxHashSet};

use self::nodes::Nodes;
use crate::tiles::Tiles;
use crate::{OnnxError, proto_type};

/// The first version of ONNX's operators that the nodes are written for.
const FIRST_VERSION: u64 = 11;

/// The ops of normalizations in two passes in a graph that is written.
pub(crate) struct Streamed<'a> {
    graph: &'a Graph,
    /// Version of ONNX's operators, where the model imports them.
    version: Option<u64>,
    /// Names of nodes and values, none of which is used again.
    taken: FxHashSet<String>,
    /// Results that something else reads, too: both values side by side.
    side_by_side: FxHashSet<TensorId>,
    /// The two values that a tensor holds, for operands of so many axes.
    halves: FxHashMap<(TensorId, usize), [String; 2]>,
    constants: Vec<TensorProto>,
}

impl<'a> Streamed<'a> {
    /// Nothing, unless the graph has such ops. `reserved` are the names that the model has.
    pub(crate) fn new(graph: &'a Graph, version: Option<u64>, reserved: &BTreeSet<&str>) -> Self {
        let mut streamed = Self {
            graph,
            version,
            taken: FxHashSet::default(),
            side_by_side: FxHashSet::default(),
            halves: FxHashMap::default(),
            constants: Vec::new(),
        };
        if graph.ops.iter().any(is_streamed) {
            let tensors = graph.tensors.iter().map(|tensor| tensor.name.as_str());
            let ops = graph.ops.iter().map(|op| op.name.as_str());
            let names = reserved.iter().copied().chain(tensors).chain(ops);
            streamed.taken = names.map(str::to_owned).collect();
            let others = graph.ops.iter().filter(|op| op.kind.is_run() && !is_streamed(op));
            streamed.side_by_side = others
                .flat_map(Op::reads)
                .chain(graph.outputs.iter().copied())
                .collect();
        }
        streamed
    }

    /// The nodes of an op of this domain, the last of them with the name of the op if it gives a value of its own.
    ///
    /// # Errors
    /// [`OnnxError::Unsupported`] for models without ONNX's operators of version 11, and for ops that do not keep the rules of the domain.
    pub(crate) fn nodes(&mut self, op: &'a Op, tiles: &Tiles<'a>) -> Result<Vec<NodeProto>, OnnxError> {
        let version = self.version.filter(|&version| version >= FIRST_VERSION);
        let version = version.ok_or_else(|| {
            let have = self
                .version
                .map_or_else(|| "none".to_owned(), |version| version.to_string());
            unsupported(
                op,
                &format!("sums that are split need version {FIRST_VERSION} of ONNX's operators, the model has {have}"),
            )
        })?;
        let mut nodes = Nodes::new(self, tiles, op, version)?;
        match op.op_type.as_str() {
            "Moments" => nodes.moments()?,
            "CombineMoments" => nodes.combine_moments()?,
            "Normalizer" => nodes.normalizer()?,
            "Normalize" => nodes.normalize()?,
            "CombineMeans" => nodes.combine_means()?,
            other => {
                return Err(unsupported(
                    op,
                    &format!("the domain {STREAMED_DOMAIN} has no operator `{other}`"),
                ));
            }
        }
        Ok(nodes.written)
    }

    /// Adds the constants that the nodes read.
    pub(crate) fn finish(self, main: &mut GraphProto) {
        main.initializer.extend(self.constants);
    }

    /// `stem__suffix`, or the first of `stem__suffix_1`, `stem__suffix_2`, … that is free.
    fn claim(&mut self, stem: &str, suffix: &str) -> String {
        let plain = format!("{stem}__{suffix}");
        let numbered = (1usize..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| !self.taken.contains(name)).unwrap_or(plain);
        self.taken.insert(name.clone());
        name
    }

    /// The name of a constant with these elements, which several ops may share.
    fn constant(&mut self, stem: &str, suffix: &str, element: ElementType, dims: &[i64], raw_data: Vec<u8>) -> String {
        let data_type = proto_type::code(element);
        let is_same =
            |have: &&TensorProto| (have.data_type, &have.dims[..], &have.raw_data) == (data_type, dims, &raw_data);
        if let Some(same) = self.constants.iter().find(is_same) {
            return same.name.clone();
        }
        let name = self.claim(stem, suffix);
        self.constants.push(TensorProto {
            name: name.clone(),
            data_type,
            dims: dims.to_vec(),
            raw_data,
            ..TensorProto::default()
        });
        name
    }
}

/// Whether fission made the op for a normalization in two passes.
pub(crate) fn is_streamed(op: &Op) -> bool {
    op.source.is_none() && op.domain == STREAMED_DOMAIN && !op.parts.is_empty()
}

fn unsupported(op: &Op, what: &str) -> OnnxError {
    OnnxError::Unsupported {
        name: op.name.clone(),
        what: what.to_owned(),
    }
}

/// The counts of an op that puts parts together, one for each operand.
fn counts(op: &Op) -> Result<Vec<i64>, OnnxError> {
    let counts = op
        .attributes
        .get("counts")
        .and_then(Attribute::as_ints)
        .unwrap_or_default();
    let is_right = !counts.is_empty() && counts.len() == op.inputs.len() && counts.iter().all(|&count| count > 0);
    is_right
        .then(|| counts.to_vec())
        .ok_or_else(|| unsupported(op, "its counts are not one above zero for each operand"))
}
