use remat_ir::{ElementType, GraphBuilder, OpSpec, Part, ValueType};

use super::*;

/// Two convolutions of the same weights, the second one in two tiles, and one of others.
fn nodes() -> Graph {
    let image = |rows| ValueType::tensor(ElementType::Float32, &[1, 8, rows, 4]);
    let mut builder = GraphBuilder::new("nodes");
    let x = builder.input("x", image(4)).unwrap();
    let weights = ["shared", "own"].map(|name| {
        let ty = ValueType::tensor(ElementType::Float32, &[8, 8, 1, 1]);
        builder.constant(name, ty).unwrap()
    });
    let mut conv = |name: &str, read: TensorId, weights: TensorId, rows: u64, part: Option<(&str, u64)>| {
        let mut spec = OpSpec::new(name, "Conv");
        spec.inputs = vec![Some(read), Some(weights)];
        spec.parts = part
            .map(|(of, from)| Part {
                of: of.to_owned(),
                ranges: vec![0..1, 0..8, from..from + rows, 0..4],
                spare: None,
                is_sum: false,
            })
            .map(Some)
            .into_iter()
            .collect();
        builder.op(spec.defines(name, image(rows))).unwrap().1[0].unwrap()
    };
    let first = conv("first", x, weights[0], 4, None);
    for (name, from) in [("second_0", 0), ("second_1", 2)] {
        conv(name, first, weights[0], 2, Some(("second", from)));
    }
    conv("third", first, weights[1], 4, None);
    builder.finish()
}

fn plain(names: &[&str]) -> PlainConvolutions {
    PlainConvolutions(names.iter().map(|&name| name.to_owned()).collect())
}

fn results(names: &[&str]) -> Vec<String> {
    let mut results: Vec<String> = plain(names).results(&nodes()).into_iter().collect();
    results.sort_unstable();
    results
}

#[test]
fn all_tiles_of_a_convolution_stay_as_they_are_and_those_of_the_same_weights() {
    assert_eq!(results(&[]), [""; 0]);
    assert_eq!(results(&["third"]), ["third"]);
    assert_eq!(results(&["second"]), ["first", "second_0", "second_1"]);
    assert_eq!(results(&["nobody"]), [""; 0]);
}

#[test]
fn their_weights_are_inputs_once() {
    let mut graph = GraphProto::default();
    let opened = plain(&["first", "second"]).open_weights(&nodes(), &mut graph);
    assert_eq!(opened.into_iter().collect::<Vec<_>>(), ["shared"]);
    let again = plain(&["first", "third"]).open_weights(&nodes(), &mut graph);
    assert_eq!(again.into_iter().collect::<Vec<_>>(), ["own"]);
    let inputs: Vec<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(inputs, ["shared", "own"]);
}
