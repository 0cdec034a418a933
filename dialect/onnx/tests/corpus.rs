//! Every model of the `onnx` package's tests: all import, but those whose sizes only the data decides, and exporting what was imported
//! gives an equal model.
//!
//! The same holds of exported networks.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail and speak like tests"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use remat_onnx::proto::{Message, ModelProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use remat_testing::{Need, onnx_test_data, run, trial, workspace};

fn main() -> ExitCode {
    run([
        trial!(
            every_model_of_the_test_data_imports_and_exports_unchanged,
            Need::OnnxTestData
        ),
        trial!(
            every_model_of_the_operator_tests_imports_but_those_whose_sizes_the_data_decides,
            Need::OnnxTestData,
            Need::Python
        ),
        trial!(
            the_training_and_inference_models_import_with_every_size_known,
            Need::Models
        ),
    ])
}

/// Models of the operator tests without a size that the file decides, and why.
const DECIDED_BY_DATA: &[(&str, &[&str])] = &[
    (
        "an input states the shape of the grid",
        &[
            "test_affine_grid_2d_align_corners_expanded",
            "test_affine_grid_2d_expanded",
            "test_affine_grid_3d_align_corners_expanded",
            "test_affine_grid_3d_expanded",
        ],
    ),
    (
        "an input states the shape to crop to",
        &[
            "test_center_crop_pad_crop_and_pad_expanded",
            "test_center_crop_pad_crop_axes_chw_expanded",
            "test_center_crop_pad_crop_axes_hwc_expanded",
            "test_center_crop_pad_crop_expanded",
            "test_center_crop_pad_crop_negative_axes_hwc_expanded",
            "test_center_crop_pad_pad_expanded",
        ],
    ),
    (
        "an input is a sequence or an optional one",
        &[
            "test_identity_opt",
            "test_identity_sequence",
            "test_loop13_seq",
            "test_loop16_seq_none",
            "test_optional_get_element_optional_sequence",
            "test_optional_get_element_sequence",
            "test_sequence_insert_at_back",
            "test_sequence_insert_at_front",
            "test_sequence_map_add_1_sequence_1_tensor",
            "test_sequence_map_add_1_sequence_1_tensor_expanded",
            "test_sequence_map_add_2_sequences",
            "test_sequence_map_add_2_sequences_expanded",
            "test_sequence_map_extract_shapes",
            "test_sequence_map_extract_shapes_expanded",
            "test_sequence_map_identity_1_sequence",
            "test_sequence_map_identity_1_sequence_1_tensor",
            "test_sequence_map_identity_1_sequence_1_tensor_expanded",
            "test_sequence_map_identity_1_sequence_expanded",
            "test_sequence_map_identity_2_sequences",
            "test_sequence_map_identity_2_sequences_expanded",
        ],
    ),
    ("an input says whether the optional sequence is empty", &["test_if_opt"]),
    (
        "how many elements are unique is known only at run time",
        &[
            "test_unique_length_1",
            "test_unique_not_sorted_without_axis",
            "test_unique_sorted_with_axis",
            "test_unique_sorted_with_axis_3d",
            "test_unique_sorted_with_negative_axis",
            "test_unique_sorted_without_axis",
        ],
    ),
];

fn models_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            models_below(&path, found);
        } else if path.extension().is_some_and(|e| e == "onnx") {
            found.push(path);
        }
    }
}

/// Imports with every open dimension set to 1.
fn open_with_ones(path: &Path) -> Result<OnnxModel, OnnxError> {
    let mut options = ImportOptions::default();
    loop {
        match OnnxModel::open(path, &options) {
            Err(OnnxError::UnknownSizes { dims, .. }) if dims.iter().any(|d| !options.dims.contains_key(d)) => {
                options.dims.extend(dims.into_iter().map(|dim| (dim, 1)));
            }
            result => return result,
        }
    }
}

fn assert_identity(model: &OnnxModel, path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    // Bytes, because messages with a NaN in them are not equal to themselves.
    let before = ModelProto::parse_from_bytes(&bytes).unwrap().write_to_bytes().unwrap();
    let after = model.export(model.graph()).unwrap();
    assert!(
        before == after,
        "{} is not the same after import and export",
        path.display()
    );
}

fn every_model_of_the_test_data_imports_and_exports_unchanged() {
    let folder = onnx_test_data().unwrap();
    let mut paths = Vec::new();
    models_below(&folder, &mut paths);
    paths.sort();
    assert!(paths.len() >= 149, "{} models in {}", paths.len(), folder.display());
    let mut failures = Vec::new();
    for path in &paths {
        match open_with_ones(path) {
            Ok(model) => {
                assert_eq!(model.graph().validate(), Ok(()), "{}", path.display());
                assert_identity(&model, path);
            }
            Err(error) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Every model of the package's operator tests, which it holds as code, and of the functions that operators stand for.
fn every_model_of_the_operator_tests_imports_but_those_whose_sizes_the_data_decides() {
    let folder = tempfile::tempdir().unwrap();
    let script = workspace().join("dialect/onnx/tests/backend_models.py");
    let mut python = Command::new(workspace().join("third_party/venv/bin/python"));
    assert!(python.arg(script).arg(folder.path()).status().unwrap().success());
    let mut paths = Vec::new();
    models_below(folder.path(), &mut paths);
    paths.sort();
    assert!(paths.len() >= 1_800, "{} models", paths.len());
    let mut wrong = Vec::new();
    for path in &paths {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let is_listed = |(_, names): &&(&str, &[&str])| names.contains(&name);
        let reason = DECIDED_BY_DATA.iter().find(is_listed);
        match (open_with_ones(path), reason) {
            (Ok(model), None) => {
                assert_eq!(model.graph().validate(), Ok(()), "{name}");
                assert_identity(&model, path);
            }
            (Err(OnnxError::UnknownSizes { .. }), Some(_)) => {}
            (Ok(_), Some((reason, _))) => wrong.push(format!("{name} imports, although {reason}")),
            (Err(error), _) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        paths.len(),
        wrong.join("\n")
    );
}

fn the_training_and_inference_models_import_with_every_size_known() {
    let mut paths = Vec::new();
    models_below(&workspace().join("../shared/models"), &mut paths);
    assert!(!paths.is_empty());
    for path in paths {
        let model = OnnxModel::open(&path, &ImportOptions::default()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert_eq!(model.graph().validate(), Ok(()));
        assert!(
            model.graph().storages.iter().all(|storage| storage.bytes.is_some()),
            "{path:?}"
        );
        assert_identity(&model, &path);
    }
}
