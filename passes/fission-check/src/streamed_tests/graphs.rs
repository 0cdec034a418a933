//! Random sums and normalizations, whole and in parts.

use remat_ir::Graph;

use super::super::tests::Random;
use super::super::values::Rows;
use super::best::best;
use super::softmax::{attention, softmax};
use super::text::{Text, extents, f32s, list, shown, whole};

impl Random {
    /// Boxes that make up all of a tensor along an axis.
    pub(super) fn partition(&mut self, dims: &[u64], axis: usize) -> Vec<Vec<Rows>> {
        let mut parts = Vec::new();
        let mut start = 0;
        while start < dims[axis] {
            let end = self.within(start + 1, dims[axis]);
            let mut rows = whole(dims);
            rows[axis] = start..end;
            parts.push(rows);
            start = end;
        }
        parts
    }
}

/// A normalization as exporters write it, in two passes, and a sum of what comes of it.
fn normalization(random: &mut Random) -> (Graph, Graph) {
    let pattern = random.one_of(&["instance", "reshaped", "by channel", "by group", "by element"]);
    let (images, mut groups, mut each) = (random.within(1, 2), random.within(1, 3), random.within(1, 2));
    if pattern == "instance" {
        (groups, each) = (groups * each, 1);
    }
    // All channels together, or each by itself.
    if pattern == "by element" {
        (groups, each) = if random.is() { (1, groups) } else { (groups, 1) };
    }
    let channels = groups * each;
    let mut dims = vec![images, channels];
    (0..random.within(1, 3)).for_each(|_| dims.push(random.within(2, 5)));
    let (count, rank): (u64, usize) = (dims[2..].iter().product(), dims.len());
    let (image, all) = (f32s(&dims), shown(&whole(&dims)));
    let mut text = Text::default();
    text.both(&format!("input %x : {image}"));
    let first = if each == 1 { 2 } else { 1 };
    let own = match pattern {
        "by channel" => vec![channels],
        "by element" => dims[first..].to_vec(),
        _ => vec![groups],
    };
    let is_of_elements = pattern == "by element";
    let has_bias = !is_of_elements || random.is();
    let given = if has_bias { &["s", "b"][..] } else { &["s"] };
    given
        .iter()
        .for_each(|name| text.both(&format!("const %{name} : {}", f32s(&own))));
    let epsilon = random.one_of(&[None, Some("1e-3"), Some("1e-6")]);
    let stated = epsilon.map_or_else(String::new, |epsilon| format!("epsilon = {epsilon}"));
    match pattern {
        "instance" => text.op(
            &format!("%n : {image}"),
            &format!("InstanceNormalization(%x, %s, %b) {{{stated}}}"),
        ),
        "reshaped" => {
            let inner = [images, groups, each * count];
            let lines = [("to", &inner[..]), ("back", &dims[..])];
            for (name, to) in lines {
                text.both(&format!("const %{name} : i64[{}] values {}", to.len(), list(to)));
            }
            let inner = f32s(&inner);
            text.op(&format!("%i : {inner}"), "Reshape(%x, %to)");
            text.op(
                &format!("%j : {inner}"),
                &format!("InstanceNormalization(%i, %s, %b) {{{stated}}}"),
            );
            text.op(&format!("%n : {image}"), "Reshape(%j, %back)");
        }
        "by element" => {
            let comma = if epsilon.is_some() { ", " } else { "" };
            let bias = if has_bias { ", %b" } else { "" };
            text.op(
                &format!("%n : {image}"),
                &format!("LayerNormalization(%x, %s{bias}) {{axis = {first}{comma}{stated}}}"),
            );
        }
        _ => {
            let comma = if epsilon.is_some() { ", " } else { "" };
            let attributes = format!("{{{stated}{comma}num_groups = {groups}}}");
            text.op(
                &format!("%n : {image}"),
                &format!("GroupNormalization(%x, %s, %b) {attributes}"),
            );
        }
    }
    let (mut last, mut numbers) = ("n", "%s, %b".to_owned());
    let leading = if random.is() { vec![channels] } else { vec![1, channels] };
    let by_channel = f32s(&[leading, vec![1; rank - 2]].concat());
    let follows = [random.is() && !is_of_elements, random.is() && !is_of_elements];
    for (place, (name, op, result)) in [("g", "Mul", "p"), ("h", "Add", "q")].into_iter().enumerate() {
        if follows[place] {
            text.both(&format!("const %{name} : {by_channel}"));
            let (left, right) = if random.is() { (name, last) } else { (last, name) };
            text.op(&format!("%{result} : {image}"), &format!("{op}(%{left}, %{right})"));
            (last, numbers) = (result, format!("{numbers}, %{name}"));
        } else if follows[1] {
            numbers.push_str(", _");
        }
    }
    let axis = 2 + random.index(rank - 2);
    statistics(random, &mut text, &dims, axis);
    let attributes = format!(
        "{{count = {count}, epsilon = {}, groups = {groups}}}",
        epsilon.unwrap_or("1e-5")
    );
    let by_image = f32s(&[images, channels, 1, 2]);
    let numbers = if is_of_elements {
        String::new()
    } else {
        format!(", {numbers}")
    };
    let call = format!("com.remat.streamed::Normalizer(%m{numbers}) {attributes}");
    text.tile(&format!("%f : {by_image}"), &format!("over x{all}"), &call);
    let axis = random.index(rank);
    let parts = random.partition(&dims, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("z{at}"), ["x", "x"], rows, axis);
        let mut factor = "f".to_owned();
        if axis < 2 {
            factor = format!("f{at}");
            let own = [extents(&rows[..2]), vec![1, 2]].concat();
            let mut channels = whole(&dims);
            channels[axis] = rows[axis].clone();
            let bounds = format!("%k{}, %k{}, %k{axis}", rows[axis].start, rows[axis].end);
            let call = format!("Slice(%f, {bounds})");
            text.tile(
                &format!("%{factor} : {}", f32s(&own)),
                &format!("over x{}", shown(&channels)),
                &call,
            );
        }
        let result = format!("%y{at} : {}", f32s(&extents(rows)));
        let mut beside = String::new();
        for name in given.iter().filter(|_| is_of_elements) {
            let own = match axis.checked_sub(first) {
                Some(axis) => {
                    text.slice(&format!("{name}{at}"), [name, name], &rows[first..], axis);
                    format!(", %{name}{at}")
                }
                None => format!(", %{name}"),
            };
            beside.push_str(&own);
        }
        let call = format!("com.remat.streamed::Normalize(%z{at}, %{factor}{beside})");
        text.tile(&result, &format!("of {last}{}", shown(rows)), &call);
    }
    let names: Vec<String> = (0..parts.len()).map(|at| format!("%y{at}")).collect();
    if axis < 2 || random.is() {
        text.tile(
            &format!("%{last} : {image}"),
            &format!("of {last}{all}"),
            &format!("Concat({}) {{axis = {axis}}}", names.join(", ")),
        );
        text.both(&format!("output %{last}"));
    }
    if axis >= 2 {
        sum(random, &mut text, last, &dims, axis, &parts);
    }
    text.parse()
}

