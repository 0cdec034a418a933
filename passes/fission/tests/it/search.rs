//! The search on a small network.

use remat_cost::{Device, ProblemOptions, analytic, no_bodies, problem};
use remat_fission::{
    Axis, Exactness, FusedChain, Mode, SearchOptions, Tiling, apply, bound, bound_once, more_loaded, search,
};
use remat_ir::{ElementType, Graph, GraphBuilder, OpSpec, Placement, ResultSpec, ValueType};
use remat_operators::share_overwritten;
use remat_plan::{Accounting, OrderMode, baseline};
use remat_verify::replay;

use crate::chains::unet;
use crate::net::{Net, int, ints};

fn options(device: &Device) -> SearchOptions<'_> {
    let mut options = SearchOptions::new(device);
    options.evaluations = Some(300);
    options
}

#[test]
fn the_peak_of_a_unet_falls_and_every_tiling_of_the_front_computes_the_same() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let net = unet(8, 32);
    let report = search(&net.graph(), &options(&device)).unwrap();
    let (first, last) = (&report.front[0], &report.front[report.front.len() - 1]);
    assert!(first.tiling.fused_chains.is_empty() && first.time_ppm == 1_000_000);
    assert!(last.peak * 10 < first.peak * 7, "{} of {}", last.peak, first.peak);
    for pair in report.front.windows(2) {
        assert!(pair[0].peak > pair[1].peak && pair[0].time_ppm < pair[1].time_ppm);
    }
    for candidate in &report.front {
        assert!(net.check(&candidate.tiling).is_ok());
    }
}

#[test]
fn the_same_number_of_steps_gives_the_same_front() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let graph = unet(8, 32).graph();
    for evaluations in [1, 40, 120] {
        let mut options = options(&device);
        options.evaluations = Some(evaluations);
        let report = search(&graph, &options).unwrap();
        assert!(report.evaluations <= evaluations);
        assert_eq!(report, search(&graph, &options).unwrap());
    }
}

#[test]
fn what_is_not_allowed_is_not_found() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let graph = unet(8, 32).graph();
    let mut options = options(&device);
    options.axes = vec![Axis::Columns];
    options.tiles = vec![2];
    options.again = false;
    let report = search(&graph, &options).unwrap();
    assert!(report.front.len() > 1);
    for candidate in &report.front {
        assert!(candidate.tiling.again.is_empty());
        for fused_chain in &candidate.tiling.fused_chains {
            assert_eq!((fused_chain.axis, fused_chain.tiles), (Axis::Columns, 2));
        }
        assert!(
            apply(
                &graph,
                &candidate.tiling,
                Exactness::Exact {
                    threads: 1,
                    blocks: false
                }
            )
            .is_ok()
        );
    }
    let slowest = report.front[report.front.len() - 1].time_ppm;
    let most = (slowest - 1_000_000) / 2_000;
    options.most_overhead_permille = Some(most);
    let report = search(&graph, &options).unwrap();
    assert!(
        report
            .front
            .iter()
            .all(|candidate| candidate.time_ppm <= 1_000_000 + 1_000 * most)
    );
    let stop = std::sync::atomic::AtomicBool::new(true);
    options.cancelled = Some(&stop);
    let report = search(&graph, &options).unwrap();
    assert!(!report.is_finished && report.front.len() == 1);
}

#[test]
fn ops_that_tiles_add_count_as_memory() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let graph = unet(8, 32).graph();
    let ops = |tiling: &Tiling| apply(&graph, tiling, Exactness::WholeSums).unwrap().ops.len() as u64;
    let whole = ops(&Tiling::default());
    let mut options = options(&device);
    // One op more, hundreds of them, and no number of them takes more than tables of a runtime.
    for (op_bytes, has_tiles) in [(2 << 20, false), (4_096, true), (0, true)] {
        options.op_bytes = op_bytes;
        let found = search(&graph, &options).unwrap();
        assert_eq!(found.front.len() > 1, has_tiles, "{op_bytes}");
        for candidate in &found.front {
            let peak = peak(&graph, &candidate.tiling, &device).unwrap();
            let more = more_loaded((ops(&candidate.tiling) - whole) * op_bytes);
            assert_eq!(candidate.peak, peak + more, "{op_bytes}");
        }
    }
    assert_eq!([more_loaded(1_000_000), more_loaded(2_000_000)], [0, 2_000_000]);
}

