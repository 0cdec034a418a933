//! Sums that are split, normalizations, softmax and the best along an axis in two passes against the reference interpreter, in double precision: random ones in random parts compute what
//! the original computes, and what is changed, in the tiled graph or in the original, is rejected or computes the same still.

mod best;
mod changes;
mod graphs;
mod softmax;
mod text;

use remat_ir::{Graph, TensorId};
use remat_testing::{Numbers, evaluate_numbers};

use super::check_fission;
use super::tests::Random;
use changes::{ALL, Change, IN_ONNX, changed};
use graphs::any;

/// What images are like: near zero, far from it, of one value, of numbers that are denormal in single precision.
const KINDS: [(f64, f64); 4] = [(0.0, 1.0), (1e4, 1.0), (0.7, 0.0), (0.0, 1e-40)];

/// Whether two graphs compute the same, up to the rounding of double precision.
fn computes(original: &Graph, tiled: &Graph) -> bool {
    KINDS.iter().all(|&(offset, scale)| {
        let given = |name: &str, dims: &[usize]| {
            let seed = name.bytes().fold(7, |seed: u64, byte| seed * 31 + u64::from(byte));
            let mut random = Random(seed);
            let is_image = matches!(name, "x" | "few");
            let (offset, scale) = if is_image { (offset, scale) } else { (0.0, 1.0) };
            // Few numbers, many of which are equal.
            let steps = if name == "few" { 1.0 } else { 1000.0 };
            Numbers::from_fn(dims, |_| {
                offset + scale * (random.below(2 * steps as u64 + 1) as f64 / steps - 1.0)
            })
        };
        let (before, after) = (evaluate_numbers(original, given), evaluate_numbers(tiled, given));
        original.outputs.iter().all(|&output| {
            let name = &original.tensors[output].name;
            let (before, after) = (&before[name], &after[name]);
            let largest = before
                .data
                .iter()
                .fold(1e-2_f64, |largest, value| largest.max(value.abs()));
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * largest;
            before.dims == after.dims && before.data.iter().zip(&after.data).all(is_near)
        })
    })
}

#[test]
fn sums_in_parts_are_accepted_and_compute_what_the_whole_computes() {
    let mut random = Random(1);
    for _ in 0..600 {
        let (original, tiled) = any(&mut random);
        if let Err(rejection) = check_fission(&original, &tiled) {
            panic!("{rejection}\n{original}\n{tiled}");
        }
        assert!(computes(&original, &tiled), "{original}\n{tiled}");
    }
}

#[test]
fn what_is_changed_is_rejected_or_computes_the_same() {
    let mut random = Random(2);
    let (mut rejected, mut harmless) = (0, 0);
    for _ in 0..400 {
        let (original, tiled) = any(&mut random);
        for _ in 0..20 {
            let change = random.one_of(&ALL);
            let other = changed(&tiled, &mut random, change);
            if other == tiled {
                continue;
            }
            if check_fission(&original, &other).is_ok() {
                harmless += 1;
                assert!(change != Change::Type, "{original}\n{other}");
                assert!(computes(&original, &other), "{original}\n{other}");
            } else {
                rejected += 1;
            }
        }
    }
    assert!(
        rejected > 4000 && rejected > 10 * harmless,
        "{rejected} rejected, {harmless} harmless"
    );
}

/// The operands that say what is reshaped to: no others give results of the types that the graph states.
fn shapes(graph: &Graph) -> Vec<Option<TensorId>> {
    let reshapes = graph.ops.iter().filter(|op| op.op_type == "Reshape");
    reshapes.map(|op| op.inputs[1]).collect()
}

#[test]
fn tiles_of_an_original_that_is_another_are_rejected_or_compute_the_same() {
    let mut random = Random(3);
    let (mut rejected, mut harmless) = (0, 0);
    for _ in 0..400 {
        let (original, tiled) = any(&mut random);
        for _ in 0..20 {
            let change = random.one_of(&IN_ONNX);
            let other = changed(&original, &mut random, change);
            if other == original || other.validate().is_err() || shapes(&other) != shapes(&original) {
                continue;
            }
            if check_fission(&other, &tiled).is_ok() {
                harmless += 1;
                assert!(computes(&other, &tiled), "{other}\n{tiled}");
            } else {
                rejected += 1;
            }
        }
    }
    assert!(rejected > 1500, "{rejected} rejected, {harmless} harmless");
}
