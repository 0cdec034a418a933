//! Tiles in the forms in which ONNX Runtime computes ops at `ENABLE_ALL`.

use remat_fission::{Again, Axis, Exactness, FissionError, FusedChain, Mode, Tiling, apply};
use remat_fission_check::check_fission;
use remat_ir::{Graph, TensorId};

use crate::net::{Net, ints};

const EXACT: Exactness = Exactness::Exact {
    threads: 1,
    blocks: false,
};

/// Features that a residual block adds its own to; what the sum is written as decides nothing.
struct Residual {
    net: Net,
    features: TensorId,
}

fn residual(is_skip_first: bool, has_bias: bool) -> Residual {
    let mut net = Net::default();
    let same = [("pads", ints(&[1, 1, 1, 1]))];
    let x = net.input("x", &[1, 16, 32, 32]);
    let conv = |net: &mut Net, name: &str, x: TensorId| {
        let mut operands = vec![x, net.constant(&format!("w_{name}"), &[16, 16, 3, 3])];
        if has_bias {
            operands.push(net.constant(&format!("b_{name}"), &[16]));
        }
        net.op(name, "Conv", &operands, &same)
    };
    let features = conv(&mut net, "features", x);
    let inner = net.op("relu", "Relu", &[features], &[]);
    let inner = conv(&mut net, "inner", inner);
    let operands = if is_skip_first {
        [features, inner]
    } else {
        [inner, features]
    };
    let sum = net.op("sum", "Add", &operands, &[]);
    let y = conv(&mut net, "last", sum);
    net.output(y);
    Residual { net, features }
}

fn again(first: &str, before: &str) -> Tiling {
    Tiling {
        again: vec![Again {
            first: first.to_owned(),
            last: first.to_owned(),
            before: before.to_owned(),
        }],
        ..Tiling::default()
    }
}

fn rows(first: &str, last: &str) -> Tiling {
    Tiling {
        fused_chains: vec![FusedChain {
            first: first.to_owned(),
            last: last.to_owned(),
            tiles: 2,
            axis: Axis::Rows,
            mode: Mode::LineBuffer,
            within: None,
        }],
        ..Tiling::default()
    }
}

fn other_form(graph: &Graph, tiling: &Tiling) -> Option<String> {
    match apply(graph, tiling, EXACT) {
        Ok(_) => None,
        Err(FissionError::OtherForm(op)) => Some(op),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_pool_over_all_of_an_image_reads_what_stays_in_blocks() {
    let mut net = Net::default();
    let x = net.input("x", &[1, 16, 32, 32]);
    let weights = net.constant("w", &[32, 16, 1, 1]);
    let conv = net.op("conv", "Conv", &[x, weights], &[]);
    let active = net.op("active", "Relu", &[conv], &[]);
    let pool = net.op("pool", "GlobalAveragePool", &[active], &[]);
    net.output(pool);
    let graph = net.graph();
    let in_tiles = |tiles, axis| {
        let mut tiling = rows("conv", "conv");
        (tiling.fused_chains[0].tiles, tiling.fused_chains[0].axis) = (tiles, axis);
        other_form(&graph, &tiling)
    };
    assert_eq!(in_tiles(2, Axis::Rows).as_deref(), Some("pool"));
    assert_eq!(in_tiles(2, Axis::Channels), None);
    // On some machines 8 channels fill no block.
    assert_eq!(in_tiles(4, Axis::Channels).as_deref(), Some("pool"));
}

#[test]
fn a_sum_stays_part_of_the_convolution_that_it_is_part_of() {
    // What is read twice makes no sum; its clone, which the sum alone reads, would, where it is the first operand.
    for has_bias in [false, true] {
        for is_skip_first in [false, true] {
            let residual = residual(is_skip_first, has_bias);
            let graph = residual.net.graph();
            assert_eq!(graph.users()[residual.features].len(), 2);
            let differs = other_form(&graph, &again("features", "sum")).is_some();
            assert_eq!(differs, is_skip_first, "{has_bias}");
        }
    }
}

#[test]
fn rows_of_a_skip_are_put_back_into_blocks() {
    let graph = residual(true, true).net.graph();
    let in_blocks = Exactness::Exact {
        threads: 1,
        blocks: true,
    };
    let tiled = apply(&graph, &rows("relu", "sum"), in_blocks).unwrap();
    check_fission(&graph, &tiled).unwrap();
    let back: Vec<_> = tiled.ops.iter().filter(|op| op.op_type == "MaxPool").collect();
    assert_eq!(back.len(), 2);
    for (tile, back) in back.into_iter().enumerate() {
        let sum = tiled
            .ops
            .iter()
            .find(|op| op.name == format!("sum_tile{tile}"))
            .unwrap();
        assert!(sum.reads().any(|read| back.results().any(|result| result == read)));
    }
    // Without blocks there are none to be put back into.
    assert!(other_form(&graph, &rows("relu", "sum")).is_some_and(|op| op.starts_with("sum")));
    assert_eq!(other_form(&graph, &rows("last", "last")), None);
    assert!(apply(&graph, &rows("relu", "sum"), Exactness::WholeSums).is_ok());
}
