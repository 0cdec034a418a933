//! A model that the runtime laid out, traced back to the nodes that its ops stand for.
//!
//! The runtime converts convolutions to blocks of channels, and fuses what follows them. Names that it gives, and what ops read, say which nodes of
//! the model one of its ops stands for.

use std::collections::BTreeMap;

use remat_ir::{Graph, Op, OpId, StorageClass, TensorId};
use remat_onnx::proto::ModelProto;
use remat_onnx::{OnnxError, OnnxModel};
use remat_operators::{BLOCKED_DOMAIN, Blocked, DecidedBy, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::layout::{CONVERTED, Layout};
use crate::lower::{LoweringOptions, OrderHint, lower};

/// Numbers of nodes by domain and operator.
type Counts = BTreeMap<(String, String), usize>;

/// The operand of a blocked convolution to which the convolution is added.
const SUM: usize = 3;

/// The nodes that a laid-out graph stands for, and how they are written so that they become it again.
#[derive(Debug)]
pub struct LayoutMapping {
    /// What of the nodes the runtime's layouts concern.
    pub layout: Layout,
    /// By the first result of an op of the laid-out graph, first results of the nodes that it stands for, in order.
    pub stands_for: FxHashMap<String, Vec<String>>,
    /// By operator, the values whose shapes may decide over a conversion.
    undecided: BTreeMap<&'static str, Undecided>,
    /// How many nodes of these operators there are in the laid-out graph, by domain and name.
    counts: Counts,
}

impl LayoutMapping {
    /// Traces `laid_out`, which the runtime made of `nodes`, back to these; `None` where nothing in it is blocked.
    #[must_use]
    pub fn of(nodes: &Graph, laid_out: &Graph) -> Option<Self> {
        if laid_out.ops.iter().all(|op| op.domain != BLOCKED_DOMAIN) {
            return None;
        }
        let mut trace = Trace::new(laid_out);
        for op in nodes.ops.iter().filter(|op| op.kind.is_run()) {
            trace.node(nodes, op);
        }
        let (layout, undecided) = layout(nodes, &trace);
        Some(Self {
            layout,
            undecided,
            counts: counts(laid_out, &[]),
            stands_for: trace.stands_for(),
        })
    }

    /// States shapes, as few as it takes, so that a file of `graph`, the nodes of `onnx` without a plan, is laid out as the model was. `load` gives
    /// what the runtime makes of a file when it loads it.
    ///
    /// # Errors
    /// Those of `load` and of the lowering.
    pub fn state_shapes<E: From<OnnxError>>(
        &mut self,
        onnx: &OnnxModel,
        graph: &Graph,
        load: impl Fn(&ModelProto) -> Result<OnnxModel, E>,
    ) -> Result<(), E> {
        let options = LoweringOptions {
            order: OrderHint::Priority,
            ..LoweringOptions::default()
        };
        // What is converted decides over what reads it.
        while !self.undecided.is_empty() {
            let lowered = lower(onnx, graph, &options, &self.layout)?;
            let loaded = load(&lowered.proto)?;
            let zeros: Vec<&str> = lowered.zeros.iter().map(|(name, _)| name.as_str()).collect();
            let found = counts(loaded.graph(), &zeros);
            let differ = |op_type: &str| {
                let of = |counts: &Counts| -> Vec<_> {
                    let same = counts.iter().filter(|((_, name), _)| name == op_type);
                    same.map(|(key, &count)| (key.clone(), count)).collect()
                };
                of(&found) != of(&self.counts)
            };
            let undecided = self.undecided.keys().copied();
            let needed: Vec<&'static str> = undecided.filter(|op_type| differ(op_type)).collect();
            if needed.is_empty() {
                break;
            }
            for op_type in needed {
                let Some(undecided) = self.undecided.remove(op_type) else {
                    continue;
                };
                undecided
                    .into_iter()
                    .for_each(|(by, values)| self.layout.state(by, values));
            }
            self.layout.state_all_that_are_equal();
        }
        let Layout {
            stated,
            equal,
            channels,
            ..
        } = &self.layout;
        let (stated, equal, channels) = (stated.len(), equal.len(), channels.len());
        tracing::debug!(stated, equal, channels, "shapes are stated for the layout");
        Ok(())
    }
}

/// What may decide over the conversion of nodes of one operator: by node, what must be known of the values that it reads.
type Undecided = Vec<(DecidedBy, Vec<String>)>;

/// What becomes of an op where images are laid out in blocks.
fn blocked(op: &Op) -> Blocked {
    operator(&op.domain, &op.op_type).blocked
}

/// How many nodes of operators there are that are converted only where shapes are known, but for those that read one of `zeros`.
fn counts(graph: &Graph, zeros: &[&str]) -> Counts {
    let mut counts = Counts::new();
    for op in graph.ops.iter().filter(|op| op.kind.is_run()) {
        let is_shape = op
            .reads()
            .any(|tensor| zeros.contains(&graph.tensors[tensor].name.as_str()));
        if blocked(op).decided_by().is_some() && !is_shape {
            *counts.entry((op.domain.clone(), op.op_type.clone())).or_default() += 1;
        }
    }
    counts
}

/// What of the model the layouts of the ops concern, and by operator the values whose shapes may decide over a conversion.
fn layout(nodes: &Graph, trace: &Trace<'_>) -> (Layout, BTreeMap<&'static str, Undecided>) {
    let (mut layout, mut undecided) = (Layout::default(), BTreeMap::<_, Undecided>::new());
    for node in nodes.ops.iter().filter(|op| op.kind.is_run()) {
        let results: Vec<&str> = node
            .results()
            .map(|result| nodes.tensors[result].name.as_str())
            .collect();
        let Some(&first) = results.first() else { continue };
        let lost = results.iter().filter(|&&result| !trace.by_result.contains_key(result));
        layout.blocked.extend(lost.map(|&result| result.to_owned()));
        let makes_copy = |op: &OpId| blocked(&trace.ops.ops[*op]) == Blocked::FromBlocks;
        let copied = results
            .iter()
            .filter(|&&result| trace.by_result.get(result).is_some_and(makes_copy));
        layout.copied.extend(copied.map(|&result| result.to_owned()));
        let made_by = trace.made_by.get(first).filter(|op| trace.in_blocks.contains(op));
        if made_by.is_some_and(|&op| blocked(&trace.ops.ops[op]) != Blocked::FromBlocks) {
            layout.in_blocks.insert(first.to_owned());
        }
        let is_converted = match trace.made_by.get(first) {
            Some(_) => made_by.is_some(),
            // It is part of a reordering.
            None => blocked(node) == Blocked::Transpose,
        };
        if !is_converted {
            continue;
        }
        layout.converted.insert(first.to_owned());
        if let Some(by) = blocked(node).decided_by().filter(|_| !trace.reads_views(node, first)) {
            let operands = node.inputs.iter().flatten().map(|&operand| &nodes.tensors[operand]);
            let made = operands.filter(|operand| nodes.storages[operand.storage].class != StorageClass::Constant);
            let row = operator(&node.domain, &node.op_type);
            let values = made.map(|operand| operand.name.clone()).collect();
            undecided.entry(row.name).or_default().push((by, values));
        }
    }
    (layout, undecided)
}

/// Finds the op that stands for each node.
struct Trace<'g> {
    ops: &'g Graph,
    by_result: FxHashMap<&'g str, OpId>,
    by_name: FxHashMap<&'g str, OpId>,
    readers: FxHashMap<&'g str, Vec<OpId>>,
    /// Ops that read blocks or make them.
    in_blocks: FxHashSet<OpId>,
    /// By value of the nodes, the op that makes it.
    made_by: FxHashMap<String, OpId>,
    nodes: FxHashMap<OpId, Vec<String>>,
}

