//! What is compiled into the device: the program, the tensors and ops of the network whole and in tiles, and where each tensor lies.

use std::fmt::Write;

use remat::Model;
use remat::ir::{Attribute, Graph, Op, TensorId};
use remat::onnx::ImportOptions;
use remat::plan::Problem;
use remat_schedule::{Numbering, Schedule};
use rustc_hash::FxHashMap;

/// Where a tensor lies, as `run.c` names it.
#[derive(Clone, Copy)]
enum Place {
    Input,
    /// Floats from the first weight.
    Flash(u64),
    /// Number of the storage.
    Memory(u32),
    /// Nothing in it is computed with on the device.
    Nowhere,
}

/// The header that `run.c` includes.
pub(crate) fn header(whole: &Model, tiled: &Model, program: &[u8], memory: u64) -> String {
    let block = Schedule::open(program)
        .expect("a program")
        .block()
        .expect("with offsets");
    let input = whole.external_bytes().expect("a model").inputs;
    let (whole_graph, tiled_graph) = (graph_of(whole), graph_of(tiled));
    let (weights, count) = weights(&whole_graph);
    let mut text = String::new();
    for (name, value) in [
        ("MEMORY", memory),
        ("INPUT", input / 4),
        ("WEIGHTS", count),
        ("BLOCK", block.bytes / 4),
        ("WHOLE", sizes(whole.problem()).iter().sum::<u64>() / 4),
        ("STORAGES", sizes(tiled.problem()).len() as u64),
        ("WHOLE_OPS", whole.problem().ops.len() as u64),
        ("OPS", tiled.problem().ops.len() as u64),
    ] {
        line(&mut text, &format!("#define {name} {value}u"));
    }
    let bytes: Vec<String> = program.iter().map(u8::to_string).collect();
    line(
        &mut text,
        &format!("static const uint8_t program[] = {{{}}};", bytes.join(", ")),
    );
    let starts = sizes(whole.problem()).into_iter().scan(0, |end, size| {
        let start = *end;
        *end += size / 4;
        Some(start.to_string())
    });
    let starts: Vec<String> = starts.collect();
    line(
        &mut text,
        &format!("static const uint32_t whole_starts[] = {{{}}};", starts.join(", ")),
    );
    let sizes: Vec<String> = sizes(tiled.problem())
        .iter()
        .map(|size| (size / 4).to_string())
        .collect();
    line(
        &mut text,
        &format!("static const uint32_t sizes[] = {{{}}};", sizes.join(", ")),
    );
    network(&mut text, "whole", &whole_graph, whole.problem(), &weights);
    network(&mut text, "tiled", &tiled_graph, tiled.problem(), &weights);
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("strings take all");
}

/// The graph with the bounds of slices.
fn graph_of(model: &Model) -> Graph {
    let onnx = model.onnx().expect("an ONNX model");
    onnx.graph_with_integers(&ImportOptions::default())
        .expect("it was read before")
}

/// Bytes of the storages that ops make, by number.
fn sizes(problem: &Problem) -> Vec<u64> {
    let numbering = Numbering::of(problem);
    let storages = numbering.storages().iter();
    storages.map(|&id| problem.storages[id].bytes).collect()
}

/// By name, where each weight begins; and how many numbers there are.
fn weights(graph: &Graph) -> (FxHashMap<String, u64>, u64) {
    let mut count = 0;
    let mut places = FxHashMap::default();
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if tensor.producer.is_none() && !graph.inputs.contains(&id) {
            places.insert(tensor.name.clone(), count);
            count += dims(graph, id).iter().product::<u64>();
        }
    }
    (places, count)
}

/// Dimensions, ones added at the end.
fn dims(graph: &Graph, tensor: TensorId) -> [u64; 4] {
    let mut dims = graph.tensors[tensor].ty.known_shape().expect("shapes are known");
    dims.resize(4, 1);
    dims.try_into().expect("of up to four axes")
}

