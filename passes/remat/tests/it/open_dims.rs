//! Memory of models that leave dimensions open, as formulas.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::support::profile_of;
use protobuf::Message;
use remat::formula::{Proof, Ranges};
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::verify::resident_at;
use remat::{LoadOptions, Model, NoShapes, SolveRequest};
use remat_testing::onnx::{FLOAT, NodeExt, graph, integers, model, node, numbers, tensor_type};
use remat_testing::{Trial, trial};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_peak_at_other_sizes_is_that_of_the_model_read_at_them),
        trial!(no_shape_takes_more_than_the_bound_and_the_largest_comes_to_it),
        trial!(a_workspace_that_is_known_at_one_size_bounds_no_other),
        trial!(what_shrinks_where_another_grows_is_bounded_in_parts),
        trial!(the_load_at_the_peak_is_a_formula_and_what_none_gives),
        trial!(a_model_without_open_dimensions_has_no_formulas),
    ]
}

/// Images that become small and large again.
struct Hourglass {
    _folder: TempDir,
    path: PathBuf,
}

impl Hourglass {
    fn new(input: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is space");
        let path = folder.path().join("hourglass.onnx");
        let nodes = vec![
            node("Conv", &["x", "w0"], &["c0"]).ints("pads", &[1; 4]),
            node("Relu", &["c0"], &["r0"]),
            node("Conv", &["r0", "w1"], &["c1"])
                .ints("pads", &[1; 4])
                .ints("strides", &[2, 2]),
            node("Relu", &["c1"], &["r1"]),
            node("MaxPool", &["r1"], &["p"])
                .ints("kernel_shape", &[3, 3])
                .ints("strides", &[2, 2]),
            node("ConvTranspose", &["r1", "w2"], &["t"]).ints("strides", &[2, 2]),
            node("GlobalAveragePool", &["t"], &["a"]),
            node("GlobalAveragePool", &["p"], &["b"]),
            node("Concat", &["a", "b"], &["y"]).int("axis", 1),
        ];
        let mut built = graph(&[("x", tensor_type(FLOAT, input))], nodes, &["y"]);
        for (name, dims) in [("w0", [8, 3, 3, 3]), ("w1", [16, 8, 3, 3]), ("w2", [16, 8, 2, 2])] {
            built.initializer.push(numbers(name, &dims));
        }
        let bytes = model(built).write_to_bytes().expect("it can be written");
        std::fs::write(&path, bytes).expect("there is space");
        Self { _folder: folder, path }
    }

    fn options([batch, height, width]: [u64; 3]) -> LoadOptions {
        let dims = [("batch", batch), ("height", height), ("width", width)];
        LoadOptions {
            dims: dims.map(|(name, size)| (name.to_owned(), size)).into(),
            ..LoadOptions::default()
        }
    }

    fn open(&self, dims: [u64; 3]) -> Model {
        Model::open(&self.path, &Self::options(dims)).expect("a model that can be read")
    }
}

const GIVEN: [u64; 3] = [2, 33, 48];

fn the_peak_at_other_sizes_is_that_of_the_model_read_at_them() {
    let hourglass = Hourglass::new("batch 3 height width");
    let model = hourglass.open(GIVEN);
    let ranges = "batch=1..7,height=16..300,width=16..91".parse().unwrap();
    let shapes = model
        .at_shapes(model.baseline_plan(), &ranges, &Hourglass::options(GIVEN))
        .unwrap();
    for dims in [GIVEN, [1, 16, 16], [3, 17, 91], [7, 64, 31], [1, 255, 18]] {
        let peak = shapes.peak(&Hourglass::options(dims).dims);
        assert_eq!(peak, Ok(hourglass.open(dims).baseline().peak), "{dims:?}");
    }
    let other = "depth=1..3".parse().unwrap();
    let error = model.at_shapes(model.baseline_plan(), &other, &Hourglass::options(GIVEN));
    assert_eq!(error.map(drop), Err(NoShapes::Dim("depth".to_owned())));
}

fn no_shape_takes_more_than_the_bound_and_the_largest_comes_to_it() {
    let hourglass = Hourglass::new("batch 3 height width");
    let (model, options) = (hourglass.open(GIVEN), Hourglass::options(GIVEN));
    let request = SolveRequest {
        budget: BudgetSpec::Min,
        max_overhead: None,
        solver: "auto".into(),
    };
    let solution = remat::solve(&model, &request, &SolveControl::new().step_limit(2000)).unwrap();
    let ranges: Ranges = "batch=1..4,height=16..64,width=17..91".parse().unwrap();
    for plan in [model.baseline_plan(), &solution.plan] {
        let shapes = model.at_shapes(plan, &ranges, &options).unwrap();
        let bound = shapes.bound().unwrap();
        assert_eq!(bound.proof, Proof::LargestShape);
        let peaks: Vec<u64> = ranges
            .sample(300, 0)
            .iter()
            .map(|shape| shapes.peak(shape).unwrap())
            .collect();
        assert!(peaks.iter().all(|&peak| peak <= bound.bytes));
        assert_eq!(shapes.peak(&ranges.largest()), Ok(bound.bytes));
        let half = shapes.within(bound.bytes / 2, &[]).unwrap();
        assert!(
            half.holds > 0 && !half.is_kept() && half.highest_bytes == bound.bytes,
            "{half:?}"
        );
        assert!(shapes.within(bound.bytes, &[]).unwrap().is_kept());
        // A dimension that no range names keeps its size.
        let batches = model.at_shapes(plan, &"batch=1..4".parse().unwrap(), &options).unwrap();
        assert_eq!(
            batches.bound().unwrap().bytes,
            batches.peak(&Hourglass::options([4, 33, 48]).dims).unwrap()
        );
    }
}

