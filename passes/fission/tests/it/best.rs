//! The largest or smallest elements along the axis that is cut: what the whole finds, of equal elements the same ones.

use proptest::prelude::*;
use remat_fission::{Axis, Exactness, FissionError, Mode, Tiling, apply, bound};
use remat_fission_check::check_fission;
use remat_ir::{Attribute, Graph, TensorId};
use remat_testing::cases;

use crate::net::{Net, fused_chain, int, lowest, open};
use crate::streamed::computes;

const EXACT: Exactness = Exactness::Exact {
    threads: 1,
    blocks: true,
};

/// Searches of numbers of which many are equal; the op is named `y`, or `v` where it finds `count`.
fn found(net: &mut Net, scores: TensorId, op: &str, count: Option<i64>, attributes: &[(&str, Attribute)]) {
    let made = match count {
        None => vec![net.op("y", op, &[scores], attributes)],
        Some(count) => {
            let count = net.list("count", &[count]);
            net.ops(&["v", "y"], op, &[Some(scores), Some(count)], attributes)
        }
    };
    made.into_iter().for_each(|result| net.output(result));
}

fn tiling(op: &str, tiles: u32, mode: Mode) -> Tiling {
    Tiling {
        streamed: vec![op.to_owned()],
        fused_chains: vec![fused_chain("a", &format!("{op}_best"), tiles, Axis::Columns, mode)],
        ..Tiling::default()
    }
}

/// The most elements of what an op makes.
fn most(graph: &Graph) -> u64 {
    let made = graph.tensors.iter().filter(|tensor| tensor.producer.is_some());
    let elements = made.map(|tensor| tensor.ty.known_shape().unwrap_or_default().iter().product());
    elements.max().unwrap_or(0)
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn the_best_of_tiles_are_those_of_the_whole(
        op in prop::sample::select(vec!["ArgMax", "ArgMin", "TopK"]),
        rows in prop::collection::vec(1..4_usize, 0..3),
        columns in 8..24_usize,
        count in 1..3_i64,
        flags in (0..2_i64, 0..2_i64),
        tiles in 2..=4_u32,
        mode in prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute, Mode::Hybrid]),
    ) {
        let dims = [&rows[..], &[columns]].concat();
        let mut net = Net::default();
        let x = net.input("few", &dims);
        let a = net.op("a", "Neg", &[x], &[]);
        let (last, count, attributes) = match op {
            "TopK" => ("v", Some(count), vec![("axis", int(-1)), ("largest", int(flags.0))]),
            _ => ("y", None, vec![("axis", int(-1)), ("keepdims", int(flags.0)), ("select_last_index", int(flags.1))]),
        };
        found(&mut net, a, op, count, &attributes);
        let graph = net.graph();
        let tiling = tiling(last, tiles, mode);
        for exactness in [EXACT, Exactness::Close] {
            let tiled = apply(&graph, &tiling, exactness).unwrap();
            prop_assert_eq!(check_fission(&graph, &tiled), Ok(()), "{}", tiled);
            prop_assert!(computes(&graph, &tiled), "{}", tiled);
            let parts = tiled.ops.iter().filter(|op| op.op_type == "Best").count();
            prop_assert_eq!(parts, tiles as usize);
        }
        if dims.len() > 1 {
            let opened = open(&graph, dims[0] as u64, &[]);
            let tiled = apply(&opened, &tiling, EXACT).unwrap();
            prop_assert_eq!(check_fission(&opened, &tiled), Ok(()), "{}", tiled);
            let others = [&opened, &tiled].map(|graph| open(graph, dims[0] as u64 + 2, &[]));
            prop_assert!(computes(&others[0], &others[1]), "{}", tiled);
        }
        prop_assert!(apply(&graph, &tiling, Exactness::WholeSums).is_err(), "kept for the kernels of ONNX Runtime");
    }
}

#[test]
fn a_search_finds_tiles_in_which_scores_are_never_whole() {
    for (op, count) in [("ArgMax", None), ("TopK", Some(5))] {
        let mut net = Net::default();
        let x = net.input("x", &[16, 8]);
        let rows = net.constant("rows", &[8, 8192]);
        let a = net.op("a", "MatMul", &[x, rows], &[]);
        found(&mut net, a, op, count, &[("axis", int(-1))]);
        let graph = net.graph();
        let exact = lowest(&graph, EXACT);
        let last = if count.is_some() { "v" } else { "y" };
        assert_eq!(exact.tiling.streamed, [last]);
        let whole = 16 * 8192 * 4;
        assert!(exact.peak * 4 < whole, "{exact:?}");
        let tiled = apply(&graph, &exact.tiling, EXACT).unwrap();
        assert_eq!(check_fission(&graph, &tiled), Ok(()));
        assert!(most(&tiled) <= 16 * 8192 / 4, "{tiled}");
        for exactness in [EXACT, Exactness::Close] {
            let bound = bound(&graph, exactness).unwrap();
            assert!(bound.bytes <= exact.peak, "{bound:?}");
        }
    }
}

#[test]
fn only_results_that_somebody_reads_are_made() {
    for kept in [0, 1] {
        let mut net = Net::default();
        let x = net.input("few", &[3, 12]);
        let a = net.op("a", "Neg", &[x], &[]);
        let count = net.list("count", &[2]);
        let made = net.ops(&["v", "y"], "TopK", &[Some(a), Some(count)], &[]);
        net.output(made[kept]);
        let graph = net.graph();
        let tiled = apply(&graph, &tiling("v", 3, Mode::LineBuffer), EXACT).unwrap();
        assert_eq!(check_fission(&graph, &tiled), Ok(()), "{tiled}");
        assert!(computes(&graph, &tiled), "{tiled}");
        let last = tiled.ops.last().unwrap();
        let op_type = ["BestValues", "BestPlaces"][kept];
        assert_eq!((last.name.as_str(), last.op_type.as_str()), ("v", op_type));
        assert_eq!(
            tiled.ops.iter().filter(|op| op.op_type.starts_with("BestV")).count(),
            1 - kept
        );
    }
}

#[test]
fn what_leaves_the_order_open_stays_whole_and_no_tile_has_fewer_rows_than_are_found() {
    let made = |count: i64, attributes: &[(&str, Attribute)], tiles: u32| {
        let mut net = Net::default();
        let x = net.input("few", &[3, 12]);
        let a = net.op("a", "Neg", &[x], &[]);
        found(&mut net, a, "TopK", Some(count), attributes);
        apply(&net.graph(), &tiling("v", tiles, Mode::LineBuffer), EXACT)
    };
    assert!(made(4, &[("sorted", int(1))], 3).is_ok());
    assert!(made(5, &[], 2).is_ok());
    assert!(made(5, &[], 3).is_err());
    let unsorted = made(4, &[("sorted", int(0))], 3);
    assert_eq!(unsorted.unwrap_err(), FissionError::NotStreamed("v".to_owned()));
}
