//! Models whose batch may be run in parts: what the proof accepts computes each member by itself, and what mixes members is refused with its node.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use protobuf::Message;
use remat::IndependentBatch;
use remat_ir::ElementType;
use remat_onnx::proto::{GraphProto, NodeProto};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_testing::onnx::{FLOAT, INT64, NodeExt, graph, integers, model, node, numbers, tensor_type};
use remat_testing::{Array, Trial, evaluate_op, trial};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(an_attention_whose_shapes_are_computed_has_its_members_apart),
        trial!(a_mask_that_members_find_by_their_place_is_their_own),
        trial!(a_batch_that_is_merged_with_positions_is_one_axis_of_equal_parts),
        trial!(what_mixes_members_is_refused_with_its_node),
        trial!(what_is_accepted_computes_parts_as_it_computes_the_whole),
        trial!(rows_of_packed_weights_keep_their_bits_and_lone_ones_may_not),
        trial!(a_dimension_that_is_not_there_is_told_with_those_that_are),
    ]
}

/// A model as a file.
struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    fn of(graph: GraphProto) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model(graph).write_to_bytes().unwrap()).unwrap();
        Self { _folder: folder, path }
    }

    fn batch(&self) -> Result<IndependentBatch, String> {
        IndependentBatch::open(&self.path, Some("batch"), &BTreeMap::new()).map_err(|error| error.to_string())
    }
}

/// A model of input `x` and output `y`, which is computed last.
fn chain(dims: &str, nodes: Vec<NodeProto>, lists: &[(&str, &[i64])], weights: &[(&str, &[i64])]) -> File {
    let mut built = graph(&[("x", tensor_type(FLOAT, dims))], nodes, &["y"]);
    built
        .initializer
        .extend(lists.iter().map(|(name, values)| integers(name, values)));
    built
        .initializer
        .extend(weights.iter().map(|(name, dims)| numbers(name, dims)));
    File::of(built)
}

/// An attention over `[batch, seq, 8]` with two heads, whose shapes follow from that of the input.
fn attention() -> File {
    let heads = |from: &str, to: &str| {
        vec![
            node("MatMul", &["x", from], &[&format!("{to}_p")]),
            node("Reshape", &[&format!("{to}_p"), "apart"], &[&format!("{to}_r")]),
            node("Transpose", &[&format!("{to}_r")], &[to])
                .ints("perm", if to == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] }),
        ]
    };
    let mut nodes = vec![
        node("Shape", &["x"], &["shape"]),
        node("Gather", &["shape", "zero"], &["b"]),
        node("Gather", &["shape", "one"], &["s"]),
        node("Concat", &["b", "s", "heads", "left"], &["apart"]).int("axis", 0),
        node("Concat", &["b", "s", "eight"], &["joined"]).int("axis", 0),
    ];
    nodes.extend(
        [("wq", "q"), ("wk", "k"), ("wv", "v")]
            .into_iter()
            .flat_map(|(w, to)| heads(w, to)),
    );
    nodes.extend([
        node("MatMul", &["q", "k"], &["scores"]),
        node("Softmax", &["scores"], &["shares"]).int("axis", -1),
        node("MatMul", &["shares", "v"], &["mixed"]),
        node("Transpose", &["mixed"], &["back"]).ints("perm", &[0, 2, 1, 3]),
        node("Reshape", &["back", "joined"], &["flat"]),
        node("Add", &["flat", "x"], &["y"]),
    ]);
    let lists: [(&str, &[i64]); 5] = [
        ("zero", &[0]),
        ("one", &[1]),
        ("heads", &[2]),
        ("left", &[-1]),
        ("eight", &[8]),
    ];
    chain(
        "batch seq 8",
        nodes,
        &lists,
        &[("wq", &[8, 8]), ("wk", &[8, 8]), ("wv", &[8, 8])],
    )
}

fn an_attention_whose_shapes_are_computed_has_its_members_apart() {
    let found = attention().batch().unwrap();
    assert_eq!(found.inputs().collect::<Vec<_>>(), [("x", Some(0))]);
    assert_eq!(found.outputs().collect::<Vec<_>>(), [("y", Some(0))]);
}

