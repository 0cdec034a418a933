//! The peak of a file in the runtime, simulated on the file as it is written.

use remat_ir::{Body, Dim, ElementType, Graph, OpKind, TensorId, ValueType};
use remat_onnx::proto::tensor_proto::DataType;
use remat_onnx::proto::{ModelProto, NodeProto, TensorProto};
use remat_onnx::{ImportOptions, OnnxModel, value_info};
use remat_onnxruntime_lower::{Lowered, OrderHint};
use remat_onnxruntime_sim::{
    ArenaSettings, Node, NodeIndex, Program, Settings, Shape, Value, ValueId, ValueKind, allocate, arena_anywhere,
    default_order, fresh_bytes, heap, priority_order,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use remat_cost::Device;

use remat::{BaselineOf, BaselinePeak, Model, Solution};

use crate::error::PredictError;

/// What later runs inside a branch must take at most of what they take outside, in thousandths, for a file to be put there.
const LEAST_GAIN_PERMILLE: u64 = 900;

/// What a run of the written file takes, as the simulation of the runtime has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prediction {
    /// Most heap bytes at once, with the memory arena off.
    pub peak_bytes: u64,
    /// Most bytes at once in the first run, with the memory arena and the memory pattern left on, wherever the C library puts the arena's
    /// regions: a measured peak may be lower.
    pub arena_bytes: u64,
    /// The same in later runs.
    pub arena_steady_bytes: u64,
    /// Whether what is said of the arena holds for the file with all nodes inside a branch, for which the runtime has no memory pattern.
    pub in_branch: bool,
    /// Bytes that each run takes anew from the system with the memory arena off; with it on, none.
    pub fresh_bytes: u64,
    /// How much of `peak_bytes` was found by measuring, not by simulating: what the simulation does not know of, such as layouts that the runtime
    /// changes to at load.
    pub calibration_bytes: u64,
    /// Whether the nodes run in the order of the plan.
    pub follows_plan: bool,
    /// Values whose size is not known: they count as nothing.
    pub unsized_values: Vec<String>,
    /// Nodes that run subgraphs of which something is not known before they run: that counts as nothing.
    pub open_nodes: Vec<String>,
}

impl Prediction {
    /// Most bytes at once in any run of a session where nothing is set: by so much the process grows, the code of kernels apart.
    #[must_use]
    pub fn default_bytes(&self) -> u64 {
        self.arena_bytes.max(self.arena_steady_bytes)
    }

    /// How well the file suits the arena where that is left on, the less the better: the square of the geometric mean of what the first run
    /// and later ones take.
    #[must_use]
    pub fn arena_square(&self) -> u128 {
        u128::from(self.arena_bytes) * u128::from(self.arena_steady_bytes)
    }
}

/// How a file is simulated.
#[derive(Clone, Copy)]
pub struct Simulated<'s> {
    /// Inside a branch, where less is taken there, with what its weights take once more ([`Lowered::doubled_bytes`]); `None`: outside.
    pub doubled_bytes: Option<u64>,
    /// Outside all the same, where later runs take at most so many bytes there.
    pub most_outside: u64,
    /// Asked again and again: whether to give up, with [`PredictError::CutOff`].
    pub is_over: &'s dyn Fn() -> bool,
}

impl Simulated<'_> {
    /// Outside of a branch, however long it takes.
    fn to_the_end() -> Self {
        Self {
            doubled_bytes: None,
            most_outside: 0,
            is_over: &|| false,
        }
    }

    fn goes_on(&self) -> Result<(), PredictError> {
        if (self.is_over)() {
            Err(PredictError::CutOff)
        } else {
            Ok(())
        }
    }
}

