//! What follows sums that are split, and large sums that are put together as they come.

use remat_cost::Device;
use remat_fission::{Axis, Exactness, FissionError, Mode, SearchOptions, Tiling, apply, search};
use remat_fission_check::check_fission;
use remat_ir::{Graph, Tensor};

use crate::net::{Net, fused_chain, int, ints};
use crate::streamed::computes;

const TOKENS: usize = 128;
const WORDS: usize = 80;
const WIDTH: usize = 64;

/// The end of a training step of a language model: logits, losses, and their gradients.
fn loss() -> Net {
    let mut net = Net::default();
    let x = net.input("x", &[TOKENS, WIDTH]);
    let labels = net.input("labels", &[TOKENS, 1]);
    let words = net.constant("words", &[WIDTH, WORDS]);
    let [zero, one] = [("zero", 1), ("one", TOKENS)].map(|(name, rows)| net.constant(name, &[rows, 1]));
    let shape = net.list("shape", &[TOKENS, WORDS].map(|dim| i64::try_from(dim).unwrap()));

    let logits = net.op("logits", "MatMul", &[x, words], &[]);
    let logp = net.op("logp", "LogSoftmax", &[logits], &[("axis", int(1))]);
    let picked = net.op("picked", "GatherElements", &[logp, labels], &[("axis", int(1))]);
    let losses = net.op("losses", "Squeeze", &[picked], &[("axes", ints(&[1]))]);
    let total = net.op("total", "ReduceSum", &[losses], &[("keepdims", int(0))]);
    let loss = net.op("loss", "Neg", &[total], &[]);
    let zeros = net.op("zeros", "Expand", &[zero, shape], &[]);
    let hot = net.op("hot", "ScatterElements", &[zeros, labels, one], &[("axis", int(1))]);
    let d = net.op("d", "Sub", &[logp, hot], &[]);
    let dw = net.op("dw", "com.microsoft::FusedMatMul", &[x, d], &[("transA", int(1))]);
    let db = net.op("db", "ReduceSum", &[d], &[("axes", ints(&[0]))]);
    [loss, dw, db].into_iter().for_each(|output| net.output(output));
    net
}

fn chain(first: &str, last: &str, tiles: u32, axis: Axis, mode: Mode) -> Tiling {
    Tiling {
        fused_chains: vec![fused_chain(first, last, tiles, axis, mode)],
        ..Tiling::default()
    }
}

/// The graph in tiles, which computes the same.
fn tiled(net: &Net, tiling: &Tiling) -> Result<Graph, FissionError> {
    let graph = net.graph();
    let tiled = apply(&graph, tiling, Exactness::Close)?;
    assert_eq!(check_fission(&graph, &tiled), Ok(()), "{tiling:?}\n{tiled}");
    assert!(computes(&graph, &tiled), "{tiling:?}\n{tiled}");
    Ok(tiled)
}

fn wide(graph: &Graph) -> impl Iterator<Item = &Tensor> {
    let is_made = |tensor: &&Tensor| tensor.producer.is_some();
    let is_wide = |tensor: &&Tensor| {
        tensor
            .ty
            .known_shape()
            .is_some_and(|dims| dims == [TOKENS as u64, WORDS as u64])
    };
    graph.tensors.iter().filter(is_made).filter(is_wide)
}

#[test]
fn logits_are_never_whole_and_two_sums_of_a_large_result_are_there() {
    let net = loss();
    assert_eq!(wide(&net.graph()).count(), 5);
    for axis in [Axis::Rows, Axis::Batch] {
        for mode in [Mode::LineBuffer, Mode::Recompute] {
            let tiling = chain("logits", "db", 4, axis, mode);
            assert!(
                apply(&net.graph(), &tiling, Exactness::WholeSums).is_err(),
                "no sum may be split"
            );
            let tiled = tiled(&net, &tiling).unwrap();
            assert_eq!(wide(&tiled).count(), 0, "{tiled}");
            let place = |name: &str| tiled.ops.iter().position(|op| op.name == name);
            // What follows a sum runs behind the last tile.
            assert!(place("loss") > place("db_tile3"), "{tiled}");
            // Each sum of a large result is added before the next one is there.
            let order = ["dw_tile1", "dw_before2", "dw_tile2", "dw_before3", "dw_tile3", "dw_1"].map(place);
            assert!(order[0].is_some() && order.is_sorted(), "{tiled}");
            assert_eq!(place("db_before2"), None, "what is small is put together at the end");
        }
    }
}

#[test]
fn a_search_finds_tiles_in_which_logits_are_never_whole() {
    let net = loss();
    let graph = net.graph();
    let device = Device::preset(Device::DEFAULT).unwrap();
    let mut options = SearchOptions::new(&device);
    (options.exactness, options.evaluations) = (Exactness::Close, Some(2_000));
    let found = search(&graph, &options).unwrap().front;
    let lowest = found.iter().min_by_key(|found| found.peak).unwrap();
    let tiled = tiled(&net, &lowest.tiling).unwrap();
    assert_eq!(wide(&tiled).count(), 0, "{:?}", lowest.tiling);
}

#[test]
fn what_follows_a_sum_and_reads_rows_keeps_a_chain_from_tiles() {
    let mut net = Net::default();
    let x = net.input("x", &[12, 5]);
    let a = net.op("a", "Neg", &[x], &[]);
    let total = net.op("total", "ReduceSum", &[a], &[("keepdims", int(0))]);
    let most = net.op("most", "Neg", &[total], &[]);
    let both = net.op("both", "Mul", &[a, most], &[]);
    net.output(both);
    let in_tiles = |last: &str| tiled(&net, &chain("a", last, 3, Axis::Rows, Mode::LineBuffer));
    assert!(in_tiles("most").is_ok());
    // All of `a` has to be there before the first row of `both` is.
    assert!(in_tiles("both").is_ok_and(|tiled| tiled.ops.iter().any(|op| op.name == "a")));
}