/// Rows of a mask by `[place in the batch, position]`, as exporters write it; the first index of them may be another one.
fn masked(place: NodeProto) -> File {
    let nodes = vec![
        node("Shape", &["x"], &["b"]).int("start", 0).int("end", 1),
        node("Shape", &["x"], &["s"]).int("start", 1).int("end", 2),
        node("Squeeze", &["b", "first"], &["b0"]),
        node("Squeeze", &["s", "first"], &["s0"]),
        node("Range", &["none", "b0", "step"], &["places"]),
        place,
        node("Range", &["none", "s0", "step"], &["positions"]),
        node("Unsqueeze", &["chosen", "second"], &["column"]),
        node("Concat", &["b", "s"], &["both"]).int("axis", 0),
        node("Expand", &["column", "both"], &["rows"]),
        node("Expand", &["positions", "both"], &["columns"]),
        node("Unsqueeze", &["rows", "third"], &["i"]),
        node("Unsqueeze", &["columns", "third"], &["j"]),
        node("Concat", &["i", "j"], &["indices"]).int("axis", -1),
        node("GatherND", &["mask", "indices"], &["own"]).named("by_place"),
        node("Mul", &["x", "own"], &["y"]).named("product"),
    ];
    let inputs = [
        ("x", tensor_type(FLOAT, "batch seq")),
        ("mask", tensor_type(FLOAT, "batch seq")),
    ];
    let mut built = graph(&inputs, nodes, &["y"]);
    for (name, values) in [("first", 0), ("second", 1), ("third", 2)] {
        built.initializer.push(integers(name, &[values]));
    }
    for (name, value) in [("none", 0), ("step", 1)] {
        let mut scalar = integers(name, &[value]);
        scalar.dims.clear();
        built.initializer.push(scalar);
    }
    File::of(built)
}

fn a_mask_that_members_find_by_their_place_is_their_own() {
    let found = masked(node("Identity", &["places"], &["chosen"])).batch().unwrap();
    assert_eq!(found.inputs().collect::<Vec<_>>(), [("x", Some(0)), ("mask", Some(0))]);
    // That of the member before, or of the first one.
    for other in [
        node("Sub", &["places", "step"], &["chosen"]),
        node("Mul", &["places", "none"], &["chosen"]),
    ] {
        let error = masked(other).batch().unwrap_err();
        assert!(error.contains("`by_place` (GatherND)"), "{error}");
    }
}

fn a_batch_that_is_merged_with_positions_is_one_axis_of_equal_parts() {
    let nodes = vec![
        node("Reshape", &["x", "rows"], &["flat"]).named("merge"),
        node("Gemm", &["flat", "w"], &["y"]).named("product"),
    ];
    let found = chain("batch seq 8", nodes, &[("rows", &[-1, 8])], &[("w", &[8, 4])]).batch();
    assert_eq!(found.unwrap().outputs().collect::<Vec<_>>(), [("y", Some(0))]);
    // With positions outside, the rows of a member lie apart.
    let nodes = vec![
        node("Transpose", &["x"], &["t"]).ints("perm", &[1, 0, 2]),
        node("Reshape", &["t", "rows"], &["y"]).named("merge"),
    ];
    let error = chain("batch seq 8", nodes, &[("rows", &[-1, 8])], &[])
        .batch()
        .unwrap_err();
    assert!(error.contains("`merge` (Reshape)"), "{error}");
}

