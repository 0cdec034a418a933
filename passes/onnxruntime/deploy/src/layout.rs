//! Plans on a model as the runtime lays it out, written with nodes that every machine runs.
//!
//! Where everything is optimized, the runtime converts convolutions to blocks of channels, with copies from and to the usual layout
//! between them. That graph is what runs, and what a plan is made on; but its kernels and weights belong to processors of one kind. So
//! each of its ops is traced back to the nodes that it stands for, and the plan is written with those: loaded, they become its ops again.

use std::collections::BTreeMap;

use remat::plan::{self, Structure, lower_sequence};
use remat::{Model, Solution};
use remat_cost::{OpRecord, ProfileFile};
use remat_ir::{Graph, OpId, StorageClass, TensorId};
use remat_onnx::OnnxModel;
use remat_onnx::proto::ModelProto;
use remat_onnxruntime_lower::{BLOCKED, CONVERTED, Layout, LoweringOptions, OrderHint, REORDERED, lower};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::DeployError;

/// Numbers of nodes by domain and operator.
type Counts = BTreeMap<(String, String), usize>;

/// The operand of a blocked convolution to which the convolution is added.
const SUM: usize = 3;

/// Operators that are converted only where the shapes of their operands are known (ONNX Runtime, `core/optimizer/nchwc_transformer.cc`).
const DECIDED_BY_SHAPE: [&str; 8] = [
    "Add",
    "AveragePool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MaxPool",
    "Mul",
    "Resize",
    "Sum",
];

/// The nodes that a laid-out model is written with.
#[derive(Debug)]
pub(crate) struct LaidOut {
    /// The model of these nodes.
    pub(crate) model: Model,
    /// What of it the runtime's layouts concern.
    layout: Layout,
    /// By operator, the values whose shapes may decide over a conversion.
    undecided: BTreeMap<&'static str, Vec<String>>,
    /// How many nodes of these operators there are in the laid-out graph, by domain and name.
    counts: Counts,
    /// By the first result of an op of the laid-out graph, first results of the nodes that it stands for, in order.
    stands_for: FxHashMap<String, Vec<String>>,
}

impl LaidOut {
    /// Traces `laid_out`, which the runtime made of `model`, back to the nodes of `model`.
    ///
    /// # Errors
    /// The model itself where nothing in it is blocked.
    pub(crate) fn of(model: Box<Model>, laid_out: &Model) -> Result<Self, Box<Model>> {
        let (Some(nodes), Some(ops)) = (model.graph(), laid_out.graph()) else {
            return Err(model);
        };
        if ops.ops.iter().all(|op| op.domain != BLOCKED) {
            return Err(model);
        }
        let mut trace = Trace::new(ops);
        for op in nodes.ops.iter().filter(|op| op.kind.is_run()) {
            trace.node(nodes, op);
        }
        let ((layout, undecided), stands_for) = (layout(nodes, &trace), trace.stands_for());
        let counts = counts(ops, &[]);
        Ok(Self {
            model: *model,
            layout,
            undecided,
            counts,
            stands_for,
        })
    }

    /// What of the model the runtime's layouts concern.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// States shapes, as few as it takes, so that a file without a plan is laid out as the model was. `load` gives what the runtime makes of
    /// a file when it loads it.
    ///
    /// # Errors
    /// Those of `load` and of the lowering.
    pub(crate) fn state_shapes(
        &mut self,
        load: impl Fn(&Model, &ModelProto) -> Result<OnnxModel, DeployError>,
    ) -> Result<(), DeployError> {
        let baseline = Solution::baseline(&self.model)?;
        let Some((graph, onnx)) = remat::rewrite(&self.model, &baseline)?.zip(self.model.onnx()) else {
            return Ok(());
        };
        let options = LoweringOptions {
            order: OrderHint::Priority,
            ..LoweringOptions::default()
        };
        // What is converted decides over what reads it.
        while !self.undecided.is_empty() {
            let lowered = lower(onnx, &graph, &options, &self.layout)?;
            let loaded = load(&self.model, &lowered.proto)?;
            let zeros: Vec<&str> = lowered.zeros.iter().map(|(name, _)| name.as_str()).collect();
            let found = counts(loaded.graph(), &zeros);
            let differ = |op_type: &str| {
                let of = |counts: &Counts| -> Vec<_> {
                    let same = counts.iter().filter(|((_, name), _)| name == op_type);
                    same.map(|(key, &count)| (key.clone(), count)).collect()
                };
                of(&found) != of(&self.counts)
            };
            let needed: Vec<&'static str> = self
                .undecided
                .keys()
                .copied()
                .filter(|op_type| differ(op_type))
                .collect();
            if needed.is_empty() {
                break;
            }
            for op_type in needed {
                self.layout
                    .stated
                    .extend(self.undecided.remove(op_type).into_iter().flatten());
            }
        }
        tracing::debug!(stated = self.layout.stated.len(), "shapes are stated for the layout");
        Ok(())
    }

