use remat_cost::PROFILE_FORMAT;

use super::*;

/// Conv, bias, an activation, and two readers.
const ORIGINAL: &str = r#"graph "original" {
  input %x : f32[8]
  const %w : f32[8]
  %c : f32[8] = compute @conv Conv(%x, %w)
  %b : f32[8] = compute @bias Add(%c, %w)
  %f : f32[8] view of %b = compute @flat Flatten(%b)
  %r : f32[8] = compute @relu Relu(%f)
  (%s : f32[4], %t : f32[4]) = compute @split Split(%r)
  %y : f32[4] = compute @exp Exp(%s)
  %z : f32[4] = compute @neg Neg(%t)
  output %y
  output %z
}"#;

/// The first four are one node, the last of which reads a value under another name.
const FUSED: &str = r#"graph "fused" {
  input %x : f32[8]
  const %w : f32[8]
  %inserted : f32[8] = compute @reorder ReorderInput(%x)
  %r : f32[8] = compute @fused_conv FusedConv(%inserted, %w)
  (%s : f32[4], %other : f32[4]) = compute @split Split(%r)
  %y : f32[4] = compute @exp Exp(%s)
  %z : f32[4] = compute @neg Neg(%other)
  output %y
  output %z
}"#;

fn file(times: &[(&str, u64)]) -> ProfileFile {
    let record = |&(node, duration_ns): &(&str, u64)| OpRecord {
        node: node.to_owned(),
        duration_ns,
        workspace_bytes: Some(duration_ns),
        outputs: vec![OutputRecord {
            tensor: if node == "relu" { "r" } else { "gone" }.to_owned(),
            element: "float".to_owned(),
            shape: vec![8],
            bytes: Some(32),
        }],
    };
    ProfileFile {
        format: PROFILE_FORMAT.to_owned(),
        device: String::new(),
        method: String::new(),
        date: None,
        run: None,
        ops: times.iter().map(record).collect(),
    }
}

fn carried(times: &[(&str, u64)]) -> Vec<(String, u64, Option<u64>, usize)> {
    let [original, fused] = [ORIGINAL, FUSED].map(|text| text.parse::<Graph>().expect("it is a graph"));
    let file = Carry::new(&original, &fused).profile(file(times));
    let of = |record: OpRecord| {
        (
            record.node,
            record.duration_ns,
            record.workspace_bytes,
            record.outputs.len(),
        )
    };
    file.ops.into_iter().map(of).collect()
}

#[test]
fn a_fused_node_takes_what_the_nodes_took_that_it_stands_for() {
    let times = [
        ("conv", 100),
        ("bias", 20),
        ("relu", 3),
        ("split", 5),
        ("exp", 7),
        ("neg", 8),
    ];
    let expected = [
        ("fused_conv", 123, None, 1),
        ("split", 5, Some(5), 0),
        ("exp", 7, Some(7), 0),
        ("neg", 8, Some(8), 0),
    ];
    assert_eq!(
        carried(&times),
        expected.map(|(node, time, workspace, outputs)| (node.to_owned(), time, workspace, outputs))
    );
}

#[test]
fn a_part_without_a_time_leaves_the_fused_node_without_one() {
    let names = |times: &[(&str, u64)]| carried(times).into_iter().map(|(node, ..)| node).collect::<Vec<_>>();
    assert_eq!(names(&[("conv", 100), ("relu", 3), ("exp", 7)]), ["exp"]);
    assert_eq!(names(&[("fused_conv", 100), ("reorder", 3)]), ["reorder", "fused_conv"]);
    assert_eq!(names(&[("exp", 7), ("nowhere", 3)]), ["exp", "nowhere"]);
}

#[test]
fn sizes_of_values_that_are_gone_are_dropped_and_unknown_names_stay_for_the_error() {
    let [original, fused] = [ORIGINAL, FUSED].map(|text| text.parse::<Graph>().expect("it is a graph"));
    let carry = Carry::new(&original, &fused);
    assert_eq!(
        ["r", "c", "nowhere"].map(|name| carry.is_left(name)),
        [true, false, true]
    );
}
