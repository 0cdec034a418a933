//! What the ops of a model take in ONNX Runtime, as a profile of the model: the runtime's nodes mapped back to the model's.

use std::path::Path;

use remat_cost::{OpRecord, OutputRecord, PROFILE_FORMAT, ProfileFile, RunRecord};
use remat_onnx::OnnxModel;
use remat_onnx::proto::{FunctionProto, ModelProto, NodeProto};
use remat_onnxruntime_run::{
    ChildLimits, Host, OptimizationLevel, ProfileInputs, ProfileOptions, ProfiledNode, RunProfile, RuntimeError,
    SessionSettings,
};
use rustc_hash::FxHashMap;

/// How a model is profiled, and what the profile says of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileRequest {
    /// How the session is made. The level is always `Off`: only then do the nodes that run have names of the model.
    pub settings: SessionSettings,
    /// How often and on what the model runs.
    pub options: ProfileOptions,
    /// The machine, in words.
    pub device: String,
    /// The date, in ISO 8601: libraries read no clock.
    pub date: Option<String>,
}

/// Runs the model at `path`, of which `model` is the content, and states what each of its ops takes.
///
/// Casts that the runtime drops take nothing. Ops that it replaces by several nodes (calls of functions) take the sum of theirs, as
/// far as it is known whose they are; otherwise they are left out.
///
/// # Errors
/// [`RuntimeError`].
pub fn measured_profile(
    host: &Host,
    limits: ChildLimits<'_>,
    path: &Path,
    model: &OnnxModel,
    request: &ProfileRequest,
) -> Result<ProfileFile, RuntimeError> {
    let settings = SessionSettings {
        level: OptimizationLevel::Off,
        ..request.settings.clone()
    };
    let profile = remat_onnxruntime_run::profile(&host.runner(limits), path, &settings, &request.options)?;
    let ops = records(model, &profile);
    tracing::info!(nodes = profile.nodes.len(), ops = ops.len(), "the model was profiled");
    let (provider, level) = (settings.provider.to_string(), settings.level.to_string());
    let runtime = format!("ONNX Runtime {}", profile.runtime);
    let runs = request.options.runs.max(1);
    Ok(ProfileFile {
        format: PROFILE_FORMAT.to_owned(),
        device: request.device.clone(),
        method: format!(
            "median of {runs} warm runs, {runtime}, provider {provider}, level {level}, threads {}",
            settings.threads
        ),
        date: request.date.clone(),
        run: Some(RunRecord {
            runtime,
            provider,
            threads: settings.threads as u64,
            level,
            arena: settings.arena,
            memory_pattern: settings.memory_pattern,
            runs: u64::from(runs),
            inputs: match &request.options.inputs {
                ProfileInputs::Seeded(seed) => format!("seed {seed}"),
                ProfileInputs::Given(_) => "files".to_owned(),
            },
            dims: settings.dims,
            run_ns: profile.run_ns,
        }),
        ops,
    })
}

/// One record for each op whose time is known, in the order of the graph.
fn records(model: &OnnxModel, profile: &RunProfile) -> Vec<OpRecord> {
    let nodes = &model.proto().graph.get_or_default().node;
    let ran = Owners::of(model.proto()).assign(nodes, &profile.nodes);
    let record = |op: &remat_ir::Op| {
        let source = op.source? as usize;
        let (node, ran) = (&nodes[source], &ran[source]);
        let duration_ns = match ran[..] {
            // The runtime drops casts that undo each other.
            [] if node.op_type == "Cast" => 0,
            [] => return None,
            _ => ran.iter().map(|node| node.duration_ns).fold(0, u64::saturating_add),
        };
        Some(OpRecord {
            node: op.name.clone(),
            duration_ns,
            workspace_bytes: None,
            outputs: outputs(node, ran),
        })
    };
    model.graph().ops.iter().filter_map(record).collect()
}

