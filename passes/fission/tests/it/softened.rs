//! A softmax over the axis that is cut, and what it weighs: in double precision what the whole computes.

use proptest::prelude::*;
use remat_fission::{Axis, Exactness, FissionError, Mode, Tiling, apply, bound};
use remat_fission_check::check_fission;
use remat_ir::{Graph, TensorId};
use remat_testing::cases;

use crate::net::{Net, fused_chain, int, lowest, open};
use crate::streamed::computes;

/// Queries that read what is made of rows of `x`: `[rows, queries, width]`.
fn attention([rows, queries, width]: [usize; 3]) -> Net {
    let mut net = Net::default();
    let x = net.input("x", &[rows, width]);
    let q = net.input("q", &[queries, width]);
    let [to_keys, to_values] = ["to_keys", "to_values"].map(|name| net.constant(name, &[width, width]));
    let mask = net.input("mask", &[1, rows]);
    let keys = net.op("keys", "MatMul", &[x, to_keys], &[]);
    let values = net.op("values", "MatMul", &[x, to_values], &[]);
    let scores = net.op(
        "scores",
        "com.microsoft::FusedMatMul",
        &[q, keys],
        &[("transB", int(1))],
    );
    let masked = net.op("masked", "Add", &[scores, mask], &[]);
    let shares = net.op("shares", "Softmax", &[masked], &[("axis", int(-1))]);
    let read = net.op("read", "MatMul", &[shares, values], &[]);
    let y = net.op("y", "Neg", &[read], &[]);
    net.output(y);
    net
}

/// A softmax between two other ops.
fn softmax(op: &str, dims: &[usize]) -> Net {
    let mut net = Net::default();
    let x = net.input("x", dims);
    let a = net.op("a", "Neg", &[x], &[]);
    let p = net.op("p", op, &[a], &[("axis", int(-1))]);
    let y = net.op("y", "Neg", &[p], &[]);
    net.output(y);
    net
}

fn tiling(streamed: &str, chains: &[(&str, &str)], tiles: u32, mode: Mode) -> Tiling {
    let chain = |&(first, last): &(&str, &str)| fused_chain(first, last, tiles, Axis::Columns, mode);
    Tiling {
        streamed: vec![streamed.to_owned()],
        fused_chains: chains.iter().map(chain).collect(),
        ..Tiling::default()
    }
}