/// Statistics of `x`, of parts along an axis, put together at once or one after another.
fn statistics(random: &mut Random, text: &mut Text, dims: &[u64], axis: usize) {
    let ty = f32s(&[dims[0], dims[1], 1, 2]);
    let parts = random.partition(dims, axis);
    let count = |rows: &[Rows]| extents(&rows[2..]).iter().product::<u64>();
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("x{at}"), ["x", "x"], rows, axis);
        let part = format!("over x{}", shown(rows));
        text.tile(
            &format!("%m{at} : {ty}"),
            &part,
            &format!("com.remat.streamed::Moments(%x{at})"),
        );
    }
    let combine = |name: &str, parts: &[(String, Vec<Rows>)], text: &mut Text| {
        let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let counts: Vec<u64> = parts.iter().map(|(_, rows)| count(rows)).collect();
        let mut rows = parts[0].1.clone();
        rows[axis].end = parts[parts.len() - 1].1[axis].end;
        let call = format!("CombineMoments({}) {{counts = {}}}", names.join(", "), list(&counts));
        text.tile(
            &format!("%{name} : {ty}"),
            &format!("over x{}", shown(&rows)),
            &format!("com.remat.streamed::{call}"),
        );
        (format!("%{name}"), rows)
    };
    let mut named: Vec<(String, Vec<Rows>)> = parts
        .into_iter()
        .enumerate()
        .map(|(at, rows)| (format!("%m{at}"), rows))
        .collect();
    if named.len() > 2 && random.is() {
        let rest = named.split_off(2);
        named = vec![combine("first", &named, text)];
        named.extend(rest);
    }
    combine("m", &named, text);
}