/// Simulates the runtime on a file that was made from `rewritten`, which stems from `model`.
///
/// # Errors
/// [`PredictError::Pipeline`] if the file cannot be read back, which would be a bug; [`PredictError::CutOff`] if `run` says that it is over.
pub fn simulate(
    model: &Model,
    rewritten: &Graph,
    lowered: &Lowered,
    order: OrderHint,
    run: &Simulated<'_>,
) -> Result<Prediction, PredictError> {
    run.goes_on()?;
    let (program, executed) = executed(model, rewritten, lowered, order)?;
    predicted(&program, &executed, rewritten, run)
}

/// Such a file as the runtime sees it, and the order in which its nodes run.
///
/// # Errors
/// As [`simulate`].
fn executed(
    model: &Model,
    rewritten: &Graph,
    lowered: &Lowered,
    order: OrderHint,
) -> Result<(Program, Vec<NodeIndex>), PredictError> {
    let written = OnnxModel::from_proto(lowered.proto.clone(), &looked_at())?;
    let workspace = workspaces(model, rewritten);
    let mut program = program(written.graph(), &workspace);
    state_the_truth(&mut program, rewritten, lowered);
    state_inferred_shapes(&mut program, rewritten, &lowered.proto);
    state_sizes(&mut program);
    let executed = match order {
        OrderHint::Any => default_order(&program),
        OrderHint::Priority => {
            program.run_bodies_by_priority();
            priority_order(&program)
        }
    };
    Ok((program, executed))
}

/// Simulates a run of what the runtime made of such a file when it loaded it and saved it again, to the file at `loaded`. Its nodes
/// stand there in the order in which they run. The file was loaded outside of a branch.
///
/// # Errors
/// [`PredictError::Pipeline`] if the file cannot be read; [`PredictError::CutOff`] as in [`simulate`].
pub fn simulate_loaded(
    loaded: &Path,
    rewritten: &Graph,
    lowered: &Lowered,
    device: &Device,
    run: &Simulated<'_>,
) -> Result<Prediction, PredictError> {
    run.goes_on()?;
    let loaded = OnnxModel::open(loaded, &looked_at())?;
    let proto = loaded.proto();
    let given = ImportOptions {
        dims: given_sizes(rewritten),
        ..looked_at()
    };
    let truth = OnnxModel::from_proto(with_known_zeros(proto.clone(), lowered), &given)?;
    let seen = OnnxModel::from_proto(with_seen_shapes(proto.clone(), lowered)?, &looked_at())?;
    run.goes_on()?;
    let truth = truth.graph();
    let costs = remat_cost::analytic(truth, device, remat_onnxruntime_sim::body_bytes).ops;
    let of_results = truth.ops.iter().zip(&costs).filter_map(|(op, cost)| {
        let result = op.results().next()?;
        Some((truth.tensors[result].name.as_str(), cost.workspace_bytes))
    });
    let mut program = program(seen.graph(), &of_results.collect());
    state_the_truth(&mut program, truth, lowered);
    state_inferred_shapes(&mut program, truth, proto);
    let executed: Vec<NodeIndex> = program.nodes.keys().collect();
    predicted(&program, &executed, rewritten, run)
}

/// Bytes that each node of a model takes for each of its subgraphs, on top of operands and results, by name; nodes are left out where that is not known.
///
/// # Errors
/// As [`simulate`].
pub fn bytes_by_body(model: &OnnxModel, order: OrderHint) -> Result<HashMap<String, Vec<u64>>, PredictError> {
    let seen = OnnxModel::from_proto(model.proto().clone(), &looked_at())?;
    let mut program = program(seen.graph(), &HashMap::new());
    state_the_truth(&mut program, model.graph(), &Lowered::as_it_is(ModelProto::default()));
    let graph = model.graph();
    let roots = graph
        .storages
        .iter()
        .map(|storage| (graph.tensors[storage.root].name.as_str(), storage.bytes));
    let stated: HashMap<&str, Option<u64>> = roots.collect();
    for value in program.values.iter_mut().filter(|value| value.bytes.is_none()) {
        value.bytes = stated.get(value.name.as_str()).copied().flatten();
    }
    if order == OrderHint::Priority {
        program.run_bodies_by_priority();
    }
    let nodes = program.nodes.iter();
    let known = nodes.filter_map(|node| {
        let bytes = remat_onnxruntime_sim::bytes_by_body(&program, node)?;
        Some((node.name.clone(), bytes))
    });
    Ok(known.collect())
}

