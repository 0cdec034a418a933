//! Fused chains of several ops: modes, pieces of one axis read along another, clones, and what does not fit.

use proptest::prelude::*;
use remat_fission::{
    Again, Axis, Exactness, FissionError, FusedChain, Mode, Tiling, Within, apply, is_limited_by_threads,
};
use remat_ir::Graph;

use crate::net::{Net, fused_chain, int, ints};

/// Encoder, skip and decoder of a U-Net on two levels.
pub(crate) fn unet(channels: usize, size: usize) -> Net {
    let mut net = Net::default();
    let same = [("pads", ints(&[1, 1, 1, 1]))];
    let window = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let x = net.input("x", &[1, 3, size, size]);
    let w1 = net.constant("w1", &[channels, 3, 3, 3]);
    let w2 = net.constant("w2", &[channels, channels, 3, 3]);
    let w3 = net.constant("w3", &[2 * channels, channels, 3, 3]);
    let w4 = net.constant("w4", &[2 * channels, channels, 2, 2]);
    let w5 = net.constant("w5", &[channels, 2 * channels, 3, 3]);
    let w6 = net.constant("w6", &[2, channels, 1, 1]);
    let c1 = net.op("conv1", "Conv", &[x, w1], &same);
    let r1 = net.op("relu1", "Relu", &[c1], &[]);
    let c2 = net.op("conv2", "Conv", &[r1, w2], &same);
    let skip = net.op("relu2", "Relu", &[c2], &[]);
    let p1 = net.op("pool1", "MaxPool", &[skip], &window);
    let c3 = net.op("conv3", "Conv", &[p1, w3], &same);
    let r3 = net.op("relu3", "Relu", &[c3], &[]);
    let up = net.op("up", "ConvTranspose", &[r3, w4], &[("strides", ints(&[2, 2]))]);
    let both = net.op("both", "Concat", &[skip, up], &[("axis", int(1))]);
    let c5 = net.op("conv5", "Conv", &[both, w5], &same);
    let r5 = net.op("relu5", "Relu", &[c5], &[]);
    let y = net.op("conv6", "Conv", &[r5, w6], &[]);
    net.output(y);
    net
}

fn count(graph: &Graph, op_type: &str) -> usize {
    graph.ops.iter().filter(|op| op.op_type == op_type).count()
}

proptest! {
    #![proptest_config(remat_testing::cases(24))]

    #[test]
    fn chains_of_windows_keep_their_values(
        size in 9usize..20,
        kernels in prop::collection::vec(1usize..6, 1..5),
        strides in prop::collection::vec(1i64..3, 5),
        tiles in 2u32..5,
        axis in prop::sample::select(vec![Axis::Rows, Axis::Columns]),
        mode in prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute, Mode::Hybrid]),
        adds in any::<bool>(),
        columns in prop::option::of((2u32..4, prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute]))),
    ) {
        let mut net = Net::default();
        let mut at = net.input("x", &[1, 2, size, size]);
        for (place, (&kernel, &stride)) in kernels.iter().zip(&strides).enumerate() {
            let pad = i64::try_from(kernel / 2).unwrap();
            let weights = net.constant(&format!("w{place}"), &[2, 2, kernel, kernel]);
            let attributes = [("pads", ints(&[pad; 4])), ("strides", ints(&[stride, stride]))];
            let next = net.op(&format!("conv{place}"), "Conv", &[at, weights], &attributes);
            let is_same = stride == 1 && kernel % 2 == 1 && adds && place > 0;
            at = if is_same { net.op(&format!("add{place}"), "Add", &[next, at], &[]) } else { next };
        }
        let last = net.op("last", "Relu", &[at], &[]);
        net.output(last);
        let done = match columns {
            None => net.check_fused_chain("conv0", "last", tiles, axis, mode),
            Some((columns, within)) => net.check(&grid("conv0", "last", [tiles, columns], [mode, within])),
        };
        if let Err(error) = done {
            // Only where there are too few rows, or a tile would lie in the padding.
            prop_assert!(matches!(error, FissionError::NoAxis { .. } | FissionError::NotSplit(_)), "{error}");
            prop_assert!(net.check_fused_chain("last", "last", 2, axis, mode).is_ok() || size < 20);
        }
    }
}

