//! Functions of random shape: a straight line of operations of several dialects that read earlier values, in one block or in several.

use std::fmt::Write;

use proptest::prelude::*;

/// One operation: which, and the values it reads, counted back from itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    kind: u8,
    first: u8,
    second: u8,
}

fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0..10u8, any::<u8>(), any::<u8>()).prop_map(|(kind, first, second)| Draw { kind, first, second });
    prop::collection::vec(draw, 3..most)
}

/// A random function of up to `most` operations.
pub(crate) fn functions(most: usize) -> impl Strategy<Value = String> {
    (draws(most), 1..4usize).prop_map(|(draws, returned)| function(&draws, returned, usize::MAX))
}

/// A random function of up to `most` operations, with a branch to the next one after every few.
pub(crate) fn functions_of_blocks(most: usize) -> impl Strategy<Value = String> {
    (draws(most), 1..4usize, 1..6usize).prop_map(|(draws, returned, every)| function(&draws, returned, every))
}

/// The text of a function with a branch after every so many operations; every value is a `tensor<16x16xf32>`.
fn function(draws: &[Draw], returned: usize, every: usize) -> String {
    const TYPE: &str = "tensor<16x16xf32>";
    let mut body = String::new();
    let mut values = vec!["%x".to_owned(), "%y".to_owned()];
    for (number, draw) in draws.iter().enumerate() {
        let back = |by: u8| &values[values.len() - 1 - usize::from(by) % values.len().min(12)];
        let (a, b) = (back(draw.first), back(draw.second));
        let r = format!("%v{number}");
        let line = match draw.kind {
            0 => format!("{r} = tosa.exp {a} : ({TYPE}) -> {TYPE}"),
            1 => format!("{r} = tosa.add {a}, {b} : ({TYPE}, {TYPE}) -> {TYPE}"),
            2 => format!("{r} = arith.mulf {a}, {b} : {TYPE}"),
            3 => format!("{r} = math.tanh {a} : {TYPE}"),
            // A view, and one back.
            4 => format!(
                "{r}f = tensor.collapse_shape {a} [[0, 1]] : {TYPE} into tensor<256xf32>\n    \
                 {r} = tensor.expand_shape {r}f [[0, 1]] output_shape [16, 16] : tensor<256xf32> into {TYPE}"
            ),
            // Parts that prepare a destination.
            5 => format!(
                "{r}e = tensor.empty() : {TYPE}\n    \
                 {r}z = linalg.fill ins(%zero : f32) outs({r}e : {TYPE}) -> {TYPE}\n    \
                 {r} = linalg.matmul ins({a}, {b} : {TYPE}, {TYPE}) outs({r}z : {TYPE}) -> {TYPE}"
            ),
            // An empty tensor that all share.
            6 => format!("{r} = linalg.exp ins({a} : {TYPE}) outs(%empty : {TYPE}) -> {TYPE}"),
            // Reads a value inside only.
            7 => format!(
                "{r} = scf.if %c -> {TYPE} {{\n      %t = math.absf {a} : {TYPE}\n      scf.yield %t : {TYPE}\n    }} else {{\n      \
                 scf.yield {b} : {TYPE}\n    }}"
            ),
            // Several results, one of which nobody need read.
            8 => format!(
                "{r}p:2 = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = [\"parallel\", \"parallel\"]}} ins({a} : {TYPE}) \
                 outs(%empty, %empty : {TYPE}, {TYPE}) {{\n    ^bb0(%i: f32, %o: f32, %p: f32):\n      %s = arith.addf %i, %i : f32\n      \
                 linalg.yield %i, %s : f32, f32\n    }} -> ({TYPE}, {TYPE})\n    {r} = arith.addf {r}p#1, {a} : {TYPE}"
            ),
            // Has effects, for all one knows.
            _ => format!("{r} = func.call @draw({a}) : ({TYPE}) -> {TYPE}"),
        };
        let _ = writeln!(body, "    {line}");
        if (number + 1) % every == 0 {
            let _ = writeln!(body, "    cf.br ^b{number}\n  ^b{number}:");
        }
        values.push(r);
    }
    let returned: Vec<_> = values
        .iter()
        .rev()
        .take(returned.min(values.len() - 2))
        .cloned()
        .collect();
    let types = vec![TYPE; returned.len()].join(", ");
    format!(
        "#id = affine_map<(i, j) -> (i, j)>\nmodule {{\n  func.func private @draw({TYPE}) -> {TYPE}\n  \
         func.func @main(%x: {TYPE}, %y: {TYPE}, %c: i1) -> ({types}) {{\n    %zero = arith.constant 0.0 : f32\n    \
         %empty = tensor.empty() : {TYPE}\n{body}    return {} : {types}\n  }}\n}}\n",
        returned.join(", ")
    )
}