/// A file that is looked at, not planned on.
fn looked_at() -> ImportOptions {
    ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    }
}

/// The sizes that dimensions of the inputs were given which the model leaves open.
fn given_sizes(graph: &Graph) -> BTreeMap<String, u64> {
    let inputs = graph.inputs.iter().map(|&input| &graph.tensors[input]);
    let dims = inputs.flat_map(|input| input.ty.dims().iter().enumerate().map(move |dim| (input, dim)));
    let given = dims.filter_map(|(input, (axis, dim))| match dim {
        Dim::Free { size, name: Some(name) } => Some((name.clone(), *size)),
        Dim::Free { size, name: None } => Some((format!("{}[{axis}]", input.name), *size)),
        _ => None,
    });
    given.collect()
}

/// The file with constants for the zeros that the runtime does not know, so that all shapes follow.
fn with_known_zeros(mut proto: ModelProto, lowered: &Lowered) -> ModelProto {
    let graph = proto.graph.mut_or_insert_default();
    for (name, length) in &lowered.zeros {
        let is_made = |node: &NodeProto| node.output.iter().any(|output| output == name);
        let before = graph.node.len();
        graph.node.retain(|node| !is_made(node));
        if graph.node.len() < before {
            graph.initializer.push(TensorProto {
                name: name.clone(),
                dims: vec![i64::try_from(*length).unwrap_or(i64::MAX)],
                data_type: DataType::INT64 as i32,
                int64_data: vec![0; *length],
                ..TensorProto::default()
            });
        }
    }
    proto
}

/// The file with the shapes that the runtime saw before it laid images out: it keeps them, and saves none.
fn with_seen_shapes(mut proto: ModelProto, lowered: &Lowered) -> Result<ModelProto, PredictError> {
    let written = OnnxModel::from_proto(lowered.proto.clone(), &looked_at())?;
    let sized = written.graph().tensors.iter();
    let sized = sized.filter(|tensor| tensor.ty.known_shape().is_some());
    let graph = proto.graph.mut_or_insert_default();
    let made: HashSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
    let outputs: HashSet<&String> = graph.output.iter().map(|output| &output.name).collect();
    let stated = sized.filter(|tensor| made.contains(&tensor.name) && !outputs.contains(&tensor.name));
    graph.value_info = stated
        .filter_map(|tensor| value_info(&tensor.name, &tensor.ty))
        .collect();
    Ok(proto)
}

/// What the runtime sees of a graph; `workspace` by the first result of an op. That of ops in subgraphs is missing.
fn program(graph: &Graph, workspace: &HashMap<&str, u64>) -> Program {
    Program::from_graph(graph, &|inner, op| {
        if !std::ptr::eq(inner, graph) {
            return 0;
        }
        let first = graph.ops[op].results().next();
        let of = |result: TensorId| workspace.get(graph.tensors[result].name.as_str()).copied();
        first.and_then(of).unwrap_or(0)
    })
}

