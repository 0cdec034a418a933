//! Order anchors: small leaves that fix the order, and that keep what must not be fused from being fused.
//!
//! A `Size` node looks at no element and makes eight bytes. (`Shape` would do, were it not folded where the shape is known, and
//! moved in front of a Transpose.)

use remat_ir::{ElementType, Graph, OpKind, TensorId, ValueType};
use remat_onnx::ANCHOR_SUFFIX;
use remat_onnx::proto::NodeProto;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build;
use crate::names::Names;
use crate::schedule;

/// A node that reads `value` without looking at an element, whose own result is called `name`; `None` for values without such a
/// node in ONNX Runtime.
pub(crate) fn anchor(value: &str, ty: &ValueType, name: &str) -> Option<NodeProto> {
    let op_type = match ty {
        ValueType::Tensor { element, .. } => op_type_for(*element)?,
        ValueType::Sequence(_) => "SequenceLength",
        ValueType::SparseTensor { .. } | ValueType::Optional(_) | ValueType::Map { .. } | ValueType::Unknown => {
            return None;
        }
    };
    Some(build::node(op_type, &[value], name, Vec::new()))
}

/// The op that ONNX Runtime 1.31 has a kernel of for tensors of this type (tried out).
fn op_type_for(element: ElementType) -> Option<&'static str> {
    use ElementType as T;
    match element {
        // `Size` has no kernel for it.
        T::Bfloat16 => Some("Shape"),
        T::Complex64 | T::Complex128 | T::Float8E4M3Fn | T::Float8E4M3Fnuz | T::Float8E5M2 | T::Float8E5M2Fnuz => None,
        T::Uint4 | T::Int4 | T::Float4E2M1 | T::Float8E8M0 | T::Uint2 | T::Int2 => None,
        T::Float16 | T::Float32 | T::Float64 | T::Bool | T::String => Some("Size"),
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Uint8 | T::Uint16 | T::Uint32 | T::Uint64 => Some("Size"),
    }
}

/// Values that have fewer readers than the value of the model that they stand for, or are no graph output where that is one. What
/// could not be fused then could be now.
pub(crate) fn with_fewer_readers<'g>(model: &'g Graph, rewritten: &'g Graph) -> FxHashSet<&'g str> {
    let count = |graph: &'g Graph| {
        let mut readers: FxHashMap<&'g str, usize> = FxHashMap::default();
        let ops = graph.ops.iter().filter(|op| op.kind.is_run());
        for tensor in ops.flat_map(remat_ir::Op::reads) {
            *readers.entry(&graph.tensors[tensor].name).or_default() += 1;
        }
        // A graph output counts as read by more than any pattern allows.
        for &tensor in &graph.outputs {
            *readers.entry(&graph.tensors[tensor].name).or_default() += 1_000;
        }
        readers
    };
    let (before, after) = (count(model), count(rewritten));
    let name = |tensor: TensorId| rewritten.tensors[tensor].name.as_str();
    let mut fewer = FxHashSet::default();
    for op in rewritten.ops.iter().filter(|op| op.kind.is_run()) {
        let first_run = match op.kind {
            OpKind::Recompute { of } => &rewritten.ops[of],
            _ => op,
        };
        for (result, original) in op.outputs.iter().zip(&first_run.outputs) {
            let (Some(result), Some(original)) = (*result, *original) else {
                continue;
            };
            let readers = |counts: &FxHashMap<&str, usize>, name| counts.get(name).copied().unwrap_or(0);
            if readers(&after, name(result)) < readers(&before, name(original)) {
                fewer.insert(name(result));
            }
        }
    }
    fewer
}

/// Nodes in the order of a plan, with what is needed to append order anchors.
pub(crate) struct Arrangement<'a> {
    /// The true types of all values.
    pub(crate) types: &'a FxHashMap<String, ValueType>,
    /// Values that get an anchor whatever the order is.
    pub(crate) guarded: &'a FxHashSet<String>,
    /// Values that get no anchor for the sake of the order.
    pub(crate) blocked: &'a FxHashSet<String>,
    /// Values that nodes make in blocks.
    pub(crate) in_blocks: &'a FxHashSet<String>,
    /// Values of which the runtime makes a copy without blocks, where they are not in `blocked`.
    pub(crate) copied: &'a FxHashSet<String>,
}

