//! What models of many families and exporters showed: small ones of the same kind, deployed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::onnx::proto::{GraphProto, Message, ModelProto, NodeProto};
use remat::solver::SolveControl;
use remat::{LoadOptions, Model, SolveRequest};
use remat_onnxruntime_deploy::{DeployRequest, Deployment, Rejection, Strategy, deploy, with_simulated_baseline};
use remat_onnxruntime_lower::{Layout, LoweringOptions, lower};
use remat_onnxruntime_run::{ChildLimits, OptimizationLevel, optimize};
use remat_testing::onnx::{BOOL, FLOAT, INT64, NodeExt, graph, integers, model, node, numbers, tensor, tensor_type};
use remat_testing::workspace;

use crate::deploy::{deployed_within, forced, host};

/// A model in a folder of its own.
fn written(folder: &Path, mut built: ModelProto) -> PathBuf {
    built.opset_import[0].version = 17;
    let path = folder.join("in.onnx");
    std::fs::write(&path, built.write_to_bytes().expect("it can be written")).expect("it can be written");
    path
}

/// The model as a user gets it who sets nothing but dimensions.
fn deployed(input: &Path, folder: &Path, dims: &[(&str, u64)]) -> Deployment {
    let dims: BTreeMap<String, u64> = dims.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let load = LoadOptions {
        dims,
        ..LoadOptions::default()
    };
    let solve = SolveRequest {
        budget: "auto".parse().expect("a budget"),
        max_overhead: None,
        solver: "auto".to_owned(),
    };
    let output = folder.join("out.onnx");
    let request = DeployRequest::new(input, Some(&output), &load, &solve);
    let control = SolveControl::new()
        .step_limit(20_000)
        .time_limit(Duration::from_secs(600));
    deploy(&request, Some(&host()), &control).unwrap_or_else(|error| panic!("{error}"))
}

/// Peaks before and after with the arena off, where they can be measured.
fn peaks(found: &Deployment) -> Option<(u64, u64)> {
    let check = found.check.as_ref().expect("the runtime is here");
    assert_eq!(check.seeds, 2);
    check.before.arena_off.zip(check.after.arena_off)
}

/// Beyond this a peak counts as higher, or as not predicted.
fn tolerated(bytes: u64) -> u64 {
    bytes + bytes / 100 + 200_000
}

/// Large values in subgraphs: a branch in a loop that carries and collects.
fn control_flow() -> GraphProto {
    const SHAPE: &str = "256 1024";
    let large = || tensor_type(FLOAT, SHAPE);
    let typed = |mut body: GraphProto, types: &[(i32, &str)]| {
        for (output, &(element, dims)) in body.output.iter_mut().zip(types) {
            output.type_ = Some(tensor_type(element, dims)).into();
        }
        body
    };
    let chain = |name: &str, ops: &[&str]| {
        let names: Vec<String> = (0..=ops.len()).map(|index| format!("{name}{index}")).collect();
        let step = |(index, op): (usize, &&str)| {
            let reads = if index == 0 { "state" } else { &names[index] };
            node(op, &[reads], &[&names[index + 1]]).named(&names[index + 1])
        };
        let nodes = ops.iter().enumerate().map(step).collect();
        typed(graph(&[], nodes, &[&names[ops.len()]]), &[(FLOAT, SHAPE)])
    };
    let body = graph(
        &[
            ("turn", tensor_type(INT64, "")),
            ("go", tensor_type(BOOL, "")),
            ("state", large()),
        ],
        vec![
            node("Identity", &["go"], &["go_on"]),
            node("ReduceMean", &["state"], &["mean"]).int("keepdims", 0),
            node("Cast", &["mean"], &["is_positive"]).int("to", i64::from(BOOL)),
            node("If", &["is_positive"], &["chosen"])
                .graph("then_branch", chain("then", &["Exp", "Sin", "Neg", "Tanh"]))
                .graph("else_branch", chain("else", &["Neg"])),
            node("Mul", &["chosen", "a"], &["next"]),
            node("ReduceMax", &["next"], &["row"])
                .ints("axes", &[0])
                .int("keepdims", 0),
        ],
        &["go_on", "next", "row"],
    );
    let body = typed(body, &[(BOOL, ""), (FLOAT, SHAPE), (FLOAT, "1024")]);
    let nodes = vec![
        node("Sigmoid", &["x"], &["a"]),
        node("Loop", &["count", "yes", "a"], &["last", "rows"])
            .named("loop")
            .graph("body", body),
        node("Add", &["last", "a"], &["y"]),
    ];
    let mut main = graph(&[("x", large())], nodes, &["y", "rows"]);
    let mut yes = tensor("yes", BOOL, &[]);
    yes.raw_data = vec![1];
    let mut count = integers("count", &[6]);
    count.dims.clear();
    main.initializer = vec![count, yes];
    main
}

