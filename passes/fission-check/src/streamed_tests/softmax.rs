//! Random softmaxes and what they weigh, whole and in parts.

use remat_ir::Graph;

use super::super::tests::Random;
use super::super::values::Rows;
use super::text::{Text, extents, f32s, shown, whole};

/// A softmax along any axis, or the logarithm of it.
pub(super) fn softmax(random: &mut Random) -> (Graph, Graph) {
    let dims: Vec<u64> = (0..random.within(1, 3)).map(|_| random.within(2, 6)).collect();
    let (rank, axis) = (dims.len(), random.index(dims.len()));
    let op = random.one_of(&["Softmax", "LogSoftmax"]);
    let attributes = match (axis + 1 == rank, random.below(3)) {
        (true, 0) => String::new(),
        (true, 1) => format!(" {{axis = {axis}, flattens = 1}}"),
        (_, 1) => format!(" {{axis = -{}}}", rank - axis),
        _ => format!(" {{axis = {axis}}}"),
    };
    let mut text = Text::default();
    text.both(&format!("input %x : {}", f32s(&dims)));
    text.op(&format!("%y : {}", f32s(&dims)), &format!("{op}(%x){attributes}"));
    let parts = random.partition(&dims, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("x{at}"), ["x", "x"], rows, axis);
    }
    let mut kept = dims.clone();
    kept[axis] = 1;
    kept.push(2);
    let combine = Combine {
        of: "x",
        ty: &|_| f32s(&kept),
        call: &|parts| format!("CombineExponentials({parts})"),
    };
    put_together(random, &mut text, &combine, (&parts, axis), |at| {
        format!("Exponentials(%x{at}) {{axis = {axis}}}")
    });
    let parts = random.partition(&dims, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("z{at}"), ["x", "x"], rows, axis);
        let log = u8::from(op == "LogSoftmax");
        text.tile(
            &format!("%y{at} : {}", f32s(&extents(rows))),
            &format!("of y{}", shown(rows)),
            &format!("com.remat.streamed::Soften(%z{at}, %m) {{axis = {axis}, log = {log}}}"),
        );
    }
    let names: Vec<String> = (0..parts.len()).map(|at| format!("%y{at}")).collect();
    text.tile(
        &format!("%y : {}", f32s(&dims)),
        &format!("of y{}", shown(&whole(&dims))),
        &format!("Concat({}) {{axis = {axis}}}", names.join(", ")),
    );
    text.both("output %y");
    text.parse()
}

/// A softmax of rows that weighs matrices.
pub(super) fn attention(random: &mut Random) -> (Graph, Graph) {
    let [m, n, k] = [random.within(1, 3), random.within(1, 3), random.within(2, 9)];
    let stack = random.within(1, 2);
    let forms = [
        [vec![m, k], vec![k, n], vec![m, n]],
        [vec![stack, m, k], vec![stack, k, n], vec![stack, m, n]],
        [vec![stack, m, k], vec![k, n], vec![stack, m, n]],
        [vec![m, k], vec![stack, k, n], vec![stack, m, n]],
    ];
    let [scores, values, result] = &forms[random.index(forms.len())];
    let (axis, inner) = (scores.len() - 1, values.len() - 2);
    let mut text = Text::default();
    text.both(&format!("input %x : {}", f32s(scores)));
    text.both(&format!("const %v : {}", f32s(values)));
    text.op(&format!("%p : {}", f32s(scores)), "Softmax(%x) {axis = -1}");
    text.op(&format!("%y : {}", f32s(result)), "MatMul(%p, %v)");
    let parts = random.partition(scores, axis);
    for (at, rows) in parts.iter().enumerate() {
        text.slice(&format!("x{at}"), ["x", "x"], rows, axis);
        let mut own = whole(values);
        own[inner] = rows[axis].clone();
        text.slice(&format!("v{at}"), ["v", "v"], &own, inner);
    }
    let mut kept = result.clone();
    kept[result.len() - 1] += 2;
    let combine = Combine {
        of: "x",
        ty: &|_| f32s(&kept),
        call: &|parts| format!("CombineExponentials({parts})"),
    };
    put_together(random, &mut text, &combine, (&parts, axis), |at| {
        format!("Weigh(%x{at}, %v{at}) {{axis = {axis}}}")
    });
    text.tile(
        &format!("%y : {}", f32s(result)),
        &format!("of y{}", shown(&whole(result))),
        "com.remat.streamed::Weighed(%m)",
    );
    text.both("output %y");
    text.parse()
}

/// How what is found of parts is put together.
pub(super) struct Combine<'a> {
    /// The tensor that parts are of.
    pub(super) of: &'a str,
    /// The type of what is found of rows.
    pub(super) ty: &'a dyn Fn(&[Rows]) -> String,
    /// The call for operands.
    pub(super) call: &'a dyn Fn(&str) -> String,
}

/// What is found of parts, put together as `m`, at once or some of them before.
pub(super) fn put_together(
    random: &mut Random,
    text: &mut Text,
    combine: &Combine<'_>,
    (parts, axis): (&[Vec<Rows>], usize),
    call: impl Fn(usize) -> String,
) {
    let made = |text: &mut Text, name: &str, rows: &[Rows], call: &str| {
        let part = format!("over {}{}", combine.of, shown(rows));
        text.tile(
            &format!("{name} : {}", (combine.ty)(rows)),
            &part,
            &format!("com.remat.streamed::{call}"),
        );
    };
    let mut named: Vec<(String, Vec<Rows>)> = Vec::new();
    for (at, rows) in parts.iter().enumerate() {
        made(text, &format!("%m{at}"), rows, &call(at));
        named.push((format!("%m{at}"), rows.clone()));
    }
    let join = |text: &mut Text, name: &str, parts: &[(String, Vec<Rows>)]| {
        let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let mut rows = parts[0].1.clone();
        rows[axis].end = parts[parts.len() - 1].1[axis].end;
        made(text, name, &rows, &(combine.call)(&names.join(", ")));
        (name.to_owned(), rows)
    };
    if named.len() > 2 && random.is() {
        let first = random.index(named.len() - 1);
        let so_far = join(text, "%so_far", &named[first..first + 2]);
        named.splice(first..first + 2, [so_far]);
    }
    join(text, "%m", &named);
}