/// Bytes at the peak of a tiled graph in reference order.
fn peak(graph: &Graph, tiling: &Tiling, device: &Device) -> Option<u64> {
    let mut tiled = apply(graph, tiling, Exactness::WholeSums).ok()?;
    share_overwritten(&mut tiled);
    let options = ProblemOptions {
        accounting: Accounting::Runtime,
        order: OrderMode::Free,
        max_computes: None,
        alignment: None,
    };
    let problem = problem(&tiled, &analytic(&tiled, device, no_bodies), &options).unwrap();
    Some(replay(&problem, &baseline(&problem)).unwrap().peak)
}

/// Every set of fused chains of ops from `first` on that do not overlap, with those of `set` before them.
fn every_set(names: &[String], first: usize, set: &mut Vec<FusedChain>, visit: &mut impl FnMut(&[FusedChain])) {
    if first == names.len() {
        return visit(set);
    }
    every_set(names, first + 1, set, visit);
    for last in first..names.len() {
        for tiles in [2, 4] {
            for mode in [Mode::LineBuffer, Mode::Recompute] {
                set.push(FusedChain {
                    first: names[first].clone(),
                    last: names[last].clone(),
                    tiles,
                    axis: Axis::Rows,
                    mode,
                    within: None,
                });
                every_set(names, last + 1, set, visit);
                set.pop();
            }
        }
    }
}

#[test]
fn no_set_of_fused_chains_of_a_chain_has_a_lower_peak() {
    let device = Device::preset("cortex-m7").unwrap();
    let chains: [&[(usize, i64)]; 3] = [
        &[(12, 1), (2, 2), (16, 1), (3, 1)],
        &[(4, 1), (8, 1), (8, 2), (24, 1)],
        &[(2, 2), (20, 1), (20, 1), (6, 2)],
    ];
    for layers in chains {
        let mut net = Net::default();
        let (mut at, mut channels) = (net.input("x", &[1, 4, 16, 16]), 4);
        for (place, &(made, stride)) in layers.iter().enumerate() {
            let weights = net.constant(&format!("w{place}"), &[made, channels, 3, 3]);
            let attributes = [("pads", ints(&[1, 1, 1, 1])), ("strides", ints(&[stride, stride]))];
            at = net.op(&format!("conv{place}"), "Conv", &[at, weights], &attributes);
            channels = made;
        }
        let mean = net.op("mean", "GlobalAveragePool", &[at], &[]);
        net.output(mean);
        let graph = net.graph();
        let names: Vec<String> = graph.ops.iter().map(|op| op.name.clone()).collect();
        let mut least = u64::MAX;
        every_set(&names, 0, &mut Vec::new(), &mut |fused_chains| {
            let tiling = Tiling {
                fused_chains: fused_chains.to_vec(),
                ..Tiling::default()
            };
            least = peak(&graph, &tiling, &device).map_or(least, |peak| least.min(peak));
        });
        let mut options = SearchOptions::new(&device);
        options.exactness = Exactness::WholeSums;
        options.axes = vec![Axis::Rows];
        options.tiles = vec![2, 4];
        options.again = false;
        let report = search(&graph, &options).unwrap();
        let last = report.front.last().unwrap();
        assert_eq!(peak(&graph, &last.tiling, &device), Some(last.peak));
        assert!(report.is_finished);
        assert_eq!(last.peak, least, "{:?}", last.tiling);
        assert!(least * 10 < report.front[0].peak * 8);
        // Every row of every axis is a tile of some tiling.
        assert!(bound(&graph, Exactness::WholeSums).unwrap().bytes <= least);
    }
}

#[test]
fn patches_take_less_than_rows() {
    let device = Device::preset("cortex-m7").unwrap();
    let mut net = Net::default();
    let mut at = net.input("x", &[1, 2, 24, 24]);
    for (block, channels) in [2, 4].into_iter().enumerate() {
        let of = |part: &str| format!("{part}{block}");
        let wide = net.constant(&of("we"), &[16, channels, 1, 1]);
        let depth = net.constant(&of("wd"), &[16, 1, 3, 3]);
        let narrow = net.constant(&of("wp"), &[4, 16, 1, 1]);
        let of_channels = [("pads", ints(&[1; 4])), ("group", int(16)), ("strides", ints(&[2, 2]))];
        at = net.op(&of("expand"), "Conv", &[at, wide], &[]);
        at = net.op(&of("depthwise"), "Conv", &[at, depth], &of_channels);
        at = net.op(&of("project"), "Conv", &[at, narrow], &[]);
    }
    net.output(at);
    let graph = net.graph();
    let lowest = |grids: bool| {
        let mut options = SearchOptions::new(&device);
        options.exactness = Exactness::WholeSums;
        options.axes = vec![Axis::Rows];
        options.tiles = vec![2, 3, 6];
        options.grids = grids;
        options.evaluations = Some(2_000);
        search(&graph, &options).unwrap().front.pop().unwrap()
    };
    let (rows, patches) = (lowest(false), lowest(true));
    assert!(patches.peak * 4 < rows.peak * 3, "{patches:?} {rows:?}");
    assert!(
        patches
            .tiling
            .fused_chains
            .iter()
            .any(|fused_chain| fused_chain.within.is_some())
    );
    assert_eq!(peak(&graph, &patches.tiling, &device), Some(patches.peak));
    net.check(&patches.tiling).unwrap();
}

