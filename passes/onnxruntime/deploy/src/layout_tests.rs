use remat_ir::{ElementType, GraphBuilder, OpSpec, ValueType};

use remat_operators::BLOCKED_DOMAIN as BLOCKED;

use super::*;

const REORDERED: &str = "ReorderOutput";

/// A head of 21 channels that is enlarged, as a model has it and as the runtime lays it out.
fn head() -> [Graph; 2] {
    let image = |channels, side| ValueType::tensor(ElementType::Float32, &[1, channels, side, side]);
    let mut nodes = GraphBuilder::new("nodes");
    let x = nodes.input("x", image(21, 8)).unwrap();
    let made = nodes.op(OpSpec::new("enlarge", "Resize").reads(x).defines("y", image(21, 64)));
    nodes.output(made.unwrap().1[0].unwrap());
    let blocked = |name: &str, op_type: &str| {
        let mut spec = OpSpec::new(name, op_type);
        BLOCKED.clone_into(&mut spec.domain);
        spec
    };
    let mut laid_out = GraphBuilder::new("laid out");
    let x = laid_out.input("x_nchwc", image(32, 8)).unwrap();
    let made = laid_out.op(blocked("y_nchwc", "Upsample")
        .reads(x)
        .defines("y_nchwc", image(32, 64)));
    let made = made.unwrap().1[0].unwrap();
    let copied = laid_out.op(blocked("y_reordered", REORDERED)
        .reads(made)
        .defines("y", image(21, 64)));
    laid_out.output(copied.unwrap().1[0].unwrap());
    [nodes.finish(), laid_out.finish()]
}

#[test]
fn a_padded_result_and_its_copy_are_named_by_the_node_of_the_model() {
    let [nodes, laid_out] = head();
    let bytes = |channels: u64| channels * 64 * 64 * 4;
    let expected = Padding {
        node: "enlarge".to_owned(),
        op_type: "Resize".to_owned(),
        channels: 21,
        padded_channels: 32,
        blocked_bytes: bytes(32),
        copied_bytes: bytes(21),
    };
    assert_eq!(Padding::of(&laid_out, &nodes, bytes(32 + 21)), Some(expected));
}

#[test]
fn what_fills_less_than_half_of_the_memory_is_not_named() {
    let [nodes, laid_out] = head();
    assert_eq!(Padding::of(&laid_out, &nodes, 2 * (32 + 21) * 64 * 64 * 4), None);
    assert_eq!(Padding::of(&nodes, &nodes, 1), None);
}