fn what_mixes_members_is_refused_with_its_node() {
    let named = |op: &str, inputs: &[&str]| node(op, inputs, &["y"]).named("mixes");
    let shape = || node("Shape", &["x"], &["shape"]).int("start", 0).int("end", 1);
    let count = || {
        node("Cast", &["shape"], &["count"])
            .int("to", i64::from(FLOAT))
            .named("count")
    };
    let cases: Vec<(&str, Vec<NodeProto>)> = vec![
        (
            "puts members together",
            vec![named("ReduceMean", &["x"]).ints("axes", &[0])],
        ),
        ("puts members together", vec![named("Softmax", &["x"]).int("axis", 0)]),
        (
            "puts members together",
            vec![named("Concat", &["x", "x"]).int("axis", 0)],
        ),
        ("", vec![named("Reshape", &["x", "flat"])]),
        ("", vec![named("Gather", &["x", "first"]).int("axis", 0)]),
        ("", vec![named("Slice", &["x", "one", "many", "axis0"])]),
        // All members of a small batch.
        ("", vec![named("Slice", &["x", "zero1", "hundred", "axis0"])]),
        ("puts members together", vec![named("CumSum", &["x", "zero"])]),
        ("no rule", vec![named("ReverseSequence", &["x", "lengths"])]),
        (
            "size of the batch",
            vec![shape(), count(), named("Div", &["x", "count"])],
        ),
        ("random", vec![named("RandomNormalLike", &["x"])]),
        (
            "",
            vec![
                node("Transpose", &["x"], &["t"]).ints("perm", &[1, 0, 2]),
                named("MatMul", &["x", "t"]),
            ],
        ),
        (
            "place of a member",
            vec![
                shape(),
                node("Slice", &["table", "zero1", "shape", "axis0"], &["y0"]).named("mixes"),
                node("Add", &["x", "y0"], &["y"]),
            ],
        ),
    ];
    for (why, nodes) in cases {
        let text = format!("{:?}", nodes.iter().map(|node| &node.op_type).collect::<Vec<_>>());
        let lists: [(&str, &[i64]); 9] = [
            ("hundred", &[100]),
            ("flat", &[8, -1]),
            ("first", &[0]),
            ("one", &[1]),
            ("many", &[1 << 40]),
            ("axis0", &[0]),
            ("zero", &[0]),
            ("zero1", &[0]),
            ("lengths", &[1, 2, 2]),
        ];
        let file = chain("batch 3 4", nodes, &lists, &[("table", &[2048, 3, 4])]);
        let error = file.batch().map(|_| text.clone()).unwrap_err();
        assert!(error.contains("`mixes`") && error.contains(why), "{text}: {error}");
    }
    let statistics: [(&str, &[i64]); 4] = [("s", &[3]), ("b", &[3]), ("m", &[3]), ("v", &[3])];
    let norm = node("BatchNormalization", &["x", "s", "b", "m", "v"], &["y", "m1", "v1"]).named("mixes");
    let error = chain("batch 3 4", vec![norm.int("training_mode", 1)], &[], &statistics).batch();
    let error = error.map(|_| ()).unwrap_err();
    assert!(
        error.contains("`mixes` (BatchNormalization)") && error.contains("state"),
        "{error}"
    );
    let error = chain("batch 3", vec![node("Shape", &["x"], &["y"])], &[], &[]).batch();
    assert!(error.map(|_| ()).unwrap_err().contains("output `y`"));
}

/// A step of a random model: an operator on the tensor so far, of three axes.
#[derive(Clone, Debug)]
struct Step {
    kind: usize,
    axis: i64,
    perm: Vec<i64>,
}

impl Step {
    fn nodes(&self, at: usize) -> Vec<NodeProto> {
        let (from, to) = (format!("t{at}"), format!("t{}", at + 1));
        let (from, to) = (from.as_str(), to.as_str());
        let inner = format!("i{at}");
        let one = |op: &str| node(op, &[from], &[to]);
        match self.kind {
            0 => vec![one("Relu")],
            1 => vec![one("Transpose").ints("perm", &self.perm)],
            2 => vec![one("Softmax").int("axis", self.axis)],
            3 => vec![node("Concat", &[from, from], &[to]).int("axis", self.axis)],
            4 => vec![
                node("ReduceSum", &[from, "axis0"], &[&inner]),
                node("Add", &[from, &inner], &[to]),
            ],
            5 => vec![node("Slice", &[from, "from0", "to2", "axis2"], &[to])],
            6 => vec![
                node("Reshape", &[from, "merged"], &[&inner]),
                node("Reshape", &[&inner, "split"], &[to]),
            ],
            7 => vec![
                node("Transpose", &[from], &[&inner]).ints("perm", &[0, 2, 1]),
                node("MatMul", &[from, &inner], &[to]),
            ],
            8 => vec![
                node("Shape", &[from], &[&inner]),
                node("Expand", &[from, &inner], &[to]),
            ],
            9 => vec![node("Add", &[from, "t0"], &[to])],
            10 => vec![node("LayerNormalization", &[from, "scale"], &[to]).int("axis", self.axis)],
            _ => vec![one("Neg")],
        }
    }
}

/// Every tensor that a graph computes at one size of the batch, from the members of `x` that are given.
fn computed(model: &OnnxModel, members: usize, x: &Array) -> Option<BTreeMap<String, Array>> {
    let options = ImportOptions {
        dims: [("batch".to_owned(), members as u64)].into(),
        open_sizes: true,
        ..ImportOptions::default()
    };
    let graph = model.graph_with_integers(&options).ok()?;
    let known = model.known_values(&options).ok()?;
    let mut values: BTreeMap<String, Array> = BTreeMap::new();
    values.insert("x".to_owned(), x.clone());
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if let Some(value) = known
            .get(&tensor.name)
            .filter(|value| value.element == ElementType::Int64)
        {
            let data = value.bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()));
            let (dims, data) = (value.dims.clone(), data.collect());
            values.insert(tensor.name.clone(), Array { dims, data });
        } else if tensor.producer.is_none() && tensor.name != "x" {
            let dims = graph.tensors[id].ty.known_shape()?;
            let dims = dims.into_iter().map(|dim| usize::try_from(dim).unwrap()).collect();
            values.insert(tensor.name.clone(), Array::of_name(&tensor.name, dims));
        }
    }
    for op in &graph.ops {
        let name = |tensor: remat_ir::TensorId| graph.tensors[tensor].name.clone();
        let results: Vec<String> = op.results().map(name).collect();
        if results.iter().all(|result| values.contains_key(result)) {
            continue;
        }
        let operands: Vec<Option<&Array>> = op.inputs.iter().map(|input| values.get(&name((*input)?))).collect();
        let found = evaluate_op(op, &operands);
        values.extend(results.into_iter().zip(found));
    }
    Some(values)
}