/// The most rows of what is made of `rows` rows, in any tensor that an op makes.
fn most(graph: &Graph, rows: usize) -> u64 {
    let made = graph.tensors.iter().filter(|tensor| tensor.producer.is_some());
    let dims = made.flat_map(|tensor| tensor.ty.known_shape().unwrap_or_default());
    dims.filter(|&dim| dim <= rows as u64).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn queries_read_rows_tile_by_tile(
        rows in 12..40_usize,
        queries in 1..6_usize,
        width in 1..6_usize,
        tiles in 2..=4_u32,
        mode in prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute, Mode::Hybrid]),
    ) {
        let net = attention([rows, queries, width]);
        let graph = net.graph();
        let tiling = tiling("read", &[("keys", "read_exponentials")], tiles, mode);
        let tiled = apply(&graph, &tiling, Exactness::Close).unwrap();
        prop_assert_eq!(check_fission(&graph, &tiled), Ok(()), "{}", tiled);
        prop_assert!(computes(&graph, &tiled), "{}", tiled);
        let part = (rows as u64).div_ceil(u64::from(tiles));
        prop_assert!(most(&tiled, rows) <= part.max(8), "nothing is whole: {}", tiled);
        // Where the number of queries is open, the same is right for another one.
        let fixed = ["x", "mask", "keys", "values"];
        let opened = open(&graph, queries as u64, &fixed);
        let tiled = apply(&opened, &tiling, Exactness::Close).unwrap();
        prop_assert_eq!(check_fission(&opened, &tiled), Ok(()), "{}", tiled);
        let others = [&opened, &tiled].map(|graph| open(graph, queries as u64 + 2, &fixed));
        prop_assert!(computes(&others[0], &others[1]), "{}", tiled);
        prop_assert!(apply(&graph, &tiling, Exactness::WholeSums).is_err(), "no sum may be split");
    }

    #[test]
    fn a_softmax_runs_in_two_passes(
        op in prop::sample::select(vec!["Softmax", "LogSoftmax"]),
        dims in prop::collection::vec(1..4_usize, 0..3),
        columns in 8..24_usize,
        tiles in 2..=4_u32,
    ) {
        let dims = [&dims[..], &[columns]].concat();
        let graph = softmax(op, &dims).graph();
        let tiling = tiling("p", &[("a", "p_exponentials"), ("p", "y")], tiles, Mode::LineBuffer);
        let tiled = apply(&graph, &tiling, Exactness::Close).unwrap();
        prop_assert_eq!(check_fission(&graph, &tiled), Ok(()), "{}", tiled);
        prop_assert!(computes(&graph, &tiled), "{}", tiled);
        let parts = tiled.ops.iter().filter(|op| op.op_type == "Soften").count();
        prop_assert_eq!(parts, tiles as usize);
        let opened = open(&graph, dims[0] as u64, &[]);
        let tiled = apply(&opened, &tiling, Exactness::Close);
        if dims.len() == 1 {
            prop_assert!(tiled.is_err(), "what is summed over is open");
            return Ok(());
        }
        let tiled = tiled.unwrap();
        prop_assert_eq!(check_fission(&opened, &tiled), Ok(()), "{}", tiled);
        let others = [&opened, &tiled].map(|graph| open(graph, dims[0] as u64 + 2, &[]));
        prop_assert!(computes(&others[0], &others[1]), "{}", tiled);
    }
}

#[test]
fn a_search_finds_tiles_in_which_neither_scores_nor_keys_nor_values_are_whole() {
    let rows = 4096;
    let graph = attention([rows, 16, 8]).graph();
    let (whole, close) = (lowest(&graph, Exactness::WholeSums), lowest(&graph, Exactness::Close));
    assert_eq!(close.tiling.streamed, ["read"]);
    assert!(close.peak * 4 < whole.peak, "{close:?}\n{whole:?}");
    let tiled = apply(&graph, &close.tiling, Exactness::Close).unwrap();
    assert_eq!(check_fission(&graph, &tiled), Ok(()));
    assert!(most(&tiled, rows) <= 512, "{tiled}");
    let bound = bound(&graph, Exactness::Close).unwrap();
    assert!(bound.bytes <= close.peak, "{bound:?}");
}

#[test]
fn a_softmax_that_somebody_else_reads_is_made() {
    let named = |name: &str, extra: fn(&mut Net, [TensorId; 2])| {
        let mut net = Net::default();
        let scores = net.input("x", &[2, 12]);
        let values = net.input("v", &[12, 3]);
        let a = net.op("a", "Neg", &[scores], &[]);
        let shares = net.op("shares", "Softmax", &[a], &[("axis", int(1))]);
        let read = net.op("read", "MatMul", &[shares, values], &[]);
        extra(&mut net, [shares, read]);
        apply(&net.graph(), &tiling(name, &[], 2, Mode::LineBuffer), Exactness::Close)
    };
    let lone = |net: &mut Net, [_, read]: [TensorId; 2]| net.output(read);
    let both = |net: &mut Net, results: [TensorId; 2]| results.into_iter().for_each(|result| net.output(result));
    assert!(named("read", lone).is_ok());
    assert_eq!(
        named("shares", lone).unwrap_err(),
        FissionError::NotStreamed("shares".to_owned())
    );
    assert_eq!(
        named("read", both).unwrap_err(),
        FissionError::NotStreamed("read".to_owned())
    );
    assert!(named("shares", both).is_ok());
}