impl Arrangement<'_> {
    /// The nodes in the order of the plan and anchors after them, such that a depth-first order runs the nodes as they stand.
    /// Returns how many anchors there are.
    pub(crate) fn arrange(&self, nodes: Vec<NodeProto>, names: &mut Names) -> (Vec<NodeProto>, usize) {
        let mut anchors = self.guards(&nodes, names);
        for (maker, value) in self.unordered_copies(&nodes) {
            if anchors[maker].is_empty() {
                anchors[maker].extend(self.anchor(value, names));
            }
        }
        let serves = |output: &&String| self.is_readable(output) && !self.blocked.contains(*output);
        let is_readable = |node: &NodeProto| node.output.iter().any(|output| serves(&output));
        let ends: Vec<bool> = anchors.iter().map(|anchors| !anchors.is_empty()).collect();
        let unreadable: Vec<bool> = nodes.iter().map(|node| !is_readable(node)).collect();
        for leaf in schedule::leaves(&sources(&nodes), &ends, &unreadable) {
            if anchors[leaf].is_empty() {
                let output = nodes[leaf].output.iter().find(serves);
                anchors[leaf].extend(output.and_then(|output| self.anchor(output, names)));
            }
        }
        let count = anchors.iter().map(Vec::len).sum();
        let mut arranged = nodes;
        arranged.extend(anchors.into_iter().rev().flatten());
        (arranged, count)
    }

    /// Values whose copies would be made in an order that is another one each time that the runtime loads the file, each with the node that makes it: a
    /// node needs several of them, and what copies them is numbered by addresses in memory. All but the last one are copied once they are made.
    ///
    /// Source: ONNX Runtime, `core/optimizer/nchwc_transformer.cc`, `NchwcTransformerImpl::Finalize`.
    fn unordered_copies<'n>(&self, nodes: &'n [NodeProto]) -> Vec<(usize, &'n str)> {
        let is_made_in_blocks = |node: &NodeProto| node.output.iter().any(|output| self.in_blocks.contains(output));
        let mut copies: FxHashMap<&str, usize> = FxHashMap::default();
        let mut found = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            if !is_made_in_blocks(node) {
                let mut read: Vec<(usize, &str)> = reads(node)
                    .filter_map(|name| copies.remove_entry(name))
                    .map(|(name, maker)| (maker, name))
                    .collect();
                read.sort_unstable();
                read.pop();
                found.extend(read);
            }
            let is_copied = |output: &&String| self.copied.contains(*output) && !self.blocked.contains(*output);
            let copied = node.output.iter().filter(is_copied);
            copies.extend(copied.map(|output| (output.as_str(), place)));
        }
        found
    }

    /// The nodes as they stand, each followed by the anchors of guarded values, and at the end, where a depth-first order begins, those of copies
    /// that would be made in any order. Returns how many anchors there are.
    pub(crate) fn guard(&self, nodes: Vec<NodeProto>, names: &mut Names) -> (Vec<NodeProto>, usize) {
        let mut anchors = self.guards(&nodes, names);
        let of_copies: Vec<NodeProto> = self
            .unordered_copies(&nodes)
            .into_iter()
            .filter_map(|(maker, value)| anchors[maker].pop().or_else(|| self.anchor(value, names)))
            .collect();
        let count = of_copies.len() + anchors.iter().map(Vec::len).sum::<usize>();
        let followed = nodes.into_iter().zip(anchors);
        let guarded = followed.flat_map(|(node, anchors)| std::iter::once(node).chain(anchors));
        (guarded.chain(of_copies.into_iter().rev()).collect(), count)
    }

    /// The anchors of guarded values, by the node that makes the value.
    fn guards(&self, nodes: &[NodeProto], names: &mut Names) -> Vec<Vec<NodeProto>> {
        let mut anchors = Vec::with_capacity(nodes.len());
        for node in nodes {
            let guarded = node.output.iter().filter(|output| self.guarded.contains(*output));
            anchors.push(guarded.filter_map(|output| self.anchor(output, names)).collect());
        }
        anchors
    }

    fn is_readable(&self, value: &str) -> bool {
        let ty = self.types.get(value);
        ty.is_some_and(|ty| anchor(value, ty, "").is_some())
    }

    fn anchor(&self, value: &str, names: &mut Names) -> Option<NodeProto> {
        let ty = self.types.get(value).filter(|_| self.is_readable(value))?;
        anchor(value, ty, &names.fresh(&format!("{value}{ANCHOR_SUFFIX}")))
    }
}

/// By node the nodes that it reads from, sorted.
fn sources(nodes: &[NodeProto]) -> Vec<Vec<usize>> {
    let outputs = |(index, node): (usize, &'_ NodeProto)| -> Vec<(String, usize)> {
        let named = node.output.iter().filter(|output| !output.is_empty());
        named.map(|output| (output.clone(), index)).collect()
    };
    let producers: FxHashMap<String, usize> = nodes.iter().enumerate().flat_map(outputs).collect();
    let of = |node: &NodeProto| {
        let mut sources: Vec<usize> = reads(node).filter_map(|name| producers.get(name).copied()).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    };
    nodes.iter().map(of).collect()
}

/// The values that a node and its subgraphs read.
fn reads(node: &NodeProto) -> impl Iterator<Item = &str> {
    let operands = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
    operands.chain(remat_onnx::captures(node))
}
