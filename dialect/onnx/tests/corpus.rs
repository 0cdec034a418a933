//! Every model of the `onnx` package's test data: all import or fail for the one allowed reason, and exporting what was
//! imported gives an equal model.
//!
//! The same holds of exported networks.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the helpers of tests fail and speak like tests"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
            the_training_and_inference_models_import_with_every_size_known,
            Need::Models
        ),
    ])
}

/// Models whose sizes follow neither from the file nor from shape inference; may only shrink. The first figure is for the
/// package as it is pinned, the second for older releases of it, which bring over 1,700 models.
const MAX_UNSIZED: (usize, usize) = (1, 27);

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
    let mut unsized_models = BTreeMap::new();
    let mut failures = Vec::new();
    for path in &paths {
        match open_with_ones(path) {
            Ok(model) => {
                assert_eq!(model.graph().validate(), Ok(()), "{}", path.display());
                assert_identity(&model, path);
            }
            Err(OnnxError::UnknownSizes { tensors, causes, .. }) => {
                unsized_models.insert(path.strip_prefix(&folder).unwrap(), (tensors, causes));
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
    println!("{} models, {} of them unsized", paths.len(), unsized_models.len());
    for (path, (tensors, causes)) in &unsized_models {
        println!(
            "  {}: {} ({})",
            path.display(),
            tensors[0],
            causes.first().map_or("", String::as_str)
        );
    }
    let most = if paths.len() > 1000 {
        MAX_UNSIZED.1
    } else {
        MAX_UNSIZED.0
    };
    assert!(unsized_models.len() <= most, "{unsized_models:#?}");
    let real = |path: &&Path| path.starts_with("light") || path.starts_with("real");
    assert_eq!(unsized_models.keys().copied().find(real), None);
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