fn a_workspace_that_is_known_at_one_size_bounds_no_other() {
    let hourglass = Hourglass::new("batch 3 height width");
    let node = hourglass.open(GIVEN).problem().ops.raw[1].name.clone();
    let mut options = Hourglass::options(GIVEN);
    options.profile = Some(profile_of(node.clone(), 1_000, 123_456));
    let model = Model::open(&hourglass.path, &options).unwrap();
    let error = model.at_shapes(model.baseline_plan(), &"batch=1..4".parse().unwrap(), &options);
    assert_eq!(error.map(drop), Err(NoShapes::Workspace(node)));
}

fn what_shrinks_where_another_grows_is_bounded_in_parts() {
    // The rows that are left out and those that are kept are as many together for each `n`.
    let nodes = vec![
        node("Shape", &["x"], &["s"]).int("start", 0).int("end", 1),
        node("Sub", &["rows", "s"], &["d"]),
        node("Expand", &["one", "d"], &["less"]),
        node("Relu", &["x"], &["more"]),
        node("ReduceSum", &["less"], &["a"]).int("keepdims", 0),
        node("ReduceSum", &["more"], &["b"]).int("keepdims", 0),
        node("Add", &["a", "b"], &["y"]),
    ];
    let mut built = graph(&[("x", tensor_type(FLOAT, "n"))], nodes, &["y"]);
    built.initializer.push(integers("rows", &[100_000]));
    built.initializer.push(numbers("one", &[1]));
    let folder = tempfile::tempdir().expect("there is space");
    let path = folder.path().join("seesaw.onnx");
    std::fs::write(&path, model(built).write_to_bytes().expect("it can be written")).expect("there is space");
    let options = LoadOptions {
        dims: [("n".to_owned(), 50_000)].into(),
        ..LoadOptions::default()
    };
    let model = Model::open(&path, &options).unwrap();
    let ranges: Ranges = "n=1..99999".parse().unwrap();
    let shapes = model.at_shapes(model.baseline_plan(), &ranges, &options).unwrap();
    let bound = shapes.bound().unwrap();
    assert!(matches!(bound.proof, Proof::Intervals(parts) if parts > 1), "{bound:?}");
    let peaks = ranges
        .sample(1000, 0)
        .iter()
        .map(|shape| shapes.peak(shape).unwrap())
        .collect::<Vec<_>>();
    let highest = peaks.into_iter().max().unwrap();
    assert!(
        highest <= bound.bytes && bound.bytes < highest + highest / 10,
        "{highest} {bound:?}"
    );
}

fn the_load_at_the_peak_is_a_formula_and_what_none_gives() {
    let model = Hourglass::new("batch 3 height width").open(GIVEN);
    let (problem, plan, replay) = (model.problem(), model.baseline_plan(), model.baseline());
    let sizes = model.size_formulas().expect("dimensions are open");
    let resident = resident_at(problem, plan, replay.peak_step);
    let load = sizes.load(resident.iter().map(|&(storage, _)| storage), replay.peak);
    let value = |dims: &[u64]| load.formula.value(&sizes.variables.values(dims).unwrap()).unwrap();
    assert_eq!(value(&GIVEN), load.bytes.into());
    assert!(
        load.bytes + load.rest == replay.peak && load.rest < replay.peak / 2,
        "{load:?}"
    );
    assert_eq!(value(&[4, 33, 48]), 2 * value(&GIVEN));
    let text = sizes.variables.names().text(&load.formula);
    assert!(
        text.contains("batch*") && text.contains("floor((height+1)/2)"),
        "{text}"
    );
}

fn a_model_without_open_dimensions_has_no_formulas() {
    let closed = Hourglass::new("2 3 33 48");
    let options = LoadOptions {
        dims: BTreeMap::new(),
        ..LoadOptions::default()
    };
    let model = Model::open(&closed.path, &options).unwrap();
    assert!(model.size_formulas().is_none());
    let shapes = model.at_shapes(model.baseline_plan(), &Ranges::default(), &options);
    assert!(matches!(shapes, Err(NoShapes::Size(_))));
}
