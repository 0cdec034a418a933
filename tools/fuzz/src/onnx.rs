//! ONNX models.

use std::collections::BTreeMap;

use remat_cost::{ProblemOptions, analytic, problem};
use remat_ir::{Dim, Graph, StorageClass, ValueType};
use remat_onnx::proto::Message;
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use remat_onnxruntime_sim::body_bytes;
use remat_rewrite::rewrite;

use crate::{graph, judge};

/// Longest model that is looked at.
const MOST_BYTES: usize = 1 << 17;
/// Ops of a model that is exported and read again.
const MOST_OPS: usize = 400;

fn read(data: &[u8], options: &ImportOptions) -> Result<OnnxModel, OnnxError> {
    OnnxModel::from_bytes(data, None, options)
}

/// Imports a model, plans it, and exports it rewritten. What was exported imports as what was planned.
pub(crate) fn import(data: &[u8]) -> bool {
    if data.len() > MOST_BYTES {
        return false;
    }
    let Ok(model) = read(data, &ImportOptions::default()) else {
        return false;
    };
    let imported = model.graph();
    assert_eq!(imported.validate(), Ok(()));
    let mut results = imported
        .storages
        .iter()
        .filter(|storage| storage.class == StorageClass::Intermediate);
    assert!(results.all(|storage| storage.bytes.is_some()));
    let profile = analytic(imported, &graph::device(), body_bytes);
    let problem = match problem(imported, &profile, &ProblemOptions::default()) {
        Ok(problem) => problem,
        Err(error) => {
            assert!(
                graph::is_about_sizes(&error),
                "an imported graph is not a problem: {error}"
            );
            return true;
        }
    };
    let reserved = model.reserved_names();
    for (problem, plan) in judge::plans(&problem) {
        let rewritten = rewrite(imported, &problem, &plan, &|name| reserved.contains(name));
        let rewritten = rewritten.expect("a plan that the checker accepts can be applied");
        assert_eq!(rewritten.validate(), Ok(()));
        is_exported(&model, &rewritten);
    }
    true
}

/// What was rewritten is written, and reads as the same runs with the same outputs.
fn is_exported(model: &OnnxModel, rewritten: &Graph) {
    let bytes = model.export(rewritten).expect("a rewritten graph is exported");
    let again = read(&bytes, &ImportOptions::default()).expect("what was exported is imported");
    let runs = |graph: &Graph| -> Vec<(String, usize)> {
        let runs = graph.ops.iter().filter(|op| op.kind.is_run());
        runs.map(|op| (op.op_type.clone(), op.inputs.len())).collect()
    };
    let (expected, found) = (runs(rewritten), runs(again.graph()));
    let mut readers = found.iter();
    // Readers of what is left unread stand between them.
    assert!(
        expected.iter().all(|run| readers.any(|other| other == run)),
        "{expected:?} became {found:?}"
    );
    let outputs = |graph: &Graph| -> Vec<String> {
        graph
            .outputs
            .iter()
            .map(|&output| graph.tensors[output].name.clone())
            .collect()
    };
    assert_eq!(outputs(rewritten), outputs(again.graph()));
}

/// Imports a model and exports it unchanged: the same message, which imports as the same graph.
pub(crate) fn export(data: &[u8]) -> bool {
    let options = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    if data.len() > MOST_BYTES {
        return false;
    }
    let Ok(model) = read(data, &options) else { return false };
    if model.graph().ops.len() > MOST_OPS {
        return true;
    }
    let exported = model.export(model.graph()).expect("an imported graph is exported");
    let again = read(&exported, &options).expect("what was exported is imported");
    if is_sorted(model.graph()) {
        assert_eq!(again.graph(), model.graph());
        let message = model.proto().write_to_bytes().expect("what was imported is a message");
        assert!(exported == message, "an unchanged model is written as another message");
    } else {
        // Nodes without names are called after their places, which change.
        assert_eq!(unnamed(again.graph()), unnamed(model.graph()));
    }
    true
}

/// Whether the file has its nodes in the order of the graph.
fn is_sorted(graph: &Graph) -> bool {
    let sources = graph.ops.iter().map(|op| op.source);
    sources.enumerate().all(|(at, source)| source == u32::try_from(at).ok())
}

/// The graph without the names of its ops and their places in the file.
fn unnamed(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for op in &mut graph.ops {
        op.name.clear();
        op.source = None;
    }
    graph
}

/// Imports a model with its dimensions open, and with values for them: the same tensors, in a valid graph. Shapes cannot be compared: values
/// that contradict the model count before what is inferred.
pub(crate) fn shapes(data: &[u8]) -> bool {
    if data.len() > MOST_BYTES {
        return false;
    }
    let open = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let Ok(model) = read(data, &open) else { return false };
    assert_eq!(model.graph().validate(), Ok(()));
    let mut dims = BTreeMap::new();
    for tensor in &model.graph().tensors {
        symbols(&tensor.ty, &mut dims);
    }
    for value in [1, 3] {
        dims.values_mut().for_each(|dim| *dim = value);
        let given = ImportOptions {
            dims: dims.clone(),
            ..open.clone()
        };
        // Shapes may fit for other values only, and names of dimensions may come from inference.
        let Ok(settled) = read(data, &given) else { continue };
        assert_eq!(settled.graph().validate(), Ok(()));
        for (before, after) in model.graph().tensors.iter().zip(&settled.graph().tensors) {
            assert_eq!(before.name, after.name);
        }
    }
    true
}

fn symbols(ty: &ValueType, found: &mut BTreeMap<String, u64>) {
    match ty {
        ValueType::Tensor { shape, .. } | ValueType::SparseTensor { shape, .. } => {
            for dim in shape.iter().flatten() {
                if let Dim::Symbol(name) = dim {
                    found.insert(name.clone(), 1);
                }
            }
        }
        ValueType::Sequence(inner) | ValueType::Optional(inner) => symbols(inner, found),
        ValueType::Map { value, .. } => symbols(value, found),
        ValueType::Unknown => {}
    }
}