pub(crate) fn subgraphs_take_what_the_simulation_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = written(folder.path(), model(control_flow()));
    let found = deployed(&input, folder.path(), &[]);
    let Some((before, after)) = peaks(&found) else { return };
    let prediction = &found.prediction;
    assert_eq!(
        (prediction.calibration_bytes, prediction.open_nodes.as_slice()),
        (0, &[][..])
    );
    let is_met = |predicted: u64, measured: u64| predicted.abs_diff(measured) <= measured / 100 + 200_000;
    assert!(is_met(prediction.peak_bytes, after), "{prediction:?}, measured {after}");
    let load = LoadOptions::default();
    let simulated = with_simulated_baseline(Model::open(&input, &load).expect("it is a model")).baseline_peak();
    assert!(is_met(simulated.bytes, before), "{simulated:?}, measured {before}");
    // Half of it is inside of the loop.
    let outside = 2 * 256 * 1024 * 4;
    assert!(after > 2 * outside, "{after}");
}

fn attention() -> GraphProto {
    let nodes = vec![
        node("MatMul", &["x", "keys"], &["scores"]),
        node("Softmax", &["scores"], &["weights"]).int("axis", -1),
        node("MatMul", &["weights", "values"], &["y"]),
    ];
    let mut built = graph(&[("x", tensor_type(FLOAT, "512 32"))], nodes, &["y"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "512 32")).into();
    built.initializer = vec![numbers("keys", &[32, 2048]), numbers("values", &[2048, 32])];
    built
}

pub(crate) fn a_kernel_that_works_in_place_still_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = deployed(&written(folder.path(), model(attention())), folder.path(), &[]);
    if let Some((before, after)) = peaks(&found) {
        // One matrix of scores, not two.
        let scores = 512 * 2048 * 4;
        assert!(before < scores * 3 / 2, "{before}");
        assert!(after <= tolerated(before), "{before} became {after}");
        assert!(
            tolerated(found.prediction.peak_bytes) >= after,
            "{}",
            found.prediction.peak_bytes
        );
    }
}

/// Blocks of residual convolutions between norms, with constant weights: the runtime lays them out in blocks of channels, fuses each sum into
/// the convolution before it, and pools in blocks.
fn decoder() -> GraphProto {
    let dims = [1, 32, 64, 64];
    let mut nodes = vec![node("Conv", &["x", "w"], &["h0"]).ints("pads", &[1; 4])];
    for layer in 0..4 {
        let name = |part: &str| format!("{part}{layer}");
        let [before, after] = [format!("h{layer}"), format!("h{}", layer + 1)];
        nodes.extend([
            node("InstanceNormalization", &[&before, "scale", "bias"], &[&name("n")]),
            node("Sigmoid", &[&name("n")], &[&name("g")]),
            node("Mul", &[&name("n"), &name("g")], &[&name("a")]),
            node("Conv", &[&name("a"), "w"], &[&name("c")]).ints("pads", &[1; 4]),
            node("Add", &[&before, &name("c")], &[&after]),
        ]);
    }
    nodes.push(
        node("MaxPool", &["h4"], &["y"])
            .ints("kernel_shape", &[2, 2])
            .ints("strides", &[2, 2]),
    );
    let mut built = graph(&[("x", tensor_type(FLOAT, "1 32 64 64"))], nodes, &["y"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "1 32 32 32")).into();
    built.initializer = vec![
        numbers("w", &[dims[1], dims[1], 3, 3]),
        numbers("scale", &[dims[1]]),
        numbers("bias", &[dims[1]]),
    ];
    built
}

pub(crate) fn images_that_the_runtime_lays_out_in_blocks_keep_their_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = deployed(&written(folder.path(), model(decoder())), folder.path(), &[]);
    if cfg!(target_arch = "x86_64") {
        let rejected: Vec<String> = found.rejected.iter().map(|one| one.reason.to_string()).collect();
        assert_eq!(found.strategy, Strategy::LaidOut, "{rejected:?}");
    }
    if let Some((before, after)) = peaks(&found) {
        let predicted = found.prediction.peak_bytes;
        assert!(after <= tolerated(before), "{before} became {after}");
        assert!(
            after <= tolerated(predicted) && predicted <= tolerated(after),
            "{predicted}, not {after}"
        );
    }
}