#[test]
fn carried_rows_are_computed_once_and_again_is_computed_twice() {
    let net = unet(2, 16);
    let rows = |graph: &Graph| -> u64 {
        let parts = graph
            .ops
            .iter()
            .filter(|op| op.op_type == "Conv")
            .flat_map(|op| op.parts.iter().flatten());
        let parts = parts.filter(|part| part.of == "conv1");
        parts.map(|part| part.ranges[2].end - part.ranges[2].start).sum()
    };
    let carried = net
        .check_fused_chain("conv1", "pool1", 4, Axis::Rows, Mode::LineBuffer)
        .unwrap();
    assert_eq!(rows(&carried), 16);
    let again = net
        .check_fused_chain("conv1", "pool1", 4, Axis::Rows, Mode::Recompute)
        .unwrap();
    assert_eq!(rows(&again), 16 + 3 * 2);
}

#[test]
fn pieces_are_joined_only_where_all_is_needed() {
    let net = unet(2, 16);
    // Rows of conv1 go to rows of pool1; the skip is read in pieces later, so nothing is joined but tiles and line buffers.
    let tiling = Tiling {
        fused_chains: vec![
            fused_chain("conv1", "pool1", 2, Axis::Rows, Mode::LineBuffer),
            fused_chain("both", "conv6", 2, Axis::Rows, Mode::Recompute),
        ],
        ..Tiling::default()
    };
    let tiled = net.check(&tiling).unwrap();
    let whole = |of: &str| {
        let parts = tiled
            .ops
            .iter()
            .filter(|op| op.op_type == "Concat")
            .flat_map(|op| op.parts.iter().flatten());
        parts.filter(|part| part.of == of && part.ranges[2] == (0..16)).count()
    };
    assert_eq!(whole("relu2"), 0, "the skip stays in pieces");
    assert_eq!(whole("conv6"), 1, "the output is joined");
}

#[test]
fn rows_are_taken_out_of_pieces_of_channels() {
    let mut net = Net::default();
    let x = net.input("x", &[1, 4, 8, 8]);
    let wide = net.constant("w1", &[16, 4, 1, 1]);
    let depth = net.constant("w2", &[16, 1, 3, 3]);
    let narrow = net.constant("w3", &[4, 16, 1, 1]);
    let a = net.op("expand", "Conv", &[x, wide], &[]);
    let b = net.op(
        "depthwise",
        "Conv",
        &[a, depth],
        &[("pads", ints(&[1; 4])), ("group", int(16))],
    );
    let c = net.op("project", "Conv", &[b, narrow], &[]);
    net.output(c);
    let tiling = Tiling {
        fused_chains: vec![
            fused_chain("expand", "depthwise", 2, Axis::Channels, Mode::LineBuffer),
            fused_chain("project", "project", 4, Axis::Rows, Mode::LineBuffer),
        ],
        ..Tiling::default()
    };
    let tiled = net.check(&tiling).unwrap();
    // Weights are cut once, before a run.
    let cut = tiled
        .ops
        .iter()
        .filter(|op| op.op_type == "Slice" && op.parts.iter().flatten().any(|part| part.of == "w2"));
    assert_eq!(cut.count(), 2);
}

#[test]
fn what_a_tile_needs_whole_runs_before() {
    let mut net = Net::default();
    let x = net.input("x", &[6, 4]);
    let [wq, wk] = ["wq", "wk"].map(|name| net.constant(name, &[4, 4]));
    let q = net.op("q", "MatMul", &[x, wq], &[]);
    let k = net.op("k", "MatMul", &[x, wk], &[]);
    let turned = net.op("turned", "Transpose", &[k], &[("perm", ints(&[1, 0]))]);
    let scores = net.op("scores", "MatMul", &[q, turned], &[]);
    let weights = net.op("weights", "Softmax", &[scores], &[("axis", int(-1))]);
    let y = net.op("y", "MatMul", &[weights, k], &[]);
    net.output(y);
    let tiled = net
        .check_fused_chain("q", "y", 3, Axis::QueryRows, Mode::LineBuffer)
        .unwrap();
    let names: Vec<&str> = tiled.ops.iter().map(|op| op.name.as_str()).collect();
    assert!(names.contains(&"k") && names.contains(&"scores_tile2"), "{names:?}");
}

