use remat_files::DocumentError;
use remat_ir::{ElementType, GraphBuilder, OpSpec, ValueType};

use super::*;
use crate::{Device, analytic, no_bodies};

fn graph() -> Graph {
    let ty = ValueType::tensor(ElementType::Float32, &[8]);
    let mut builder = GraphBuilder::new("two");
    let x = builder.input("x", ty.clone()).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("relu", "Relu").reads(x).defines("y", ty.clone()))
        .unwrap();
    builder
        .op(OpSpec::new("exp", "Exp").reads(y[0].unwrap()).defines("z", ty))
        .unwrap();
    builder.finish()
}

fn file(nodes: &[(&str, u64)]) -> ProfileFile {
    let record = |&(node, duration_ns): &(&str, u64)| OpRecord {
        node: node.into(),
        duration_ns,
        workspace_bytes: None,
        outputs: Vec::new(),
    };
    ProfileFile {
        format: PROFILE_FORMAT.into(),
        device: "bench".into(),
        method: "best of 10".into(),
        date: None,
        run: None,
        ops: nodes.iter().map(record).collect(),
    }
}

#[test]
fn measured_times_replace_modelled_ones_and_the_rest_is_named() {
    let graph = graph();
    let mut profile = analytic(&graph, &Device::default(), no_bodies);
    let modelled = profile.ops.raw[1].clone();
    let applied = profile.apply_file(&graph, &file(&[("relu", 77)])).unwrap();
    assert_eq!(
        applied,
        Applied {
            matched: 1,
            missing: vec!["exp".into()]
        }
    );
    assert_eq!(
        (profile.ops.raw[0].duration_ns, profile.ops.raw[0].provenance),
        (77, Provenance::File)
    );
    assert_eq!(profile.ops.raw[1], modelled);
    assert_eq!(profile.method, "best of 10; analytic model for 1 ops");
    profile.apply_file(&graph, &file(&[("relu", 7), ("exp", 8)])).unwrap();
    assert!(profile.ops.iter().all(|op| op.provenance == Provenance::File));
    assert_eq!(profile.method, "best of 10");
}

#[test]
fn a_file_of_another_model_is_rejected_and_changes_nothing() {
    let graph = graph();
    let mut profile = analytic(&graph, &Device::default(), no_bodies);
    let before = profile.clone();
    let names = ["relu", "n1", "n2", "n3", "n4", "n5", "n6"].map(|name| (name, 1));
    let error = profile.apply_file(&graph, &file(&names)).unwrap_err();
    insta::assert_snapshot!(error, @"the model has no such nodes, of which the profile states the costs: `n1`, `n2`, `n3`, `n4`, `n5` and 1 more");
    let error = profile
        .apply_file(&graph, &file(&[("exp", 1), ("exp", 2)]))
        .unwrap_err();
    assert_eq!(error, ProfileError::DuplicateNode("exp".into()));
    assert_eq!(profile, before);
}

#[test]
fn files_are_read_back_as_written_one_line_per_op() {
    let mut written = file(&[("relu", 7), ("exp", 8)]);
    written.date = Some("2024-05-01".into());
    let text = written.to_json();
    assert_eq!(ProfileFile::from_json(&text), Ok(written));
    assert_eq!(text.lines().filter(|line| line.contains("duration_ns")).count(), 2);
}

fn is_no_profile(text: &str) -> bool {
    let error = ProfileFile::from_json(text);
    matches!(error, Err(ProfileError::Document(DocumentError::Json { .. })))
}

#[test]
fn text_that_is_no_profile_is_rejected() {
    for text in [
        "",
        "{}",
        "[1]",
        r#"{"format":"remat-profile/1","device":"","method":"","ops":[{"node":"a"}]}"#,
    ] {
        assert!(is_no_profile(text), "{text}");
    }
    let negative = file(&[("relu", 1)]).to_json().replace(":1", ":-1");
    assert!(is_no_profile(&negative));
    let mut newer = file(&[]);
    newer.format = "remat-profile/2".into();
    let error = ProfileFile::from_json(&newer.to_json()).unwrap_err();
    let ProfileError::Document(DocumentError::Format { found, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(found, "remat-profile/2");
}

#[test]
fn the_example_of_the_documentation_is_a_profile() {
    let page = include_str!("../../../docs/profile-format.md");
    let (_, rest) = page.split_once("```json\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let file = ProfileFile::from_json(example).unwrap();
    assert_eq!(ProfileFile::from_json(&file.to_json()), Ok(file));
}