    /// What a profile of the nodes says of the laid-out model: an op takes what the nodes take that it stands for.
    pub(crate) fn profile(&self, laid_out: &Model, mut file: ProfileFile) -> ProfileFile {
        let (Some(nodes), Some(ops)) = (self.model.graph(), laid_out.graph()) else {
            return file;
        };
        let stated: FxHashMap<&str, u64> = file
            .ops
            .iter()
            .map(|record| (record.node.as_str(), record.duration_ns))
            .collect();
        let by_result: FxHashMap<&str, &str> = nodes
            .ops
            .iter()
            .filter_map(|op| Some((nodes.tensors[op.results().next()?].name.as_str(), op.name.as_str())))
            .collect();
        let record = |op: &remat_ir::Op| {
            let first = &ops.tensors[op.results().next()?].name;
            let parts = self.stands_for.get(first)?.iter();
            let durations = parts.map(|part| stated.get(by_result.get(part.as_str())?).copied());
            Some(OpRecord {
                node: op.name.clone(),
                duration_ns: durations.sum::<Option<u64>>()?,
                workspace_bytes: None,
                outputs: Vec::new(),
            })
        };
        file.ops = ops.ops.iter().filter_map(record).collect();
        file
    }

    /// The solution, which is about the laid-out model, on the nodes. Nodes that no op stands for run when they are needed.
    ///
    /// # Errors
    /// [`DeployError::NotPortable`] if the nodes were traced wrongly.
    pub(crate) fn solution(&self, laid_out: &Solution) -> Result<Solution, DeployError> {
        let problem = self.model.problem().clone();
        let structure = Structure::of(&problem);
        let mut sequence = Sequence::new(&problem, &structure);
        for run in laid_out.plan.runs() {
            let first = laid_out.problem.ops[run].defines.first();
            let nodes = first.and_then(|&tensor| self.stands_for.get(&laid_out.problem.tensors[tensor].name));
            nodes.into_iter().flatten().for_each(|node| sequence.run(node));
        }
        let order = sequence.complete();
        let refused = |why: String| DeployError::NotPortable { why };
        let plan = lower_sequence(&problem, &structure, order).map_err(|error| refused(error.to_string()))?;
        let replay = remat::verify::replay(&problem, &plan).map_err(|rejection| refused(rejection.to_string()))?;
        Ok(Solution::of(&self.model, problem, plan, replay, None))
    }
}

/// How many nodes of operators there are that are converted only where shapes are known, but for those that read one of `zeros`.
fn counts(graph: &Graph, zeros: &[&str]) -> Counts {
    let mut counts = Counts::new();
    for op in graph.ops.iter().filter(|op| op.kind.is_run()) {
        let is_shape = op
            .reads()
            .any(|tensor| zeros.contains(&graph.tensors[tensor].name.as_str()));
        if DECIDED_BY_SHAPE.contains(&op.op_type.as_str()) && !is_shape {
            *counts.entry((op.domain.clone(), op.op_type.clone())).or_default() += 1;
        }
    }
    counts
}

