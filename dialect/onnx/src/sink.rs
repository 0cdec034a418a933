//! Readers for results that a rewritten graph leaves unread.
//!
//! ONNX has no op that ends the life of a value. ONNX Runtime releases a buffer after its last reader, and one without a reader
//! only when the run ends (observed in 1.31.1, with buffer reuse on and off). If a plan frees a result that no node reads (one of
//! several results of a copied node, for instance), its memory would stay. So such results get a reader: a `Shape` node,
//! which touches no element and takes a few bytes; a `SequenceLength` node for sequences.

use onnx_protobuf::NodeProto;
use remat_ir::{Graph, Op, TensorId, ValueType};
use typed_index_collections::TiVec;

/// What an unread result is called after, beside the name of the value.
const SUFFIX: &str = "__sink";

/// Which values a graph reads or returns.
pub(crate) struct Readers {
    read: TiVec<TensorId, bool>,
}

impl Readers {
    /// Looks through all ops; a `dealloc` does not count as a reader.
    pub(crate) fn of(graph: &Graph) -> Self {
        let mut read: TiVec<TensorId, bool> = TiVec::from(vec![false; graph.tensors.len()]);
        let ops = graph.ops.iter().filter(|op| op.kind.is_run());
        for tensor in ops.flat_map(Op::reads).chain(graph.outputs.iter().copied()) {
            read[tensor] = true;
        }
        Self { read }
    }

    pub(crate) fn has(&self, tensor: TensorId) -> bool {
        self.read[tensor]
    }
}

/// A node that reads `value`, whose own result is called `name`; `None` for values without such a node.
pub(crate) fn sink(value: &str, ty: &ValueType, name: &str) -> Option<NodeProto> {
    let op_type = match ty {
        ValueType::Tensor { .. } => "Shape",
        ValueType::Sequence(_) => "SequenceLength",
        ValueType::SparseTensor { .. } | ValueType::Optional(_) | ValueType::Map { .. } | ValueType::Unknown => {
            return None;
        }
    };
    Some(NodeProto {
        name: name.to_owned(),
        op_type: op_type.to_owned(),
        input: vec![value.to_owned()],
        output: vec![name.to_owned()],
        ..NodeProto::default()
    })
}

/// `value__sink`, or the first of `value__sink_1`, `value__sink_2`, … that is free.
pub(crate) fn name(value: &str, mut is_free: impl FnMut(&str) -> bool) -> String {
    let plain = format!("{value}{SUFFIX}");
    let numbered = (1usize..).map(|suffix| format!("{plain}_{suffix}"));
    let mut candidates = std::iter::once(plain.clone()).chain(numbered);
    candidates.find(|candidate| is_free(candidate)).unwrap_or(plain)
}