impl<'g> Trace<'g> {
    fn new(ops: &'g Graph) -> Self {
        let mut trace = Self {
            ops,
            by_result: FxHashMap::default(),
            by_name: FxHashMap::default(),
            readers: FxHashMap::default(),
            in_blocks: FxHashSet::default(),
            made_by: FxHashMap::default(),
            nodes: FxHashMap::default(),
        };
        for (id, op) in ops.ops.iter_enumerated().filter(|(_, op)| op.kind.is_run()) {
            for result in op.results() {
                trace.by_result.insert(&ops.tensors[result].name, id);
            }
            for operand in op.reads() {
                trace.readers.entry(&ops.tensors[operand].name).or_default().push(id);
            }
            // Only reordering leads out of blocks.
            let mut makers = op
                .reads()
                .filter_map(|operand| trace.by_result.get(ops.tensors[operand].name.as_str()));
            let leads_out = |maker: &&OpId| blocked(&ops.ops[**maker]) == Blocked::FromBlocks;
            let reads_blocks = makers.any(|maker| trace.in_blocks.contains(maker) && !leads_out(&maker));
            if op.domain == BLOCKED_DOMAIN {
                trace.by_name.insert(&op.name, id);
            }
            if op.domain == BLOCKED_DOMAIN || reads_blocks {
                trace.in_blocks.insert(id);
            }
        }
        trace
    }

