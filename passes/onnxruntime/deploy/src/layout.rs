//! Plans on a model as the runtime lays it out, written with nodes that every machine runs.
//!
//! Where everything is optimized, the runtime converts convolutions to blocks of channels, with copies from and to the usual layout
//! between them. That graph is what runs, and what a plan is made on; but its kernels and weights belong to processors of one kind. So
//! each of its ops is traced back to the nodes that it stands for, and the plan is written with those: loaded, they become its ops again.

use remat::plan::{self, Event, Step, StorageRole, Structure, lower_events};
use remat::{Model, Solution};
use remat_cost::{OpRecord, ProfileFile};
use remat_ir::{Graph, OpId, TensorId};
use remat_onnx::OnnxModel;
use remat_onnx::proto::ModelProto;
use remat_onnxruntime_lower::LayoutMapping;
use remat_operators::{Blocked, operator};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::DeployError;

/// The nodes that a laid-out model is written with.
#[derive(Debug)]
pub(crate) struct LaidOut {
    /// The model of these nodes.
    pub(crate) model: Model,
    /// Which ops of the laid-out model stand for them.
    pub(crate) mapping: LayoutMapping,
}

impl LaidOut {
    /// States shapes, as few as it takes, so that a file without a plan is laid out as the model was. `load` gives what the runtime makes of
    /// a file when it loads it.
    ///
    /// # Errors
    /// Those of `load` and of the lowering.
    pub(crate) fn state_shapes(
        &mut self,
        load: impl Fn(&OnnxModel, &ModelProto) -> Result<OnnxModel, DeployError>,
    ) -> Result<(), DeployError> {
        let baseline = Solution::baseline(&self.model)?;
        match remat::rewrite(&self.model, &baseline)?.zip(self.model.onnx()) {
            Some((graph, onnx)) => self.mapping.state_shapes(onnx, &graph, |proto| load(onnx, proto)),
            None => Ok(()),
        }
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
            let parts = self.mapping.stands_for.get(first)?.iter();
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

    /// The solution, which is about the laid-out model, on the nodes. Nodes that no op stands for run when they are needed. What is moved to a second
    /// memory and back is the value of the nodes, whichever layout it has.
    ///
    /// # Errors
    /// [`DeployError::NotPortable`] if the nodes were traced wrongly.
    pub(crate) fn solution(&self, laid_out: &Solution) -> Result<Solution, DeployError> {
        let problem = self.model.problem().clone();
        let structure = Structure::of(&problem);
        let mut sequence = Sequence::new(&problem, &structure);
        let nodes_of = |op: OpId| {
            let first = laid_out.problem.ops[op].defines.first();
            let nodes = first.and_then(|&tensor| self.mapping.stands_for.get(&laid_out.problem.tensors[tensor].name));
            nodes.into_iter().flatten().map(String::as_str)
        };
        for step in &laid_out.plan.steps {
            match *step {
                Step::Compute(op) | Step::Recompute(op) => nodes_of(op).for_each(|node| sequence.run(node)),
                Step::PageIn(storage) => {
                    let root = &laid_out.problem.tensors[laid_out.problem.storages[storage].root];
                    // A value in blocks has another name: it is that of the last node that its op stands for.
                    let in_blocks = root.producer.and_then(|op| nodes_of(op).next_back());
                    sequence.fetch(&root.name, in_blocks);
                }
                Step::Free(_) | Step::PageOut(_) => {}
            }
        }
        let events = sequence.complete();
        let refused = |why: String| DeployError::NotPortable { why };
        let plan = lower_events(&problem, &structure, events).map_err(|error| refused(error.to_string()))?;
        let replay = remat::verify::replay(&problem, &plan).map_err(|rejection| refused(rejection.to_string()))?;
        Ok(Solution::of(&self.model, problem, plan, replay, None))
    }
}

/// What is to happen to the nodes, in order.
struct Sequence<'p> {
    problem: &'p plan::Problem,
    structure: &'p Structure,
    /// What nodes make, by name.
    made: FxHashMap<&'p str, TensorId>,
    has_run: FxHashSet<OpId>,
    events: Vec<Event>,
}

