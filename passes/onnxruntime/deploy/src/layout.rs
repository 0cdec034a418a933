//! Plans on a model as the runtime lays it out, written with nodes that every machine runs.
//!
//! Where everything is optimized, the runtime converts convolutions to blocks of channels, with copies from and to the usual layout
//! between them. That graph is what runs, and what a plan is made on; but its kernels and weights belong to processors of one kind. So
//! each of its ops is traced back to the nodes that it stands for, and the plan is written with those: loaded, they become its ops again.

use remat::plan::{self, Structure, lower_sequence};
use remat::{Model, Solution};
use remat_ir::{Graph, OpId, StorageClass};
use remat_onnxruntime_lower::Layout;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::DeployError;

/// The domain of blocked operators.
const BLOCKED: &str = "com.microsoft.nchwc";

/// How the runtime calls what it converts: by the result, and this.
const CONVERTED: &str = "_nchwc";

/// The operand of a blocked convolution to which the convolution is added.
const SUM: usize = 3;

/// The nodes that a laid-out model is written with.
#[derive(Debug)]
pub(crate) struct Portable {
    /// The model of these nodes.
    pub(crate) model: Model,
    /// What of it the runtime's layouts concern.
    pub(crate) layout: Layout,
    /// By the first result of an op of the laid-out graph, first results of the nodes that it stands for, in order.
    stands_for: FxHashMap<String, Vec<String>>,
}

impl Portable {
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
        let (layout, stands_for) = (layout(nodes, ops), trace.stands_for());
        Ok(Self {
            model: *model,
            layout,
            stands_for,
        })
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

/// What of the model the layouts of the ops concern.
fn layout(nodes: &Graph, ops: &Graph) -> Layout {
    let known: FxHashMap<&str, &remat_ir::Op> = ops
        .ops
        .iter()
        .flat_map(|op| op.results().map(move |result| (ops.tensors[result].name.as_str(), op)))
        .collect();
    let names = |graph: &'_ Graph, op: &remat_ir::Op| -> Vec<Option<String>> {
        let name = |tensor: &Option<remat_ir::TensorId>| tensor.map(|tensor| graph.tensors[tensor].name.clone());
        op.inputs.iter().map(name).collect()
    };
    let mut layout = Layout::default();
    for node in nodes.ops.iter().filter(|op| op.kind.is_run()) {
        let results: Vec<&str> = node
            .results()
            .map(|result| nodes.tensors[result].name.as_str())
            .collect();
        let Some(&first) = results.first() else { continue };
        let lost = results.iter().filter(|result| !known.contains_key(*result));
        layout.blocked.extend(lost.map(|&result| result.to_owned()));
        let is_same = known.get(first).is_some_and(|op| {
            (&op.op_type, &op.domain) == (&node.op_type, &node.domain) && names(ops, op) == names(nodes, node)
        });
        if is_same {
            continue;
        }
        layout.converted.insert(first.to_owned());
        if !matches!(node.op_type.as_str(), "Conv" | "FusedConv") {
            let operands = node.inputs.iter().flatten().map(|&operand| &nodes.tensors[operand]);
            let made = operands.filter(|operand| nodes.storages[operand.storage].class != StorageClass::Constant);
            layout.stated.extend(made.map(|operand| operand.name.clone()));
        }
    }
    layout
}

/// Finds the op that stands for each node.
struct Trace<'g> {
    ops: &'g Graph,
    by_result: FxHashMap<&'g str, OpId>,
    by_name: FxHashMap<&'g str, OpId>,
    readers: FxHashMap<&'g str, Vec<OpId>>,
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
            if op.domain == BLOCKED {
                trace.by_name.insert(&op.name, id);
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
            readers.find(|id| is_alike(id) && !self.nodes.contains_key(id)).copied()
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
