//! Subgraphs and functions.

use remat_onnx_mlir::{Form, Options};

use crate::support::{feature, text};

#[test]
fn branches_and_loops_become_regions() {
    for form in [Form::Torch, Form::OnnxMlir] {
        for name in ["if_captures", "loop_captures"] {
            let written = text(&feature(name), &Options::new(form)).expect("it is written");
            insta::assert_snapshot!(format!("{name}_{form}"), written);
        }
    }
}

#[test]
fn functions_are_inlined_with_the_attributes_of_their_calls() {
    let written = text(&feature("function_calls"), &Options::new(Form::Remat)).expect("it is written");
    insta::assert_snapshot!(written);
}

#[test]
fn every_model_is_written_or_refused_by_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/models/features");
    let files = std::fs::read_dir(folder).expect("the models are there");
    let mut names: Vec<String> = files
        .filter_map(|file| {
            file.ok()?
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".onnx")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    let mut refused = Vec::new();
    for name in &names {
        for form in Form::ALL {
            if let Err(error) = text(&feature(name), &Options::new(form)) {
                refused.push(format!("{name}: {error}"));
            }
        }
    }
    insta::assert_snapshot!(refused.join("\n"));
}
