//! Profiles of all models: every op that takes time has its own, under its name in the model.

use std::path::Path;

use remat::ir::ElementType;
use remat::onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_deploy::{ProfileRequest, measured_profile};
use remat_onnxruntime_run::{
    ChildLimits, Host, InputTensor, OptimizationLevel, ProfileInputs, ProfileOptions, RuntimeError, SessionSettings,
    Surroundings, profile,
};

use remat_testing::workspace;

use crate::common::{Facts, models, runtime};
use crate::measure::{child_program, runner};

fn request(facts: &Facts) -> ProfileRequest {
    ProfileRequest {
        settings: SessionSettings {
            dims: facts.options.dims.clone(),
            ..SessionSettings::exact(OptimizationLevel::Off)
        },
        options: ProfileOptions {
            runs: 2,
            ..ProfileOptions::default()
        },
        device: "a machine".to_owned(),
        date: None,
    }
}

/// The library that the tests use.
fn host() -> Host {
    let library = runtime().library();
    let surroundings = Surroundings {
        named: Some(library.to_owned()),
        ..Surroundings::default()
    };
    Host::find(child_program(), &surroundings).expect("the library that is here can be loaded")
}

/// What a profile of the model lacks: ops without a time, sizes that are not those of the graph.
fn lacks(path: &Path) -> Vec<String> {
    let facts = Facts::of(path);
    let import = ImportOptions {
        open_sizes: false,
        dims: facts.options.dims.clone(),
        sizes: facts.options.sizes.clone(),
        ..ImportOptions::default()
    };
    let model = OnnxModel::open(path, &import).unwrap_or_else(|error| panic!("{error}"));
    let request = request(&facts);
    let file = measured_profile(&host(), ChildLimits::default(), path, &model, &request)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut lacks = Vec::new();
    for op in model.graph().ops.iter().filter(|op| op.op_type != "Constant") {
        let Some(record) = file.ops.iter().find(|record| record.node == op.name) else {
            lacks.push(format!("{}: no time of `{}`", path.display(), op.name));
            continue;
        };
        for output in &record.outputs {
            let tensor = model.graph().tensors.iter().find(|tensor| tensor.name == output.tensor);
            let stated = tensor.and_then(|tensor| tensor.ty.bytes().ok().flatten());
            // On the processor the runtime computes in single where the model says half precision.
            let is_widened = tensor.and_then(|tensor| tensor.ty.element()) == Some(ElementType::Float16);
            if is_widened && output.element == "float" {
                continue;
            }
            if stated.is_some() && output.bytes.is_some() && stated != output.bytes {
                lacks.push(format!(
                    "{}: `{}` has {:?} bytes, not {stated:?}",
                    path.display(),
                    output.tensor,
                    output.bytes
                ));
            }
        }
    }
    lacks
}

pub(crate) fn every_op_of_every_feature_has_a_time_under_its_name() {
    let paths = models("test/models/features");
    let lacks: Vec<String> = paths.iter().flat_map(|path| lacks(path)).collect();
    assert!(lacks.is_empty(), "{lacks:#?}");
}

pub(crate) fn every_op_of_larger_models_has_a_time_under_its_name() {
    let mut paths = models("test/models");
    paths.extend(models("../shared/models"));
    let lacks: Vec<String> = paths.iter().flat_map(|path| lacks(path)).collect();
    assert!(lacks.is_empty(), "{lacks:#?}");
}

pub(crate) fn fused_nodes_are_profiled_at_higher_levels() {
    let runtime = runtime();
    let model = workspace().join("test/models/features/function_calls.onnx");
    let nodes = |level| {
        let found = profile(
            &runner(&child_program(), runtime.library()),
            &model,
            &SessionSettings::exact(level),
            &ProfileOptions::default(),
        );
        found.unwrap_or_else(|error| panic!("{error}")).nodes
    };
    let (off, all) = (nodes(OptimizationLevel::Off), nodes(OptimizationLevel::All));
    assert!(all.len() < off.len(), "{} {}", all.len(), off.len());
    assert!(off.iter().all(|node| node.provider == "CPUExecutionProvider"));
}

pub(crate) fn inputs_can_be_given_and_must_fit() {
    let runtime = runtime();
    let model = workspace().join("test/models/features/views.onnx");
    let run = |tensor: InputTensor| {
        let options = ProfileOptions {
            runs: 1,
            inputs: ProfileInputs::Given(vec![tensor]),
        };
        profile(
            &runner(&child_program(), runtime.library()),
            &model,
            &SessionSettings::exact(OptimizationLevel::Off),
            &options,
        )
    };
    let import = OnnxModel::open(&model, &ImportOptions::default()).expect("it opens");
    let input = &import.graph().tensors[import.graph().inputs[0]];
    let shape = input.ty.known_shape().expect("its shape is known");
    let given = InputTensor {
        name: input.name.clone(),
        bytes: vec![
            0;
            usize::try_from(input.ty.bytes().ok().flatten().expect("its size is known")).expect("it is small")
        ],
        shape,
    };
    run(given.clone()).expect("it fits");
    for broken in [
        InputTensor {
            name: "stranger".to_owned(),
            ..given.clone()
        },
        InputTensor {
            shape: vec![3, 5, 7, 9, 11],
            ..given.clone()
        },
        InputTensor {
            bytes: vec![0; 3],
            ..given
        },
    ] {
        let error = run(broken).unwrap_err();
        assert!(matches!(error, RuntimeError::Input { .. }), "{error}");
    }
}

pub(crate) fn what_is_no_library_of_the_runtime_is_named_in_the_error() {
    let surroundings = Surroundings {
        named: Some("no/such/library.so".into()),
        ..Surroundings::default()
    };
    let error = Host::find(child_program(), &surroundings).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Library { path, .. } if path.ends_with("library.so")),
        "{error}"
    );
}
