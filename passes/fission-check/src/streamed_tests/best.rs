//! Random searches for the largest or smallest elements along an axis, whole and in parts.

use remat_ir::Graph;

use super::super::tests::Random;
use super::super::values::Rows;
use super::softmax::{Combine, put_together};
use super::text::{Text, extents, f32s, list, shown, whole};

/// `ArgMax`, `ArgMin` or `TopK` along any axis, of numbers many of which are equal.
pub(super) fn best(random: &mut Random) -> (Graph, Graph) {
    let dims: Vec<u64> = (0..random.within(1, 3)).map(|_| random.within(2, 6)).collect();
    let (rank, axis) = (dims.len(), random.index(dims.len()));
    let op = random.one_of(&["ArgMax", "ArgMin", "TopK"]);
    let mut text = Text::default();
    text.both(&format!("input %few : {}", f32s(&dims)));
    let mut attributes: Vec<String> = Vec::new();
    let default = if op == "TopK" { rank - 1 } else { 0 };
    match random.below(3) {
        0 if axis == default => {}
        1 => attributes.push(format!("axis = -{}", rank - axis)),
        _ => attributes.push(format!("axis = {axis}")),
    }
    let is_several = op == "TopK";
    let mut state = |name: &str, default: u64, random: &mut Random| {
        let value = random.below(2);
        if value != default || random.is() {
            attributes.push(format!("{name} = {value}"));
        }
        value
    };
    let mut found = dims.clone();
    let (count, largest, last, keeps) = if is_several {
        (random.within(1, dims[axis]), state("largest", 1, random), 0, 1)
    } else {
        let keeps = state("keepdims", 1, random);
        let last = state("select_last_index", 0, random);
        (1, u64::from(op == "ArgMax"), last, keeps)
    };
    if is_several && random.is() {
        attributes.push("sorted = 1".to_owned());
    }
    found[axis] = count;
    if keeps == 0 {
        found.remove(axis);
    }
    let stated = format!("{{{}}}", attributes.join(", ")).replace("{}", "");
    let (values, places) = (format!("%v : {}", f32s(&found)), format!("%y : i64{}", list(&found)));
    if is_several {
        text.both(&format!("const %count : i64[1] values [{count}]"));
        text.op(
            &format!("({values}, {places})"),
            &format!("TopK(%few, %count) {stated}"),
        );
    } else {
        text.op(&places, &format!("{op}(%few) {stated}"));
    }

    let parts = random.partition(&dims, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("x{at}"), ["few", "few"], rows, axis);
    }
    let told = format!("axis = {axis}, count = {count}, largest = {largest}, last = {last}");
    let kept = |rows: &[Rows]| {
        let mut kept = extents(rows);
        kept[axis] = kept[axis].min(count);
        kept.push(2);
        format!("i64{}", list(&kept))
    };
    let combine = Combine {
        of: "few",
        ty: &kept,
        call: &|parts| format!("CombineBest({parts}) {{{told}}}"),
    };
    put_together(random, &mut text, &combine, (&parts, axis), |at| {
        let from = parts[at][axis].start;
        format!("Best(%x{at}) {{{told}, from = {from}}}")
    });
    let box_of = |name: &str| format!("of {name}{}", shown(&whole(&found)));
    if is_several {
        text.tile(&values, &box_of("v"), "com.remat.streamed::BestValues(%m)");
        text.both("output %v");
    }
    let call = format!("com.remat.streamed::BestPlaces(%m) {{axis = {axis}, keepdims = {keeps}}}");
    text.tile(&places, &box_of("y"), &call);
    text.both("output %y");
    text.parse()
}
