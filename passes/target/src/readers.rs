//! Small readers: leaves that fix the order, and that keep what must not be fused from being fused.
//!
//! A `Size` node looks at no element and makes eight bytes. (`Shape` would do, were it not folded where the shape is known, and
//! moved in front of a Transpose.)

use remat_ir::{Graph, OpKind, TensorId, ValueType};
use remat_onnx::proto::NodeProto;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::names::Names;
use crate::schedule;

/// What is appended to the name of the value that a reader reads.
const SUFFIX: &str = "__read";

/// Whether the node looks at no element of what it reads, and makes a few bytes.
pub(crate) fn makes_a_few_bytes(node: &NodeProto) -> bool {
    matches!(node.op_type.as_str(), "Shape" | "Size" | "SequenceLength") && node.domain.is_empty()
}

/// Whether the node is a reader: it makes a few bytes that nobody reads.
fn is_reader(node: &NodeProto, is_read: impl Fn(&str) -> bool) -> bool {
    makes_a_few_bytes(node) && node.output.iter().all(|output| !is_read(output))
}

/// Values that have fewer readers than the value of the model that they stand for, or are no graph output where that is one. What
/// could not be fused then could be now.
pub(crate) fn with_fewer_readers<'g>(model: &'g Graph, rewritten: &'g Graph) -> FxHashSet<&'g str> {
    let count = |graph: &'g Graph| {
        let mut readers: FxHashMap<&'g str, usize> = FxHashMap::default();
        let ops = graph.ops.iter().filter(|op| op.kind != OpKind::Dealloc);
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
    for op in rewritten.ops.iter().filter(|op| op.kind != OpKind::Dealloc) {
        let first_run = match op.kind {
            OpKind::Recompute { of } => &rewritten.ops[of],
            OpKind::Compute | OpKind::Dealloc => op,
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

/// Nodes in the order of a plan, with what is needed to append readers.
pub(crate) struct Arrangement<'a> {
    /// The true types of all values.
    pub(crate) types: &'a FxHashMap<String, ValueType>,
    /// Values that get a reader whatever the order is.
    pub(crate) guarded: &'a FxHashSet<String>,
    /// Names of the graph's outputs.
    pub(crate) outputs: &'a FxHashSet<String>,
}

impl Arrangement<'_> {
    /// The nodes in the order of the plan and readers after them, such that a depth-first order runs the nodes as they stand.
    /// Returns how many readers there are.
    pub(crate) fn arrange(&self, nodes: Vec<NodeProto>, names: &mut Names) -> (Vec<NodeProto>, usize) {
        let read: FxHashSet<String> = nodes.iter().flat_map(reads).map(str::to_owned).collect();
        let is_read = |name: &str| read.contains(name) || self.outputs.contains(name);
        let (readers, nodes): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| is_reader(node, is_read));
        let producer: FxHashMap<&str, usize> = (0..)
            .zip(&nodes)
            .flat_map(|(index, node)| node.output.iter().map(move |output| (output.as_str(), index)))
            .filter(|(output, _)| !output.is_empty())
            .collect();
        let sources: Vec<Vec<usize>> = nodes
            .iter()
            .map(|node| {
                let mut sources: Vec<usize> = reads(node).filter_map(|name| producer.get(name).copied()).collect();
                sources.sort_unstable();
                sources.dedup();
                sources
            })
            .collect();
        // What each node has to be followed by: readers that are there already, and readers of guarded values.
        let mut tail: Vec<Vec<NodeProto>> = vec![Vec::new(); nodes.len()];
        let mut early: Vec<NodeProto> = Vec::new();
        for reader in readers {
            match reader.input.first().and_then(|name| producer.get(name.as_str())) {
                Some(&node) => tail[node].push(reader),
                None => early.push(reader),
            }
        }
        for (index, node) in nodes.iter().enumerate() {
            for output in node.output.iter().filter(|output| self.guarded.contains(*output)) {
                let has_one = tail[index].iter().any(|reader| reader.input.first() == Some(output));
                tail[index].extend(self.reader(output, names).filter(|_| !has_one));
            }
        }
        let readable = |node: &NodeProto| node.output.iter().any(|output| self.is_readable(output));
        let ends: Vec<bool> = tail.iter().map(|readers| !readers.is_empty()).collect();
        let unreadable: Vec<bool> = nodes.iter().map(|node| !readable(node)).collect();
        for leaf in schedule::leaves(&sources, &ends, &unreadable) {
            if tail[leaf].is_empty() {
                let output = nodes[leaf].output.iter().find(|output| self.is_readable(output));
                tail[leaf].extend(output.and_then(|output| self.reader(output, names)));
            }
        }
        drop(producer);
        let count = tail.iter().map(Vec::len).sum::<usize>() + early.len();
        let mut arranged = nodes;
        arranged.extend(tail.into_iter().rev().flatten());
        arranged.extend(early);
        (arranged, count)
    }

    fn is_readable(&self, value: &str) -> bool {
        let ty = self.types.get(value);
        ty.is_some_and(|ty| remat_onnx::reader(value, ty, "").is_some())
    }

    fn reader(&self, value: &str, names: &mut Names) -> Option<NodeProto> {
        let ty = self.types.get(value).filter(|_| self.is_readable(value))?;
        remat_onnx::reader(value, ty, &names.fresh(&format!("{value}{SUFFIX}")))
    }
}

/// The values that a node and its subgraphs read.
fn reads(node: &NodeProto) -> impl Iterator<Item = &str> {
    let operands = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
    operands.chain(remat_onnx::captures(node))
}
