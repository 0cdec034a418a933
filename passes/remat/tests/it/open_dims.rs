//! Memory of models that leave dimensions open, as formulas.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protobuf::Message;
use remat::verify::resident_at;
use remat::{LoadOptions, Model};
use remat_testing::onnx::{FLOAT, NodeExt, graph, model, node, numbers, tensor_type};
use remat_testing::{Trial, trial};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_peak_at_other_sizes_is_that_of_the_model_read_at_them),
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
    for dims in [GIVEN, [1, 16, 16], [3, 17, 91], [7, 64, 31], [1, 255, 18]] {
        let peak = model.peak_at(&dims, &Hourglass::options(GIVEN)).unwrap();
        assert_eq!(peak, Some(hourglass.open(dims).baseline().peak), "{dims:?}");
    }
    // Three dimensions are open.
    assert_eq!(model.peak_at(&[1, 16], &Hourglass::options(GIVEN)).unwrap(), None);
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
    assert_eq!(model.peak_at(&[], &options).unwrap(), None);
}