/// The results of a node that ran as it stands in the file. The runtime states those that are tensors: which ones these are is known where
/// all are.
fn outputs(node: &NodeProto, ran: &[&ProfiledNode]) -> Vec<OutputRecord> {
    let names: Vec<&String> = node.output.iter().filter(|name| !name.is_empty()).collect();
    match ran {
        [ran] if ran.op_type == node.op_type && ran.outputs.len() == names.len() => {
            let record = |(name, output): (&&String, &remat_onnxruntime_run::ProfiledOutput)| OutputRecord {
                tensor: (*name).clone(),
                element: output.element.clone(),
                shape: output.shape.clone(),
                bytes: output.bytes(),
            };
            names.iter().zip(&ran.outputs).map(record).collect()
        }
        _ => Vec::new(),
    }
}

/// By the runtime's number of a node: the operator, and the place in the file of the node that it stems from.
///
/// The runtime makes constants of `Constant` nodes first and numbers the others in the order of the file. Then it puts the bodies of
/// functions in place of their calls, all calls of one level of nesting before those of the next; the nodes of the bodies are
/// numbered on.
struct Owners<'m> {
    nodes: Vec<(&'m str, usize)>,
    /// How many of them stand in the file.
    in_file: usize,
}

/// More nodes than this are not followed: functions that call each other can make exponentially many.
const MOST_NODES: usize = 1 << 20;

impl<'m> Owners<'m> {
    fn of(model: &'m ModelProto) -> Self {
        let key = |domain: &'m str, name: &'m str| (if domain == "ai.onnx" { "" } else { domain }, name);
        let functions: FxHashMap<_, &FunctionProto> = model
            .functions
            .iter()
            .map(|function| (key(&function.domain, &function.name), function))
            .collect();
        let body = |node: &'m NodeProto| functions.get(&key(&node.domain, &node.op_type));
        let is_constant = |node: &NodeProto| node.op_type == "Constant" && matches!(&*node.domain, "" | "ai.onnx");
        let main = model.graph.get_or_default().node.iter().enumerate();
        let mut nodes: Vec<(&NodeProto, usize)> = main
            .filter(|(_, node)| !is_constant(node))
            .map(|(place, node)| (node, place))
            .collect();
        let in_file = nodes.len();
        let mut level = 0..in_file;
        while !level.is_empty() && nodes.len() < MOST_NODES {
            for index in level.clone() {
                let (node, place) = nodes[index];
                let inner = body(node).map_or(&[][..], |function| &function.node);
                nodes.extend(inner.iter().filter(|node| !is_constant(node)).map(|node| (node, place)));
            }
            level = level.end..nodes.len();
        }
        let nodes = nodes.into_iter().map(|(node, place)| (node.op_type.as_str(), place));
        Self {
            nodes: nodes.collect(),
            in_file,
        }
    }

    /// For each node of the file, the nodes that ran for it.
    fn assign<'r>(&self, file: &[NodeProto], ran: &'r [ProfiledNode]) -> Vec<Vec<&'r ProfiledNode>> {
        let mut assigned = vec![Vec::new(); file.len()];
        let mut strangers = Vec::new();
        let owner = |node: &ProfiledNode| {
            let known = self
                .nodes
                .get(node.index)
                .filter(|(op_type, _)| *op_type == node.op_type);
            known.map(|&(_, place)| place)
        };
        // Operators that ONNX defines as functions are replaced too, by bodies that only the runtime knows: then no number behind the
        // file's is to be trusted.
        let (in_file, added): (Vec<_>, Vec<_>) = ran.iter().partition(|node| node.index < self.in_file);
        let are_known = added.iter().all(|node| owner(node).is_some());
        for node in in_file {
            match owner(node) {
                Some(place) => assigned[place].push(node),
                None => strangers.push(node),
            }
        }
        for node in added {
            match owner(node).filter(|_| are_known) {
                Some(place) => assigned[place].push(node),
                None => strangers.push(node),
            }
        }
        if !strangers.is_empty() {
            let idle = |place: &usize| {
                let op_type = file[*place].op_type.as_str();
                assigned[*place].is_empty() && !matches!(op_type, "Constant" | "Cast")
            };
            let idle: Vec<usize> = (0..file.len()).filter(idle).collect();
            if let [only] = idle[..] {
                assigned[only] = strangers;
            } else {
                tracing::info!(
                    nodes = strangers.len(),
                    "nodes that the runtime added cannot be told to stem from one op: their times are left out"
                );
            }
        }
        assigned
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