/// What a run in this order takes, and whether it is the order of `rewritten`.
fn predicted(
    program: &Program,
    executed: &[NodeIndex],
    rewritten: &Graph,
    run: &Simulated<'_>,
) -> Result<Prediction, PredictError> {
    run.goes_on()?;
    let allocation = allocate(program, executed, &Settings { reuse: true });
    run.goes_on()?;
    let trace = heap(program, executed, &allocation);
    let in_arena = |pattern| {
        let settings = ArenaSettings {
            pattern,
            in_branch: !pattern,
            ..ArenaSettings::default()
        };
        arena_anywhere(program, executed, &allocation, &settings, run.is_over).ok_or(PredictError::CutOff)
    };
    let with_pattern = in_arena(true)?;
    // Subgraphs within the branch still have patterns of their own.
    let has_subgraphs = program.nodes.iter().any(|node| node.control.is_some());
    let doubled = run.doubled_bytes.filter(|_| !has_subgraphs);
    let without = doubled.map(|_| in_arena(false)).transpose()?;
    let in_branch = without.filter(|without| {
        let steady_peak = without.steady_peak.saturating_add(doubled.unwrap_or(0));
        with_pattern.steady_peak > run.most_outside
            && without.first_peak <= with_pattern.first_peak
            && steady_peak <= with_pattern.steady_peak / 1_000 * LEAST_GAIN_PERMILLE
    });
    let left_on = in_branch.unwrap_or(with_pattern);
    tracing::debug!(heap = trace.peak, ?left_on, "a file was simulated");
    let planned = places(rewritten);
    let places = executed.iter().filter_map(|&node| {
        let first = program.nodes[node].results().next()?;
        planned.get(program.values[first].name.as_str()).copied()
    });
    Ok(Prediction {
        peak_bytes: trace.peak,
        arena_bytes: left_on.first_peak,
        arena_steady_bytes: left_on.steady_peak,
        in_branch: in_branch.is_some(),
        fresh_bytes: fresh_bytes(program, executed, &allocation),
        calibration_bytes: 0,
        follows_plan: places.is_sorted(),
        unsized_values: trace
            .unsized_values
            .iter()
            .map(|&value| program.values[value].name.clone())
            .collect(),
        open_nodes: trace
            .open_nodes
            .iter()
            .map(|&node| program.nodes[node].name.clone())
            .collect(),
    })
}

/// The place of each run in the plan that `rewritten` was made for, by the name of its first result.
fn places(rewritten: &Graph) -> HashMap<&str, usize> {
    let runs = rewritten.ops.iter().filter(|op| op.kind.is_run());
    let named = runs.enumerate().filter_map(|(place, op)| {
        let result = op.results().next()?;
        Some((rewritten.tensors[result].name.as_str(), place))
    });
    named.collect()
}

/// Puts in that the result of `Size` is a number, whatever is known of its operand: order anchors, each of which takes a chunk of the arena to the end.
fn state_sizes(program: &mut Program) {
    let anchors = program.nodes.iter().filter(|node| node.op_type == "Size");
    for value in anchors.flat_map(Node::results) {
        let value = &mut program.values[value];
        (value.element, value.bytes) = (Some(ElementType::Int64), Some(8));
        value.visible = Shape::Known(Vec::new());
    }
}

/// Puts in shapes that the runtime infers and an import does not: of a Reshape to a constant without open extents, whatever is known of its operand, and
/// what follows from them, as `truth` has it.
fn state_inferred_shapes(program: &mut Program, truth: &Graph, proto: &ModelProto) {
    let targets: HashMap<&str, Vec<u64>> = constants(proto)
        .filter_map(|(name, constant)| Some((name, extents(constant)?)))
        .collect();
    let tensors = truth.tensors.iter();
    let fixed = tensors.filter(|tensor| !tensor.ty.has_free_dims());
    let shapes = fixed.filter_map(|tensor| Some((tensor.name.as_str(), tensor.ty.known_shape()?)));
    let shapes: HashMap<&str, Vec<u64>> = shapes.collect();
    let Program { nodes, values, .. } = program;
    let is_known = |value: &Value| match &value.visible {
        Shape::Known(dims) => dims.iter().all(|dim| dim.size().is_some()),
        Shape::Hidden => false,
    };
    for node in nodes.iter().filter(|node| node.control.is_none()) {
        // Integers may state a shape.
        let says_all = |&operand: &ValueId| {
            let value = &values[operand];
            is_known(value) && value.element != Some(ElementType::Int64)
        };
        let target = node.inputs.get(1).copied().flatten();
        let target = target.and_then(|target| targets.get(values[target].name.as_str()));
        let follows = !node.inputs.is_empty() && node.inputs.iter().flatten().all(says_all);
        let results: Vec<_> = node.results().filter(|&result| !is_known(&values[result])).collect();
        for result in results {
            let dims = match node.op_type.as_str() {
                "Reshape" => target,
                _ => shapes.get(values[result].name.as_str()).filter(|_| follows),
            };
            if let Some(dims) = dims {
                let element = node
                    .inputs
                    .first()
                    .copied()
                    .flatten()
                    .and_then(|operand| values[operand].element);
                let value = &mut values[result];
                value.visible = Shape::Known(dims.iter().copied().map(Dim::Known).collect());
                value.element = value.element.or(element.filter(|_| node.op_type == "Reshape"));
            }
        }
    }
}