/// A stage of a decoder of images: what an upsampling convolution makes is normalized, which takes it without blocks, and goes around that
/// through a second convolution in blocks.
fn upsampling(mode: &str) -> GraphProto {
    let nodes = vec![
        node("Conv", &["x", "w"], &["h"]).ints("pads", &[1; 4]),
        node("Resize", &["h", "", "", "sizes"], &["u"])
            .text("mode", mode)
            .text("coordinate_transformation_mode", "asymmetric")
            .text("nearest_mode", "floor"),
        node("Conv", &["u", "w"], &["c"]).ints("pads", &[1; 4]),
        node("InstanceNormalization", &["c", "scale", "bias"], &["n"]),
        node("Tanh", &["n"], &["a"]),
        node("Conv", &["a", "narrow"], &["d"]),
        node("Conv", &["c", "narrow"], &["s"]),
        node("Add", &["s", "d"], &["y"]),
    ];
    let mut built = graph(&[("x", tensor_type(FLOAT, "1 32 32 32"))], nodes, &["y"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "1 8 128 128")).into();
    built.initializer = vec![
        numbers("w", &[32, 32, 3, 3]),
        numbers("narrow", &[8, 32, 1, 1]),
        numbers("scale", &[32]),
        numbers("bias", &[32]),
        integers("sizes", &[1, 32, 128, 128]),
    ];
    built
}

pub(crate) fn convolutions_in_blocks_are_recomputed_in_blocks() {
    // What is interpolated in blocks is rounded otherwise.
    for mode in ["nearest", "linear"] {
        recomputed_in_blocks(mode);
    }
}

fn recomputed_in_blocks(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let input = written(folder.path(), model(upsampling(mode)));
    let (output, host) = (folder.path().join("out.onnx"), host());
    let control = SolveControl::new()
        .step_limit(20_000)
        .time_limit(Duration::from_secs(600));
    // Without tiles, which take less.
    let found =
        deployed_within(&input, &output, "85%", Some(&host), &control).unwrap_or_else(|error| panic!("{error}"));
    if cfg!(target_arch = "x86_64") {
        let rejected: Vec<String> = found.rejected.iter().map(|one| one.reason.to_string()).collect();
        assert_eq!(found.strategy, Strategy::LaidOut, "{mode}: {rejected:?}");
        assert!(found.solution.plan.recomputes() > 0, "nothing is recomputed");
    }
    let planned = found.solution.replay.peak;
    assert!(
        found.prediction.peak_bytes <= tolerated(planned),
        "planned {planned}, predicted {}",
        found.prediction.peak_bytes
    );
    if let Some((before, after)) = peaks(&found) {
        assert!(after <= tolerated(before / 20 * 17), "{before} became {after}");
    }
}

/// Images of which every channel is weighed by what all of the image says (squeeze and excitation): the weights and what they weigh are copied out of
/// blocks for one node.
fn weighed() -> GraphProto {
    const LAYERS: usize = 8;
    let mut nodes = vec![node("Conv", &["x", "w"], &["h0"]).ints("pads", &[1; 4])];
    for layer in 0..LAYERS {
        let name = |part: &str| format!("{part}{layer}");
        // What the runtime fuses out of two nodes is called after the second one.
        if layer % 2 == 1 {
            nodes.push(node("HardSigmoid", &[&name("h")], &[&name("g")]));
            nodes.push(node("Mul", &[&name("h"), &name("g")], &[&name("r")]));
        } else {
            nodes.push(node("Relu", &[&name("h")], &[&name("r")]));
        }
        nodes.extend([
            node("GlobalAveragePool", &[&name("r")], &[&name("m")]),
            node("Conv", &[&name("m"), "narrow"], &[&name("c")]),
            node("Sigmoid", &[&name("c")], &[&name("s")]),
            node("Mul", &[&name("s"), &name("r")], &[&name("p")]),
            node("Conv", &[&name("p"), "w"], &[&format!("h{}", layer + 1)]).ints("pads", &[1; 4]),
        ]);
    }
    nodes.push(node("GlobalAveragePool", &[&format!("h{LAYERS}")], &["y"]));
    let mut built = graph(&[("x", tensor_type(FLOAT, "1 32 48 48"))], nodes, &["y"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "1 32 1 1")).into();
    built.initializer = vec![numbers("w", &[32, 32, 3, 3]), numbers("narrow", &[32, 32, 1, 1])];
    built
}

/// What the nodes of a graph and of its subgraphs make, in order.
fn made(graph: &GraphProto) -> Vec<String> {
    let of_node = |node: &NodeProto| {
        let inner = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref());
        let mut names: Vec<String> = inner.flat_map(made).collect();
        names.extend(node.output.iter().cloned());
        names
    };
    graph.node.iter().flat_map(of_node).collect()
}