/// A sum of a tensor whose parts `y0`, `y1` .. are cut along an axis.
fn sum(random: &mut Random, text: &mut Text, of: &str, dims: &[u64], axis: usize, parts: &[Vec<Rows>]) {
    let (op, combine) = random.one_of(&[
        ("ReduceSum", "Sum"),
        ("ReduceL1", "Sum"),
        ("ReduceSumSquare", "Sum"),
        ("ReduceMean", "com.remat.streamed::CombineMeans"),
        ("ReduceMax", "Max"),
        ("ReduceMin", "Min"),
        ("GlobalAveragePool", "com.remat.streamed::CombineMeans"),
        ("GlobalMaxPool", "Max"),
    ]);
    let is_pool = op.starts_with("Global");
    let is_summed = |at: usize, random: &mut Random| if is_pool { at > 1 } else { at == axis || random.is() };
    let axes: Vec<usize> = (0..dims.len()).filter(|&at| is_summed(at, random)).collect();
    let keeps = is_pool || random.is();
    let kept: Vec<u64> = (0..dims.len())
        .filter(|at| keeps || !axes.contains(at))
        .map(|at| if axes.contains(&at) { 1 } else { dims[at] })
        .collect();
    // Every other one counted from the end.
    let counted = |&axis: &usize| match axis % 2 {
        0 => format!("-{}", dims.len() - axis),
        _ => axis.to_string(),
    };
    let stated: Vec<String> = axes.iter().map(counted).collect();
    let stated = format!("[{}]", stated.join(", "));
    let keepdims = u8::from(keeps);
    let (operands, attributes) = match (is_pool, random.is()) {
        (true, _) => (String::new(), String::new()),
        (false, true) => (String::new(), format!(" {{axes = {stated}, keepdims = {keepdims}}}")),
        (false, false) => {
            text.both(&format!("const %axes : i64[{}] values {stated}", axes.len()));
            (", %axes".to_owned(), format!(" {{keepdims = {keepdims}}}"))
        }
    };
    let source = text.ops;
    text.op(
        &format!("%t : {}", f32s(&kept)),
        &format!("{op}(%{of}{operands}){attributes}"),
    );
    put_together(random, text, &f32s(&kept), (of, parts), combine, &axes, |at| {
        format!("{op}(%y{at}{operands}){attributes} source {source}")
    });
}