/// The constants of a model, with their names.
fn constants(proto: &ModelProto) -> impl Iterator<Item = (&str, &TensorProto)> {
    let graph = proto.graph.iter();
    let nodes = graph.clone().flat_map(|graph| &graph.node);
    let made = nodes.filter(|node| node.op_type == "Constant").filter_map(|node| {
        let value = node.attribute.iter().find(|attribute| attribute.name == "value")?;
        Some((node.output.first()?.as_str(), value.t.as_ref()?))
    });
    let stored = graph.flat_map(|graph| &graph.initializer);
    stored.map(|tensor| (tensor.name.as_str(), tensor)).chain(made)
}

/// The extents that a constant lists, if all of them are stated.
fn extents(constant: &TensorProto) -> Option<Vec<u64>> {
    let [length] = constant.dims.as_slice() else {
        return None;
    };
    if constant.data_type != DataType::INT64 as i32 {
        return None;
    }
    let raw = constant.raw_data.chunks_exact(8).map(|bytes| {
        let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
        i64::from_le_bytes(bytes)
    });
    let listed = raw.chain(constant.int64_data.iter().copied());
    let extents: Vec<u64> = listed
        .map(|extent| u64::try_from(extent).ok().filter(|&extent| extent > 0))
        .collect::<Option<_>>()?;
    (i64::try_from(extents.len()) == Ok(*length)).then_some(extents)
}

/// Puts in what dynamic shapes keep from the runtime and what shapes would tell an importer: types and sizes, which the graph it was made
/// from knows. What was added to that graph are tensors.
fn state_the_truth(program: &mut Program, rewritten: &Graph, lowered: &Lowered) {
    let tensors = rewritten.tensors.iter();
    let mut types: HashMap<&str, &ValueType> = tensors.map(|tensor| (tensor.name.as_str(), &tensor.ty)).collect();
    types.extend(lowered.paged.iter().map(|(name, ty)| (name.as_str(), ty)));
    for value in &mut program.values {
        match types.get(value.name.as_str()) {
            Some(ty) => state_type(value, ty),
            None => value.kind = ValueKind::Tensor,
        }
        if lowered.reserve.as_deref() == Some(value.name.as_str()) {
            value.bytes = Some(lowered.report.reserved);
        }
    }
    state_the_truth_inside(program, rewritten);
}

/// Puts in the type that a value has at run time; its shape as the runtime sees it stays.
fn state_type(value: &mut Value, ty: &ValueType) {
    value.bytes = ty.bytes().ok().flatten().or(value.bytes);
    value.element = ty.element().or(value.element);
    if matches!(ty, ValueType::Tensor { .. }) {
        value.kind = ValueKind::Tensor;
    }
}