fn network(text: &mut String, name: &str, graph: &Graph, problem: &Problem, weights: &FxHashMap<String, u64>) {
    let mut places: FxHashMap<TensorId, Place> = FxHashMap::default();
    let numbering = Numbering::of(problem);
    for (id, tensor) in graph.tensors.iter_enumerated() {
        let own = numbering.number(problem.tensors[id].storage).map(Place::Memory);
        let place = match tensor.producer {
            None if graph.inputs.contains(&id) => Place::Input,
            None => weights.get(&tensor.name).map_or(Place::Nowhere, |&at| Place::Flash(at)),
            Some(producer) => own.unwrap_or_else(|| rows_of_weights(graph, &graph.ops[producer], &places)),
        };
        places.insert(id, place);
    }
    let mut tensors = Vec::new();
    for (id, _) in graph.tensors.iter_enumerated() {
        let (kind, at) = match places[&id] {
            Place::Input => ("FROM_INPUT", 0),
            Place::Flash(at) => ("IN_FLASH", at),
            Place::Memory(number) => ("IN_MEMORY", u64::from(number)),
            Place::Nowhere => ("NOWHERE", 0),
        };
        let [n, c, h, w] = dims(graph, id);
        tensors.push(format!("{{{{{n}, {c}, {h}, {w}}}, {kind}, {at}}}"));
    }
    let mut operands: Vec<String> = Vec::new();
    let mut ops = Vec::new();
    for op in &graph.ops {
        let first = operands.len();
        operands.extend(op.reads().map(|operand| operand.index().to_string()));
        let result = op.results().next().expect("it computes something");
        let kind = match (op.op_type.as_str(), places[&result]) {
            ("Flatten", _) | (_, Place::Flash(_)) => "VIEW".to_owned(),
            (kind, _) => kind.to_uppercase(),
        };
        let pads = op
            .attributes
            .get("pads")
            .and_then(Attribute::as_ints)
            .unwrap_or(&[0; 4]);
        let strides = op
            .attributes
            .get("strides")
            .and_then(Attribute::as_ints)
            .unwrap_or(&[1; 2]);
        let (axis, start) = rows(graph, op);
        let int = |name: &str, default| op.attributes.get(name).and_then(Attribute::as_int).unwrap_or(default);
        let group = int("group", 1);
        let count = operands.len() - first;
        let (result, stride, top, left) = (result.index(), strides[0], pads[0], pads[1]);
        ops.push(format!(
            "{{{kind}, {first}, {count}, {result}, {stride}, {top}, {left}, {group}, {axis}, {start}}}"
        ));
    }
    line(
        text,
        &format!("static const tensor {name}_tensors[] = {{{}}};", tensors.join(", ")),
    );
    line(
        text,
        &format!("static const uint32_t {name}_operands[] = {{{}}};", operands.join(", ")),
    );
    line(
        text,
        &format!("static const op {name}_ops[] = {{{}}};", ops.join(",\n  ")),
    );
}

/// The axis along which a `Slice` or `Concat` works, and where a slice begins.
fn rows(graph: &Graph, op: &Op) -> (i64, i64) {
    let constant = |place: usize| {
        let operand = op.inputs[place].expect("slices have bounds and axes");
        graph.values[&operand][0]
    };
    match op.op_type.as_str() {
        "Slice" => (constant(3), constant(1)),
        "Concat" => (op.attributes["axis"].as_int().expect("an axis"), 0),
        _ => (0, 0),
    }
}

/// Rows of the first axis of weights lie where the weights lie.
fn rows_of_weights(graph: &Graph, op: &Op, places: &FxHashMap<TensorId, Place>) -> Place {
    let operand = op.inputs[0].expect("it has an operand");
    let (Place::Flash(at), (0, start)) = (places[&operand], rows(graph, op)) else {
        return Place::Nowhere;
    };
    assert_eq!(op.op_type, "Slice", "constants are sliced only");
    let row: u64 = dims(graph, operand)[1..].iter().product();
    Place::Flash(at + u64::try_from(start).expect("slices begin at a row") * row)
}