/// Sums over parts of a tensor, and what puts them together.
fn put_together(
    random: &mut Random,
    text: &mut Text,
    ty: &str,
    (of, parts): (&str, &[Vec<Rows>]),
    combine: &str,
    axes: &[usize],
    call: impl Fn(usize) -> String,
) {
    for (at, rows) in parts.iter().enumerate() {
        text.tile(
            &format!("%t{at} : {ty}"),
            &format!("over {of}{}", shown(rows)),
            &call(at),
        );
    }
    let mut named: Vec<(String, Vec<Rows>)> = parts
        .iter()
        .enumerate()
        .map(|(at, rows)| (format!("%t{at}"), rows.clone()))
        .collect();
    let combined = |named: &[(String, Vec<Rows>)]| {
        let counts: Vec<u64> = named
            .iter()
            .map(|(_, rows)| axes.iter().map(|&axis| rows[axis].end - rows[axis].start).product())
            .collect();
        let attributes = match combine.ends_with("CombineMeans") {
            true => format!(" {{counts = {}}}", list(&counts)),
            false => String::new(),
        };
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        format!("{combine}({}){attributes}", names.join(", "))
    };
    // Two of them may be put together first.
    if named.len() > 2 && random.is() {
        let first = random.index(named.len() - 1);
        let [one, other] = [first, first + 1].map(|at| named[at].clone());
        let rows: Vec<Rows> = one
            .1
            .iter()
            .zip(&other.1)
            .map(|(one, other)| one.start..other.end)
            .collect();
        let part = format!("over {of}{}", shown(&rows));
        text.tile(&format!("%so_far : {ty}"), &part, &combined(&[one, other]));
        named.splice(first..first + 2, [("%so_far".to_owned(), rows)]);
    }
    let dims: Vec<u64> = ty["f32[".len()..ty.len() - 1]
        .split(", ")
        .filter_map(|dim| dim.parse().ok())
        .collect();
    let part = format!("of t{}", shown(&whole(&dims)));
    text.tile(&format!("%t : {ty}"), &part, &combined(&named));
    text.both("output %t");
}

/// A product of matrices whose inner dimension is cut.
fn product(random: &mut Random) -> (Graph, Graph) {
    let [m, n, k] = [2, 3, random.within(2, 9)];
    let stack = random.within(1, 2);
    let forms = [
        [vec![m, k], vec![k, n], vec![m, n]],
        [vec![stack, m, k], vec![stack, k, n], vec![stack, m, n]],
        [vec![stack, m, k], vec![k, n], vec![stack, m, n]],
        [vec![k], vec![k, n], vec![n]],
        [vec![m, k], vec![k], vec![m]],
    ];
    let [mut left, mut right, result] = forms[random.index(forms.len())].clone();
    // Matrices may be turned.
    let are_matrices = left.len() > 1 && right.len() > 1;
    let is_turned = [are_matrices && random.is(), are_matrices && random.is()];
    for (dims, is_turned) in [&mut left, &mut right].into_iter().zip(is_turned) {
        let rank = dims.len();
        if is_turned {
            dims.swap(rank - 2, rank - 1);
        }
    }
    let call = |left: &str, right: &str| match is_turned.map(u8::from) {
        [0, 0] => format!("MatMul({left}, {right})"),
        [a, b] => format!("com.microsoft::FusedMatMul({left}, {right}) {{transA = {a}, transB = {b}}}"),
    };
    let (left, right, result) = (&left, &right, &result);
    let mut text = Text::default();
    text.both(&format!("input %x : {}", f32s(left)));
    text.both(&format!("const %w : {}", f32s(right)));
    text.op(&format!("%t : {}", f32s(result)), &call("%x", "%w"));
    let axis = left.len() - if is_turned[0] { 2 } else { 1 };
    let other = right.len().saturating_sub(if is_turned[1] { 1 } else { 2 });
    let parts = random.partition(left, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("x{at}"), ["x", "x"], rows, axis);
        let mut own = whole(right);
        own[other] = rows[axis].clone();
        text.slice(&format!("w{at}"), ["w", "w"], &own, other);
    }
    put_together(random, &mut text, &f32s(result), ("x", &parts), "Sum", &[], |at| {
        format!("{} source 0", call(&format!("%x{at}"), &format!("%w{at}")))
    });
    text.parse()
}

pub(super) fn any(random: &mut Random) -> (Graph, Graph) {
    match random.below(7) {
        0 => product(random),
        1 => softmax(random),
        2 => attention(random),
        3 => best(random),
        _ => normalization(random),
    }
}
