//! A graph that is being written, and the values it has so far.

use remat_ir::{Graph, Op, OpId, OpKind, StorageId, TensorId};
use remat_onnx::OnnxModel;
use remat_onnx::proto::{NodeProto, TensorProto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::emit::Value;
use crate::reads::Reads;

/// A graph that is being written, and the values it has so far.
pub(crate) struct Level<'m> {
    pub(crate) model: &'m OnnxModel,
    pub(crate) graph: &'m Graph,
    /// Where the graph stands, for locations: nothing, or the names of the nodes around it, each with `/`.
    pub(crate) path: String,
    /// Whether this is the main graph, whose weights become blobs.
    pub(crate) is_main: bool,
    values: FxHashMap<TensorId, Value>,
    pub(crate) pages: Pages,
    /// The value that stands for an operand that is left out, once there is one.
    pub(crate) none: Option<Value>,
    /// The recomputes so far: what they repeat, and of what.
    repeated: FxHashSet<(OpId, Vec<Option<TensorId>>)>,
    /// When each tensor was last read, if far reads get optimization barriers.
    pub(crate) reads: Option<Reads>,
}

impl<'m> Level<'m> {
    pub(crate) fn new(model: &'m OnnxModel, graph: &'m Graph, path: String, is_main: bool) -> Self {
        Self {
            model,
            graph,
            path,
            is_main,
            values: FxHashMap::default(),
            pages: Pages::of(graph),
            none: None,
            repeated: FxHashSet::default(),
            reads: None,
        }
    }

    pub(crate) fn bind(&mut self, tensor: TensorId, value: Value) {
        self.pages.is_back(tensor);
        self.values.insert(tensor, value);
    }

    /// The value of a tensor that an op before has defined.
    pub(crate) fn get(&self, tensor: TensorId) -> Option<&Value> {
        self.values.get(&tensor)
    }

    /// Whether a recompute would be equal to another run of its op, if nothing set them apart.
    pub(crate) fn is_like_another(&mut self, op: &Op) -> bool {
        let OpKind::Recompute { of } = op.kind else {
            return false;
        };
        let is_remade = |&tensor: &TensorId| {
            let producer = self.graph.tensors[tensor].producer;
            producer.is_some_and(|producer| matches!(self.graph.ops[producer].kind, OpKind::Recompute { .. }))
        };
        let reads_remade = op.reads().any(|tensor| is_remade(&tensor));
        let is_first = self.repeated.insert((of, op.inputs.clone()));
        !(reads_remade && is_first)
    }

    /// Forgets the values of all tensors of a storage; gives those that had one.
    pub(crate) fn forget(&mut self, storage: StorageId) -> Vec<TensorId> {
        let graph = self.graph;
        let gone = self
            .values
            .extract_if(|&tensor, _| graph.tensors[tensor].storage == storage);
        gone.map(|(tensor, _)| tensor).collect()
    }

    /// The tensor's name.
    pub(crate) fn name(&self, tensor: TensorId) -> &'m str {
        &self.graph.tensors[tensor].name
    }

    /// The graph's inputs and constants by name: what a body binds to values from outside.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&'m str, TensorId)> + use<'m> {
        let tensors = self.graph.tensors.iter_enumerated();
        tensors
            .filter(|(_, tensor)| tensor.producer.is_none())
            .map(|(id, tensor)| (tensor.name.as_str(), id))
    }

    /// Small constants of the file by name, which shapes inside bodies may depend on.
    pub(crate) fn initializer(&self, name: &str) -> Option<&'m TensorProto> {
        let graph = self.model.proto().graph.as_ref()?;
        graph.initializer.iter().find(|tensor| tensor.name == name)
    }

    /// The node that an op stems from.
    pub(crate) fn node(&self, op: &Op) -> Option<&'m NodeProto> {
        let graph = self.model.proto().graph.as_ref()?;
        graph.node.get(op.source? as usize)
    }
}

/// What moves to the second memory and back, as the text has it so far.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The page of each storage in the second memory.
    pub(crate) pages: FxHashMap<StorageId, Value>,
    /// How many page-ins of each storage are still to come.
    pub(crate) to_come: FxHashMap<StorageId, usize>,
    /// Tensors whose memory moved to the second memory.
    pub(crate) gone: FxHashSet<TensorId>,
}

impl Pages {
    fn of(graph: &Graph) -> Self {
        let mut to_come: FxHashMap<StorageId, usize> = FxHashMap::default();
        for op in graph.ops.iter().filter(|op| op.kind == OpKind::PageIn) {
            for tensor in op.reads() {
                *to_come.entry(graph.tensors[tensor].storage).or_default() += 1;
            }
        }
        Self {
            pages: FxHashMap::default(),
            to_come,
            gone: FxHashSet::default(),
        }
    }

    /// `tensor` has a value again.
    fn is_back(&mut self, tensor: TensorId) {
        self.gone.remove(&tensor);
    }

    /// Notes that one more page-in is done; whether it was the last one of this storage.
    pub(crate) fn came_back(&mut self, storage: StorageId) -> bool {
        let left = self.to_come.entry(storage).or_default();
        *left = left.saturating_sub(1);
        *left == 0
    }
}