    fn node(&mut self, nodes: &Graph, node: &Op) {
        let results: Vec<&str> = node
            .results()
            .map(|result| nodes.tensors[result].name.as_str())
            .collect();
        let Some(&first) = results.first() else { return };
        let Some(op) = self.op(nodes, node, first) else { return };
        self.nodes.entry(op).or_default().push(first.to_owned());
        self.made_by
            .extend(results.into_iter().map(|result| (result.to_owned(), op)));
    }

    /// The op that stands for the node with this first result.
    fn op(&self, nodes: &Graph, node: &Op, first: &str) -> Option<OpId> {
        let is_alike = |&&id: &&OpId| {
            let op = &self.ops.ops[id];
            (&op.op_type, &op.domain) == (&node.op_type, &node.domain)
        };
        if let Some(&id) = self.by_result.get(first).filter(is_alike) {
            return Some(id);
        }
        if let Some(&id) = self.by_name.get(format!("{first}{CONVERTED}").as_str()) {
            return Some(id);
        }
        let makers = || {
            let operands = node.inputs.iter().flatten();
            operands.filter_map(|&operand| self.made_by.get(&nodes.tensors[operand].name).copied())
        };
        // It runs on blocks, and its result has another name.
        let on_blocks = makers().find_map(|maker| {
            let results = self.ops.ops[maker].results();
            let mut readers = results.flat_map(|result| self.readers_of(&self.ops.tensors[result].name));
            let is_it =
                |id: &&OpId| is_alike(id) && !self.nodes.contains_key(*id) && self.reads_the_same(nodes, node, **id);
            readers.find(is_it).copied()
        });
        // It is fused into a convolution.
        let fused = || {
            let is_sum = node.inputs.iter().flatten().count() > 1;
            makers().find(|maker| {
                let op = &self.ops.ops[*maker];
                let is_convolution = op.domain == BLOCKED_DOMAIN && blocked(op).is_convolution();
                let sums = op.inputs.get(SUM).is_some_and(Option::is_some);
                let is_free = self.nodes.get(maker).is_none_or(|nodes| nodes.len() < 2);
                is_convolution && (!is_sum || sums && is_free)
            })
        };
        // Its result is reordered to what it was.
        on_blocks.or_else(fused).or_else(|| self.by_result.get(first).copied())
    }

    /// Whether the op reads what the node reads, operand by operand.
    fn reads_the_same(&self, nodes: &Graph, node: &Op, op: OpId) -> bool {
        let inputs = &self.ops.ops[op].inputs;
        let is_same = |(ours, theirs): (&Option<TensorId>, &Option<TensorId>)| match (*ours, *theirs) {
            (Some(ours), Some(theirs)) => {
                let (ours, theirs) = (&nodes.tensors[ours].name, &self.ops.tensors[theirs].name);
                let maker = self.made_by.get(ours);
                ours == theirs || maker.is_some() && maker == self.by_result.get(theirs.as_str())
            }
            (ours, theirs) => ours == theirs,
        };
        inputs.len() == node.inputs.len() && node.inputs.iter().zip(inputs).all(is_same)
    }

    /// Whether the op that stands for the node with this first result reads views of blocks: the runtime saw the shapes of what the node reads, and
    /// could not tell that they are equal. They must not be stated as equal, for then it is fused.
    fn reads_views(&self, node: &Op, first: &str) -> bool {
        let maker = |op: OpId, place: usize| {
            let operand = self.ops.ops[op].inputs.get(place).copied().flatten()?;
            self.ops.tensors[operand].producer
        };
        let is_view = |op: OpId| {
            let op = &self.ops.ops[op];
            operator(&op.domain, &op.op_type).is_view()
        };
        let mut at = self.made_by.get(first).copied();
        while let Some(op) = at {
            let entry = &self.ops.ops[op];
            if (&entry.op_type, &entry.domain) == (&node.op_type, &node.domain) {
                let mut makers = (0..entry.inputs.len()).filter_map(|place| maker(op, place));
                return makers.any(|maker| is_view(maker) && self.in_blocks.contains(&maker));
            }
            let leads_on = is_view(op) || blocked(entry) == Blocked::FromBlocks;
            at = leads_on.then(|| maker(op, 0)).flatten();
        }
        false
    }

    fn readers_of(&self, value: &str) -> &[OpId] {
        self.readers.get(value).map_or(&[], Vec::as_slice)
    }

    fn stands_for(self) -> FxHashMap<String, Vec<String>> {
        let named = self.nodes.into_iter().filter_map(|(op, nodes)| {
            let first = self.ops.ops[op].results().next()?;
            Some((self.ops.tensors[first].name.clone(), nodes))
        });
        named.collect()
    }
}