/// Puts in the truth for what stands in subgraphs of `graph`, which writing a file leaves as they are: types, sizes, the workspace of kernels, and how
/// often they run.
fn state_the_truth_inside(program: &mut Program, graph: &Graph) {
    let ops = graph.ops.iter().filter(|op| !op.bodies.is_empty());
    let first = |op: &remat_ir::Op| op.results().next().map(|result| graph.tensors[result].name.clone());
    let bodies: HashMap<String, &[Body]> = ops.filter_map(|op| Some((first(op)?, op.bodies.as_slice()))).collect();
    let Program { nodes, values, .. } = program;
    for node in nodes {
        let first = node.results().next().map(|result| values[result].name.as_str());
        let Some((control, bodies)) = node.control.as_mut().zip(first.and_then(|first| bodies.get(first))) else {
            continue;
        };
        for seen in control.bodies_mut() {
            let Some(known) = bodies.iter().find(|known| known.name == seen.name) else {
                continue;
            };
            seen.trips = known.trips.or(seen.trips);
            let truth = Program::from_graph(&known.graph, &remat_cost::kernel_bytes);
            let types: HashMap<&str, &ValueType> =
                known.graph.tensors.iter().map(|t| (t.name.as_str(), &t.ty)).collect();
            for value in &mut seen.program.values {
                if let Some(ty) = types.get(value.name.as_str()) {
                    state_type(value, ty);
                }
            }
            let kernels = truth.nodes.iter().map(|node| (node.name.as_str(), node.workspace));
            let kernels: HashMap<&str, u64> = kernels.collect();
            for node in &mut seen.program.nodes {
                node.workspace = kernels.get(node.name.as_str()).copied().unwrap_or(node.workspace);
            }
            state_the_truth_inside(&mut seen.program, &known.graph);
        }
    }
}

/// The kernel workspace of each op of `rewritten`, by the name of its first result.
fn workspaces<'g>(model: &Model, rewritten: &'g Graph) -> HashMap<&'g str, u64> {
    let (Some(graph), Some(profile)) = (model.graph(), model.profile()) else {
        return HashMap::new();
    };
    let costs = graph.ops.iter().zip(&profile.ops);
    let by_op: HashMap<&str, u64> = costs
        .map(|(op, cost)| (op.name.as_str(), cost.workspace_bytes))
        .collect();
    let of = |op: &'g remat_ir::Op| {
        let original = match op.kind {
            OpKind::Recompute { of } => &rewritten.ops[of],
            _ => op,
        };
        let result = op.results().next()?;
        let name = rewritten.tensors[result].name.as_str();
        Some((name, by_op.get(original.name.as_str()).copied()?))
    };
    rewritten.ops.iter().filter_map(of).collect()
}

/// What the model itself is predicted to take, without a plan.
///
/// # Errors
/// [`PredictError::Pipeline`] if it cannot be read back, which would be a bug.
pub fn simulated(model: &Model, order: OrderHint) -> Result<Prediction, PredictError> {
    let graph = remat::rewrite(model, &Solution::baseline(model)?)?;
    let (graph, onnx) = graph.zip(model.onnx()).ok_or(PredictError::NotOnnx)?;
    simulate(model, &graph, &as_it_is(onnx), order, &Simulated::to_the_end())
}

/// A model without a plan, as a file.
#[must_use]
pub fn as_it_is(onnx: &OnnxModel) -> Lowered {
    Lowered::as_it_is(onnx.proto().clone())
}

impl From<Prediction> for BaselinePeak {
    fn from(prediction: Prediction) -> Self {
        Self {
            bytes: prediction.peak_bytes,
            of: BaselineOf::Simulated,
        }
    }
}

/// A model with what the runtime takes for it as it is ([`Model::baseline_peak`]), as it is simulated; one whose plans do not count memory as the runtime
/// does is returned as it came ([`Model::is_for_runtime`]).
#[must_use]
pub fn with_simulated_baseline(model: Model) -> Model {
    if !model.is_for_runtime() {
        return model;
    }
    match simulated(&model, OrderHint::Any) {
        Ok(prediction) => model.with_baseline_peak(prediction.into()),
        Err(why) => {
            tracing::warn!("the original model cannot be simulated: {why}");
            model
        }
    }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
