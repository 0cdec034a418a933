use super::*;

fn image(elements: &[f32]) -> Output {
    output(&[1, 1, 2, 2], elements)
}

fn output(shape: &[i64], elements: &[f32]) -> Output {
    Output {
        name: "y".to_owned(),
        element: "f32".to_owned(),
        shape: shape.to_vec(),
        bytes: elements.iter().flat_map(|element| element.to_le_bytes()).collect(),
    }
}

const LIMIT: f64 = 1e-3;

/// What comes of one run on ordinary inputs, of which another last bit changes outputs by `sensitivity`.
fn found(before: &Output, after: &Output, sensitivity: f64) -> OutputCloseness {
    let mut found = Found {
        magnitudes: vec![magnitude(before)],
        ..Found::default()
    };
    let pair = (std::slice::from_ref(before), std::slice::from_ref(after));
    found
        .add(InputKind::Ordinary, pair, |_| Ok(vec![sensitivity]), LIMIT)
        .expect("nothing runs");
    found.outputs.remove(0)
}

#[test]
fn a_difference_is_a_share_of_the_largest_magnitude() {
    let before = image(&[0.0, 1.0, -4.0, 0.5]);
    let close = found(&before, &image(&[0.002, 1.0, -4.0, 0.5]), 0.0);
    assert!((close.relative_difference - 0.0005).abs() < 1e-6, "{close:?}");
    assert_eq!((close.differing, close.elements, close.fault), (1, 4, None));
    // 10 log10(5^2 / (0.002^2 / 4))
    assert!((close.psnr_db.unwrap() - 73.98).abs() < 0.01, "{close:?}");
    assert_eq!(found(&before, &before, 0.0).psnr_db, None);
}

#[test]
fn what_has_not_the_axes_of_an_image_has_no_ratio() {
    for shape in [&[4][..], &[1, 4, 1, 1], &[1, 1, 1, 2, 2]] {
        let (before, after) = (
            output(shape, &[0.0, 1.0, 2.0, 3.0]),
            output(shape, &[0.0, 1.0, 2.0, 3.001]),
        );
        assert_eq!(found(&before, &after, 0.0).psnr_db, None, "{shape:?}");
    }
}

#[test]
fn more_than_the_limit_is_a_fault_unless_another_last_bit_of_the_inputs_explains_it() {
    let (before, after) = (image(&[0.0, 1.0, 2.0, 3.0]), image(&[0.0, 1.0, 2.0, 3.03]));
    assert_eq!(found(&before, &after, 1e-4).fault, Some(CloseFault::Apart));
    assert_eq!(found(&before, &after, 1e-3).fault, None);
}

#[test]
fn what_became_infinite_or_has_another_shape_is_a_fault() {
    let before = image(&[0.0, 1.0, 2.0, f32::NAN]);
    let with = |last| image(&[0.0, 1.0, last, f32::NAN]);
    for wrong in [f32::NAN, f32::INFINITY] {
        assert_eq!(found(&before, &with(wrong), 1.0).fault, Some(CloseFault::NotFinite));
    }
    assert_eq!(found(&before, &with(2.0), 0.0).differing, 0);
    let flat = output(&[4], &[0.0, 1.0, 2.0, 3.0]);
    assert_eq!(found(&before, &flat, 1.0).fault, Some(CloseFault::Form));
}

/// The roundings that are left where an output cancels are measured against what it is on ordinary inputs.
#[test]
fn what_cancels_is_measured_against_ordinary_inputs() {
    let mut found = Found {
        magnitudes: vec![10.0],
        ..Found::default()
    };
    let (before, after) = (image(&[0.0; 4]), image(&[1e-6; 4]));
    let pair = (std::slice::from_ref(&before), std::slice::from_ref(&after));
    found
        .add(InputKind::Constant, pair, |_| Ok(Vec::new()), LIMIT)
        .expect("nothing runs");
    let close = Closeness {
        inputs: found.inputs,
        limit: LIMIT,
        outputs: found.outputs,
    };
    let farthest = close.farthest().expect("it ran");
    assert_eq!(farthest.kind, InputKind::Constant);
    assert!(farthest.relative_difference < 1.1e-7 && close.fault().is_none());
    assert!(!close.is_identical());
}

#[test]
fn on_other_inputs_than_ordinary_ones_only_what_is_no_number_is_a_fault() {
    let before = image(&[1.0; 4]);
    let fault = |kind, after: f32| {
        let mut found = Found {
            magnitudes: vec![1.0],
            ..Found::default()
        };
        let after = image(&[after; 4]);
        let pair = (std::slice::from_ref(&before), std::slice::from_ref(&after));
        found.add(kind, pair, |_| Ok(vec![0.0]), LIMIT).expect("nothing runs");
        found.outputs[0].fault
    };
    assert_eq!(fault(InputKind::Ordinary, 0.5), Some(CloseFault::Apart));
    assert_eq!(fault(InputKind::Constant, 0.5), None);
    assert_eq!(fault(InputKind::Constant, f32::NAN), Some(CloseFault::NotFinite));
}

#[test]
fn a_fault_is_told_with_the_inputs_on_which_it_was_found() {
    let before = image(&[1.0; 4]);
    let mut found = Found {
        magnitudes: vec![1.0],
        ..Found::default()
    };
    for (kind, after) in [(InputKind::Ordinary, 1.1), (InputKind::Constant, 1.5)] {
        let after = image(&[after; 4]);
        let pair = (std::slice::from_ref(&before), std::slice::from_ref(&after));
        found.add(kind, pair, |_| Ok(vec![0.0]), LIMIT).expect("nothing runs");
    }
    let output = &found.outputs[0];
    assert_eq!(
        (output.fault, output.inputs),
        (Some(CloseFault::Apart), InputKind::Ordinary)
    );
    assert!((output.relative_difference - 0.1 / 1.1).abs() < 0.02, "{output:?}");
}