#[test]
fn the_bound_is_reached_where_an_op_needs_its_operand_whole() {
    // Every column of the product reads the whole row on its left, and joining the columns takes them twice.
    let mut net = Net::default();
    let x = net.input("x", &[1, 4, 8, 8]);
    let weights = net.constant("w", &[8, 4, 1, 1]);
    let conv = net.op("conv", "Conv", &[x, weights], &[]);
    let flat = net.op("flat", "Flatten", &[conv], &[]);
    let dense = net.constant("dense", &[512, 512]);
    let y = net.op("y", "MatMul", &[flat, dense], &[]);
    net.output(y);
    let bound = bound(&net.graph(), Exactness::WholeSums).unwrap();
    assert_eq!((bound.bytes, bound.op.as_str()), (4 * (512 + 512), "y"));
}

#[test]
fn what_waits_beside_what_is_needed_whole_bounds_tilings_that_compute_nothing_twice() {
    // Every row of the second convolution needs all rows of the norm, and so of the first one, which the sum needs, too.
    let mut net = Net::default();
    let x = net.input("x", &[1, 4, 16, 16]);
    let [first, second] = ["first", "second"].map(|name| net.constant(name, &[4, 4, 3, 3]));
    let [scale, bias] = ["scale", "bias"].map(|name| net.constant(name, &[4]));
    let pads = [("pads", ints(&[1; 4]))];
    let a = net.op("a", "Conv", &[x, first], &pads);
    let n = net.op("n", "InstanceNormalization", &[a, scale, bias], &[]);
    let b = net.op("b", "Conv", &[n, second], &pads);
    let sum = net.op("sum", "Add", &[a, b], &[]);
    let mean = net.op("mean", "GlobalAveragePool", &[sum], &[]);
    net.output(mean);
    let graph = net.graph();
    let bound = |exactness| bound_once(&graph, exactness).unwrap();
    let (whole, image) = (bound(Exactness::WholeSums), 4 * 4 * 16 * 16);
    let held = [("a".to_owned(), image), ("n".to_owned(), image)];
    assert_eq!(
        (whole.bytes, whole.op.as_str(), &whole.held[..]),
        (2 * image, "b", &held[..])
    );
    // In two passes the norm is made of the first convolution row by row.
    let close = bound(Exactness::Close);
    assert!((image..image + 100).contains(&close.bytes), "{close:?}");

    // Without the norm, rows need few rows.
    let mut net = Net::default();
    let x = net.input("x", &[1, 4, 16, 16]);
    let first = net.constant("first", &[4, 4, 3, 3]);
    let a = net.op("a", "Conv", &[x, first], &pads);
    let b = net.op("b", "Conv", &[a, first], &pads);
    let sum = net.op("sum", "Add", &[a, b], &[]);
    net.output(sum);
    assert_eq!(bound_once(&net.graph(), Exactness::WholeSums), None);
}

#[test]
fn sizes_whose_sums_no_number_holds_are_no_reason_to_stop_short() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    // Twenty outputs of 2^60 bytes.
    let row = ValueType::tensor(ElementType::Float32, &[2, 1 << 57]);
    let mut builder = GraphBuilder::new("large");
    let mut at = builder.input("x", row.clone()).unwrap();
    for place in 0..20 {
        let name = format!("r{place}");
        let mut spec = OpSpec::new(name.clone(), "Softmax");
        spec.inputs = vec![Some(at)];
        spec.results = vec![Some(ResultSpec {
            name,
            ty: row.clone(),
            placement: Placement::New,
        })];
        at = builder.op(spec).unwrap().1[0].unwrap();
        builder.output(at);
    }
    let graph = builder.finish();
    let report = search(&graph, &options(&device)).unwrap();
    assert!(report.front.is_empty(), "all of it together has no size");
    assert!(bound(&graph, Exactness::WholeSums).unwrap().bytes >= 1 << 60);
}