#[test]
fn a_skip_made_again_is_tiled_with_its_reader() {
    let net = unet(2, 16);
    for mode in [Mode::LineBuffer, Mode::Recompute] {
        let tiling = Tiling {
            again: vec![Again {
                first: "conv1".into(),
                last: "relu2".into(),
                before: "both".into(),
            }],
            fused_chains: vec![
                fused_chain("conv1", "pool1", 4, Axis::Rows, mode),
                fused_chain("conv1_again", "conv6", 4, Axis::Rows, mode),
            ],
            ..Tiling::default()
        };
        let tiled = net.check(&tiling).unwrap();
        assert_eq!(
            count(&tiled, "MaxPool"),
            4,
            "ops that no later op needs do not run again"
        );
        let tiles = |of: &'static str| {
            tiled
                .ops
                .iter()
                .filter(move |op| op.parts.iter().flatten().any(|part| part.of == of))
        };
        let of_conv = tiles("conv1").filter(|op| op.op_type == "Conv");
        assert_eq!(
            of_conv.count(),
            8,
            "parts name the tensor of the graph before anything ran again"
        );
    }
}

fn grid(first: &str, last: &str, [rows, columns]: [u32; 2], modes: [Mode; 2]) -> Tiling {
    let within = Within {
        tiles: columns,
        axis: Axis::Columns,
        mode: modes[1],
    };
    let rows = fused_chain(first, last, rows, Axis::Rows, modes[0]);
    Tiling {
        fused_chains: vec![FusedChain {
            within: Some(within),
            ..rows
        }],
        ..Tiling::default()
    }
}

#[test]
fn rows_run_in_tiles_along_columns() {
    for mode in [Mode::LineBuffer, Mode::Recompute, Mode::Hybrid] {
        for within in [Mode::LineBuffer, Mode::Recompute] {
            for tiles in [[2, 2], [4, 2], [2, 3]] {
                for (first, last) in [("conv1", "pool1"), ("conv1", "relu2"), ("both", "conv6")] {
                    let tiled = unet(2, 16).check(&grid(first, last, tiles, [mode, within])).unwrap();
                    let mut patches = tiled.ops.iter().flat_map(|op| op.parts.iter().flatten());
                    assert!(patches.any(|part| part.ranges[2].end <= 8 && part.ranges[3].end <= 8));
                }
            }
        }
    }
}

#[test]
fn only_bottlenecks_are_kept() {
    let mut net = Net::default();
    let x = net.input("x", &[1, 4, 12, 8]);
    let mut at = x;
    for block in 0..2 {
        let wide = net.constant(&format!("w{block}a"), &[16, 4, 1, 1]);
        let depth = net.constant(&format!("w{block}b"), &[16, 1, 3, 3]);
        let narrow = net.constant(&format!("w{block}c"), &[4, 16, 1, 1]);
        let of_channels = [("pads", ints(&[1; 4])), ("group", int(16))];
        at = net.op(&format!("expand{block}"), "Conv", &[at, wide], &[]);
        at = net.op(&format!("depthwise{block}"), "Conv", &[at, depth], &of_channels);
        at = net.op(&format!("project{block}"), "Conv", &[at, narrow], &[]);
    }
    net.output(at);
    let tiled = net
        .check_fused_chain("expand0", "project1", 4, Axis::Rows, Mode::Hybrid)
        .unwrap();
    let rows = |of: &str| -> u64 {
        let convolutions = tiled.ops.iter().filter(|op| op.op_type == "Conv");
        let parts = convolutions
            .flat_map(|op| op.parts.iter().flatten())
            .filter(|part| part.of == of);
        parts.map(|part| part.ranges[2].end - part.ranges[2].start).sum()
    };
    assert_eq!([rows("project0"), rows("depthwise0"), rows("project1")], [12; 3]);
    // Each of three cuts between tiles needs two rows more.
    assert_eq!([rows("expand0"), rows("expand1")], [18; 2]);
}

#[test]
fn patches_of_the_input_are_sliced_along_both_axes_at_once() {
    let net = unet(2, 16);
    let tiled = net
        .check(&grid("conv1", "relu1", [2, 2], [Mode::Recompute, Mode::Recompute]))
        .unwrap();
    let of_input = |op: &&remat_ir::Op| op.op_type == "Slice" && op.parts.iter().flatten().any(|part| part.of == "x");
    let sizes: Vec<u64> = tiled
        .ops
        .iter()
        .filter(of_input)
        .flat_map(|op| op.parts.iter().flatten())
        .map(|part| part.ranges.iter().map(|rows| rows.end - rows.start).product())
        .collect();
    assert_eq!(sizes, [3 * 9 * 9; 4]);
}