/// What of the model the layouts of the ops concern, and by operator the values whose shapes may decide over a conversion.
fn layout(nodes: &Graph, trace: &Trace<'_>) -> (Layout, BTreeMap<&'static str, Vec<String>>) {
    let (mut layout, mut undecided) = (Layout::default(), BTreeMap::<_, Vec<String>>::new());
    for node in nodes.ops.iter().filter(|op| op.kind.is_run()) {
        let results: Vec<&str> = node
            .results()
            .map(|result| nodes.tensors[result].name.as_str())
            .collect();
        let Some(&first) = results.first() else { continue };
        let lost = results.iter().filter(|&&result| !trace.by_result.contains_key(result));
        layout.blocked.extend(lost.map(|&result| result.to_owned()));
        let made_by = trace.made_by.get(first).filter(|op| trace.in_blocks.contains(op));
        if made_by.is_some_and(|&op| trace.ops.ops[op].op_type != REORDERED) {
            layout.in_blocks.insert(first.to_owned());
        }
        let is_converted = match trace.made_by.get(first) {
            Some(_) => made_by.is_some(),
            // It is part of a reordering.
            None => node.op_type == "Transpose",
        };
        if !is_converted {
            continue;
        }
        layout.converted.insert(first.to_owned());
        let by_shape = DECIDED_BY_SHAPE.iter().find(|&&op_type| op_type == node.op_type);
        if let Some(&op_type) = by_shape {
            let operands = node.inputs.iter().flatten().map(|&operand| &nodes.tensors[operand]);
            let made = operands.filter(|operand| nodes.storages[operand.storage].class != StorageClass::Constant);
            undecided
                .entry(op_type)
                .or_default()
                .extend(made.map(|operand| operand.name.clone()));
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
            let leads_out = |maker: &&OpId| ops.ops[**maker].op_type == REORDERED;
            let reads_blocks = makers.any(|maker| trace.in_blocks.contains(maker) && !leads_out(&maker));
            if op.domain == BLOCKED {
                trace.by_name.insert(&op.name, id);
            }
            if op.domain == BLOCKED || reads_blocks {
                trace.in_blocks.insert(id);
            }
        }
        trace
    }

    fn node(&mut self, nodes: &Graph, node: &remat_ir::Op) {
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
    fn op(&self, nodes: &Graph, node: &remat_ir::Op, first: &str) -> Option<OpId> {
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
                let is_convolution = op.domain == BLOCKED && op.op_type == "Conv";
                let sums = op.inputs.get(SUM).is_some_and(Option::is_some);
                let is_free = self.nodes.get(maker).is_none_or(|nodes| nodes.len() < 2);
                is_convolution && (!is_sum || sums && is_free)
            })
        };
        // Its result is reordered to what it was.
        on_blocks.or_else(fused).or_else(|| self.by_result.get(first).copied())
    }

    /// Whether the op reads what the node reads, operand by operand.
    fn reads_the_same(&self, nodes: &Graph, node: &remat_ir::Op, op: OpId) -> bool {
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

/// The nodes in the order in which they are to run.
struct Sequence<'p> {
    problem: &'p plan::Problem,
    structure: &'p Structure,
    producers: FxHashMap<&'p str, OpId>,
    has_run: FxHashSet<OpId>,
    order: Vec<OpId>,
}

impl<'p> Sequence<'p> {
    fn new(problem: &'p plan::Problem, structure: &'p Structure) -> Self {
        let made = problem.tensors.iter();
        Self {
            problem,
            structure,
            producers: made
                .filter_map(|tensor| Some((tensor.name.as_str(), tensor.producer?)))
                .collect(),
            has_run: FxHashSet::default(),
            order: Vec::new(),
        }
    }

    /// Runs the node that makes a value, and before it what it needs that has not run.
    fn run(&mut self, result: &str) {
        let Some(&op) = self.producers.get(result) else { return };
        if !self.has_run.contains(&op) {
            self.first_run(op);
        } else if self.problem.ops[op].recomputable {
            self.push(op);
        }
    }

    fn first_run(&mut self, op: OpId) {
        let mut stack = vec![(op, false)];
        while let Some((op, is_ready)) = stack.pop() {
            if is_ready {
                if self.has_run.insert(op) {
                    self.push(op);
                }
                continue;
            }
            if self.has_run.contains(&op) {
                continue;
            }
            stack.push((op, true));
            let needs = self.problem.ops[op].reads.iter();
            let makers = needs.filter_map(|&tensor| self.problem.tensors[tensor].producer);
            stack.extend(makers.map(|maker| (maker, false)));
        }
    }

    /// Lazy views run when they are needed.
    fn push(&mut self, op: OpId) {
        if !self.structure.is_lazy(op) {
            self.order.push(op);
        }
    }

    /// All runs; nodes that nothing asked for come last.
    fn complete(mut self) -> Vec<OpId> {
        for op in self.structure.scheduled() {
            if !self.has_run.contains(&op) {
                self.first_run(op);
            }
        }
        self.order
    }
}