pub(crate) fn copies_out_of_blocks_are_made_in_one_order() {
    const SESSIONS: usize = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let input = written(folder.path(), model(weighed()));
    let (output, laid_out, host) = (
        folder.path().join("out.onnx"),
        folder.path().join("laid-out.onnx"),
        host(),
    );
    let control = SolveControl::new()
        .step_limit(20_000)
        .time_limit(Duration::from_secs(600));
    forced(&input, &output, "min", &control);
    let runs_in_order = |_| {
        optimize(
            &host.runner(ChildLimits::default()),
            &output,
            OptimizationLevel::All,
            &laid_out,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let bytes = std::fs::read(&laid_out).expect("it is there");
        let loaded = ModelProto::parse_from_bytes(&bytes).expect("it is a model");
        made(loaded.graph.get_or_default())
    };
    let orders: Vec<Vec<String>> = (0..SESSIONS).map(runs_in_order).collect();
    assert!(orders.iter().all(|order| *order == orders[0]), "{orders:#?}");
}

pub(crate) fn dimensions_that_are_given_count_in_what_is_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut nodes = Vec::new();
    for layer in 0..6 {
        let [before, product, after] = [format!("h{layer}"), format!("p{layer}"), format!("h{}", layer + 1)];
        nodes.push(node("MatMul", &[&before, "w"], &[&product]));
        nodes.push(node("Tanh", &[&product], &[&after]));
    }
    nodes.extend((1..6).map(|layer| {
        let [sum, other, next] = [format!("s{layer}"), format!("h{layer}"), format!("s{}", layer + 1)];
        node("Add", &[if layer == 1 { "h6" } else { &sum }, &other], &[&next])
    }));
    let mut built = graph(&[("h0", tensor_type(FLOAT, "batch 64"))], nodes, &["s6"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "batch 64")).into();
    built.initializer.push(numbers("w", &[64, 64]));
    let found = deployed(&written(folder.path(), model(built)), folder.path(), &[("batch", 8192)]);
    if let Some((before, after)) = peaks(&found) {
        assert!(
            before > 8192 * 64 * 4 * 6 && after <= tolerated(before),
            "{before} became {after}"
        );
        let predicted = found.prediction.peak_bytes;
        assert!(
            after <= tolerated(predicted) && predicted <= tolerated(after),
            "predicted {predicted}, measured {after}"
        );
    }
}

pub(crate) fn sizes_that_the_data_decides_are_measured_on_the_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = vec![
        node("Relu", &["x"], &["positive"]),
        node("NonZero", &["positive"], &["places"]),
        node("Cast", &["places"], &["numbers"]).int("to", 1),
        node("Exp", &["numbers"], &["e"]),
        node("ReduceSum", &["e", "axes"], &["y"]).int("keepdims", 0),
    ];
    let mut built = graph(&[("x", tensor_type(FLOAT, "100 100"))], nodes, &["y"]);
    built.output[0].type_ = Some(tensor_type(FLOAT, "")).into();
    built.initializer.push(integers("axes", &[0, 1]));
    let found = deployed(&written(folder.path(), model(built)), folder.path(), &[]);
    let sizes = found.model.measured_sizes();
    // Two coordinates of 64 bits each for about half of the elements.
    let places = *sizes.get("places").unwrap_or_else(|| panic!("{sizes:?}"));
    assert!((10_000 / 3 * 16..=10_000 * 16).contains(&places), "{sizes:?}");
    assert_eq!(sizes.get("numbers"), Some(&(places / 2)));
}

pub(crate) fn names_that_fusing_writes_twice_are_no_reason_not_to_fuse() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["function_calls", "half_precision"] {
        let path = workspace().join(format!("test/models/features/{name}.onnx"));
        let found = deployed(&path, folder.path(), &[]);
        let is_not_fused = |reason: &Rejection| matches!(reason, Rejection::NotFused(_) | Rejection::DoesNotRun(_));
        let rejected: Vec<String> = found
            .rejected
            .iter()
            .filter(|one| is_not_fused(&one.reason))
            .map(|one| one.reason.to_string())
            .collect();
        assert_eq!(rejected, Vec::<String>::new(), "{name}");
    }
}

pub(crate) fn what_was_written_with_room_for_the_arena_can_be_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = workspace().join("test/models/unet_tiny_train.onnx");
    let before = Model::open(&path, &LoadOptions::default()).expect("it is a model");
    let onnx = before.onnx().expect("it is one of ONNX");
    let options = LoweringOptions {
        reserve: 1 << 20,
        ..LoweringOptions::default()
    };
    let lowered = lower(onnx, onnx.graph(), &options, &Layout::default()).expect("it can be written");
    assert!(lowered.report.reserved > 0 && lowered.report.hidden > 0);
    let out = folder.path().join("out.onnx");
    onnx.save_proto(&lowered.written(), &out).expect("it can be written");
    let again = Model::open(&out, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(again.problem().ops.len() >= before.problem().ops.len());
    let size = |model: &Model, name: &str| {
        let graph = model.graph().expect("it has one");
        let tensor = graph.tensors.iter().find(|tensor| tensor.name == name)?;
        graph.storages[tensor.storage].bytes
    };
    for op in &onnx.graph().ops {
        for result in op.results() {
            let name = &onnx.graph().tensors[result].name;
            assert_eq!(size(&again, name), size(&before, name), "{name}");
        }
    }
}