impl<'p> Sequence<'p> {
    fn new(problem: &'p plan::Problem, structure: &'p Structure) -> Self {
        let tensors = problem.tensors.iter_enumerated();
        let made = tensors.filter(|(_, tensor)| tensor.producer.is_some());
        Self {
            problem,
            structure,
            made: made.map(|(id, tensor)| (tensor.name.as_str(), id)).collect(),
            has_run: FxHashSet::default(),
            events: Vec::new(),
        }
    }

    /// Runs the node that makes a value, and before it what it needs that has not run.
    fn run(&mut self, result: &str) {
        let made = self.made.get(result);
        let Some(op) = made.and_then(|&tensor| self.problem.tensors[tensor].producer) else {
            return;
        };
        if !self.has_run.contains(&op) {
            self.first_run(op);
        } else if self.problem.ops[op].recomputable {
            self.push(op);
        }
    }

    /// Brings back the value of this name, or else that of the node; nothing where it is not moved by itself or has not been made.
    fn fetch(&mut self, name: &str, of_node: Option<&str>) {
        let named = [Some(name), of_node].into_iter().flatten();
        let tensors = named.filter_map(|name| self.made.get(name));
        let has_run = |op: OpId| self.has_run.contains(&op);
        let there = tensors
            .map(|&tensor| &self.problem.tensors[tensor])
            .filter(|tensor| tensor.producer.is_some_and(has_run));
        let mut moved = there
            .map(|tensor| tensor.storage)
            .filter(|&storage| self.problem.storages[storage].role == StorageRole::Transient);
        self.events.extend(moved.next().map(Event::Fetch));
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
            self.events.push(Event::Run(op));
        }
    }

    /// All runs; nodes that nothing asked for come last.
    fn complete(mut self) -> Vec<Event> {
        for op in self.structure.scheduled() {
            if !self.has_run.contains(&op) {
                self.first_run(op);
            }
        }
        self.events
    }
}

/// A result that the runtime keeps in blocks of 8 or 16 channels, of which it fills the last one up, and copies back to the usual layout for others.
/// While it copies, both are there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Padding {
    /// The node that makes it, as the model has it.
    pub node: String,
    /// Its operator.
    pub op_type: String,
    /// Its channels.
    pub channels: u64,
    /// Those that the runtime keeps.
    pub padded_channels: u64,
    /// What it takes in blocks, in bytes.
    pub blocked_bytes: u64,
    /// What the copy takes, in bytes: what it would take without blocks.
    pub copied_bytes: u64,
}

impl Padding {
    /// The largest one of a graph as the runtime laid it out, if it and its copy fill more than half of `peak` bytes; `nodes`: the model that it
    /// laid out.
    pub(crate) fn of(laid_out: &Graph, nodes: &Graph, peak: u64) -> Option<Self> {
        let all = laid_out.ops.keys().filter_map(|op| Self::at(laid_out, nodes, op));
        let largest = all.max_by_key(Self::together)?;
        (largest.together() > peak / 2).then_some(largest)
    }

    /// Bytes while it is copied.
    fn together(&self) -> u64 {
        self.blocked_bytes.saturating_add(self.copied_bytes)
    }

    fn at(graph: &Graph, nodes: &Graph, op: OpId) -> Option<Self> {
        let copy = &graph.ops[op];
        if operator(&copy.domain, &copy.op_type).blocked != Blocked::FromBlocks {
            return None;
        }
        let (read, made) = (copy.inputs.first().copied().flatten()?, copy.results().next()?);
        let bytes = |tensor: TensorId| graph.tensors[tensor].ty.bytes().ok().flatten();
        let channels = |tensor: TensorId| graph.tensors[tensor].ty.known_shape()?.get(1).copied();
        // The copy has the name that the value has in the model.
        let of = nodes
            .tensors
            .iter()
            .find(|tensor| tensor.name == graph.tensors[made].name);
        let maker = &nodes.ops[of?.producer?];
        Some(Self {
            node: maker.name.clone(),
            op_type: maker.op_type.clone(),
            channels: channels(made)?,
            padded_channels: channels(read)?,
            blocked_bytes: bytes(read)?,
            copied_bytes: bytes(made)?,
        })
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