fn what_is_accepted_computes_parts_as_it_computes_the_whole() {
    let step = (0..12_usize, -3..3_i64, Just(vec![0, 1, 2]).prop_shuffle());
    let step = step.prop_map(|(kind, axis, perm)| Step { kind, axis, perm });
    let steps = prop::collection::vec(step, 1..6);
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..remat_testing::cases(300)
    });
    let result = runner.run(&steps, |steps| {
        let mut nodes = vec![node("Identity", &["x"], &["t0"])];
        nodes.extend(steps.iter().enumerate().flat_map(|(at, step)| step.nodes(at)));
        nodes.push(node("Identity", &[&format!("t{}", steps.len())], &["y"]));
        let lists: [(&str, &[i64]); 6] = [
            ("axis0", &[0]),
            ("axis2", &[2]),
            ("from0", &[0]),
            ("to2", &[2]),
            ("merged", &[-1, 4]),
            ("split", &[-1, 6, 4]),
        ];
        let file = chain("batch 6 4", nodes, &lists, &[("scale", &[1])]);
        let Ok(batch) = file.batch() else {
            refused.set(refused.get() + 1);
            return Ok(());
        };
        accepted.set(accepted.get() + 1);
        let axis = batch.outputs().next().unwrap().1.unwrap();
        let model = OnnxModel::open_for_run(
            &file.path,
            &ImportOptions {
                open_sizes: true,
                ..ImportOptions::default()
            },
        );
        let model = model.unwrap();
        let x = Array::of_name("x", vec![4, 6, 4]);
        let rows = |from: u64, to: u64| x.part(&[from..to, 0..6, 0..4]);
        let whole = computed(&model, 4, &x).unwrap()["y"].clone();
        for (from, to) in [(0, 1), (1, 4), (2, 4), (3, 4)] {
            let part = computed(&model, usize::try_from(to - from).unwrap(), &rows(from, to)).unwrap()["y"].clone();
            let mut ranges: Vec<_> = whole.dims.iter().map(|&dim| 0..dim as u64).collect();
            let each = whole.dims[axis] as u64 / 4;
            ranges[axis] = from * each..to * each;
            prop_assert_eq!(part, whole.part(&ranges), "members {}..{} along {}", from, to, axis);
        }
        Ok(())
    });
    result.unwrap();
    let (accepted, refused) = (accepted.get(), refused.get());
    assert!(accepted > 2 && refused > 2, "{accepted} accepted, {refused} refused");
}

fn rows_of_packed_weights_keep_their_bits_and_lone_ones_may_not() {
    let file = chain(
        "batch 300",
        vec![node("MatMul", &["x", "w"], &["y"]).named("product")],
        &[],
        &[("w", &[300, 64])],
    );
    let batch = file.batch().unwrap();
    let dims = BTreeMap::from([("batch".to_owned(), 64)]);
    let other = |parts: &[std::ops::Range<u64>]| batch.other_bits(&dims, parts, 4).unwrap();
    assert_eq!(other(&[0..32, 32..64]), None);
    assert_eq!(
        other(&[0..63, 63..64]),
        Some(("product".to_owned(), "MatMul".to_owned()))
    );
}

fn a_dimension_that_is_not_there_is_told_with_those_that_are() {
    let file = chain("n 3", vec![node("Relu", &["x"], &["y"])], &[], &[]);
    assert_eq!(
        file.batch().map(|_| ()).unwrap_err(),
        "no input has an open dimension `batch`; there are n"
    );
    let found = IndependentBatch::open(&file.path, None, &BTreeMap::new()).unwrap();
    assert_eq!(found.dim(), "n");
    let inputs = [("x", tensor_type(INT64, "batch batch"))];
    let file = File::of(graph(&inputs, vec![node("Identity", &["x"], &["y"])], &["y"]));
    assert!(
        file.batch()
            .map(|_| ())
            .unwrap_err()
            .contains("input `x` has the batch along more than one axis")
    );
}
