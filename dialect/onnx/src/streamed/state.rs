//! What is known of all that is written of what runs in two passes: names, constants, and which values a tensor holds.

use std::collections::BTreeSet;

use onnx_protobuf::{GraphProto, TensorProto};
use remat_ir::{Attribute, ElementType, Graph, Op, TensorId};
use remat_operators::STREAMED_DOMAIN;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{OnnxError, proto_type};

/// The ops of normalizations in two passes in a graph that is written.
pub(crate) struct Streamed<'a> {
    pub(super) graph: &'a Graph,
    /// Version of ONNX's operators, where the model imports them.
    pub(super) version: Option<u64>,
    /// Names of nodes and values, none of which is used again.
    taken: FxHashSet<String>,
    /// Results that something else reads, too: both values side by side.
    pub(super) side_by_side: FxHashSet<TensorId>,
    /// The two values that a tensor holds, for operands of so many axes.
    pub(super) halves: FxHashMap<(TensorId, usize), [String; 2]>,
    /// The values that a tensor holds: maximum and sum of exponentials, and what these weigh; or the best, and their places.
    pub(super) kept: FxHashMap<TensorId, Vec<String>>,
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
            kept: FxHashMap::default(),
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

    /// Adds the constants that the nodes read.
    pub(crate) fn finish(self, main: &mut GraphProto) {
        main.initializer.extend(self.constants);
    }

    /// `stem__suffix`, or the first of `stem__suffix_1`, `stem__suffix_2`, … that is free.
    pub(super) fn claim(&mut self, stem: &str, suffix: &str) -> String {
        let plain = format!("{stem}__{suffix}");
        let numbered = (1usize..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| !self.taken.contains(name)).unwrap_or(plain);
        self.taken.insert(name.clone());
        name
    }

    /// The name of a constant with these elements, which several ops may share.
    pub(super) fn constant(
        &mut self,
        stem: &str,
        suffix: &str,
        element: ElementType,
        dims: &[i64],
        raw_data: Vec<u8>,
    ) -> String {
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

pub(super) fn unsupported(op: &Op, what: &str) -> OnnxError {
    OnnxError::Unsupported {
        name: op.name.clone(),
        what: what.to_owned(),
    }
}

/// The counts of an op that puts parts together, one for each operand.
pub(super) fn counts(op: &Op) -> Result<Vec<i64>, OnnxError> {
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
