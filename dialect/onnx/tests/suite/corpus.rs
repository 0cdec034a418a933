//! Every model of the `onnx` package's test data: all import or fail for the one allowed reason, and exporting what was
//! imported gives an equal model.
//!
//! The data is looked for at `REMAT_ONNX_TESTDATA`, then in the virtual environment below `third_party`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use remat_onnx::proto::{Message, ModelProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};

/// Models whose sizes follow neither from the file nor from shape inference; may only shrink. The first figure is for the
/// package as it is pinned, the second for older releases of it, which bring over 1,700 models.
const MAX_UNSIZED: (usize, usize) = (1, 27);

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn test_data() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("REMAT_ONNX_TESTDATA") {
        return Some(path.into());
    }
    let libraries = std::fs::read_dir(workspace().join("third_party/venv/lib")).ok()?;
    let paths = libraries
        .flatten()
        .map(|python| python.path().join("site-packages/onnx/backend/test/data"));
    paths.into_iter().find(|path| path.is_dir())
}

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

#[test]
fn every_model_of_the_test_data_imports_and_exports_unchanged() {
    let Some(folder) = test_data() else {
        eprintln!("skipped: no test data of the onnx package found");
        return;
    };
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
    eprintln!("{} models, {} of them unsized", paths.len(), unsized_models.len());
    for (path, (tensors, causes)) in &unsized_models {
        eprintln!(
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

#[test]
fn the_training_and_inference_models_import_with_every_size_known() {
    let folder = workspace().join("../shared/models");
    let mut paths = Vec::new();
    models_below(&folder, &mut paths);
    if paths.is_empty() {
        eprintln!("skipped: no models at {}", folder.display());
        return;
    }
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