#[test]
fn a_grid_has_two_axes_of_two_tiles_at_least() {
    let net = unet(2, 16);
    let few = net
        .check(&grid("conv1", "pool1", [2, 1], [Mode::Recompute; 2]))
        .unwrap_err();
    assert!(few.to_string().contains('1'), "{few}");
    let mut same = grid("conv1", "pool1", [2, 2], [Mode::Recompute; 2]);
    same.fused_chains[0].axis = Axis::Columns;
    assert!(net.check(&same).is_err());
}

#[test]
fn tilings_that_do_not_fit_are_refused_and_name_the_op() {
    let net = unet(2, 16);
    let refused = |tiling: &Tiling| net.check(tiling).unwrap_err().to_string();
    let one = |fused_chain: FusedChain| Tiling {
        fused_chains: vec![fused_chain],
        ..Tiling::default()
    };
    let missing = refused(&one(fused_chain("nobody", "conv1", 2, Axis::Rows, Mode::LineBuffer)));
    assert!(missing.contains("`nobody`"), "{missing}");
    let backwards = refused(&one(fused_chain("pool1", "conv1", 2, Axis::Rows, Mode::LineBuffer)));
    assert!(
        backwards.contains("`pool1`") && backwards.contains("`conv1`"),
        "{backwards}"
    );
    let few = refused(&one(fused_chain("conv1", "pool1", 1, Axis::Rows, Mode::LineBuffer)));
    assert!(few.contains('1'), "{few}");
    let many = refused(&one(fused_chain("conv1", "pool1", 9, Axis::Rows, Mode::LineBuffer)));
    assert!(many.contains("`pool1`") && many.contains('9'), "{many}");
    let joined = refused(&one(fused_chain("both", "both", 2, Axis::Channels, Mode::LineBuffer)));
    assert!(joined.contains("`both`"), "{joined}");
    let overlap = Tiling {
        fused_chains: vec![
            fused_chain("conv1", "conv2", 2, Axis::Rows, Mode::LineBuffer),
            fused_chain("conv2", "pool1", 2, Axis::Rows, Mode::LineBuffer),
        ],
        ..Tiling::default()
    };
    assert!(refused(&overlap).contains("`conv2`"));
    let tiled = net
        .check_fused_chain("conv1", "pool1", 2, Axis::Rows, Mode::LineBuffer)
        .unwrap();
    let twice = apply(&tiled, &Tiling::default(), Exactness::WholeSums);
    assert!(matches!(twice, Err(FissionError::AlreadyTiled(_))));
}

#[test]
fn other_bits_are_refused_unless_they_are_permitted() {
    let mut net = Net::default();
    let x = net.input("x", &[1, 40, 16, 16]);
    let w = net.constant("w", &[4, 40, 3, 3]);
    let y = net.op("y", "Conv", &[x, w], &[("pads", ints(&[1; 4]))]);
    net.output(y);
    let in_tiles = |tiles| Tiling {
        fused_chains: vec![fused_chain("y", "y", tiles, Axis::Rows, Mode::LineBuffer)],
        ..Tiling::default()
    };
    let apply = |tiles, exactness| apply(&net.graph(), &in_tiles(tiles), exactness);
    let exact = |threads| Exactness::Exact { threads, blocks: false };
    assert!(apply(2, exact(1)).is_ok());
    assert!(matches!(apply(2, exact(2)), Err(FissionError::OtherBits { .. })));
    assert!(matches!(apply(8, exact(1)), Err(FissionError::OtherBits { .. })));
    assert!(apply(8, Exactness::WholeSums).is_ok());
    let graph = net.graph();
    let is_limited = |exactness, bytes| is_limited_by_threads(&graph, exactness, bytes);
    assert!(is_limited(exact(2), 0) && !is_limited(exact(1), 0) && !is_limited(Exactness::WholeSums, 0));
    assert!(!is_limited(exact(2), 1 << 40), "what is small does not matter");
}

#[test]
fn a_tiled_graph_in_words() {
    let tiled = unet(2, 8)
        .check_fused_chain("conv1", "pool1", 2, Axis::Rows, Mode::LineBuffer)
        .unwrap();
    insta::assert_snapshot!(tiled.to_string());
}
