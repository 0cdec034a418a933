//! Operations counted by hand.

use proptest::prelude::*;
use remat_ir::{Attribute, Dim, ElementType, GraphBuilder, OpSpec, ValueType};

use super::*;
use crate::operands::product;
use crate::{Device, analytic, no_bodies};

/// One op of the default domain on operands of these shapes.
struct Case {
    spec: OpSpec,
    inputs: Vec<Vec<u64>>,
    output: Vec<u64>,
}

fn case(op_type: &str, inputs: &[&[u64]], output: &[u64]) -> Case {
    Case {
        spec: OpSpec::new("op", op_type),
        inputs: inputs.iter().map(|shape| shape.to_vec()).collect(),
        output: output.to_vec(),
    }
}

impl Case {
    fn int(mut self, name: &str, value: i64) -> Self {
        self.spec.attributes.insert(name.into(), Attribute::Int(value));
        self
    }

    fn ints(mut self, name: &str, values: &[i64]) -> Self {
        self.spec
            .attributes
            .insert(name.into(), Attribute::Ints(values.to_vec()));
        self
    }

    fn text(mut self, name: &str, value: &str) -> Self {
        self.spec
            .attributes
            .insert(name.into(), Attribute::String(value.into()));
        self
    }

    fn microsoft(mut self) -> Self {
        self.spec.domain = "com.microsoft".into();
        self
    }

    fn graph(self) -> Graph {
        let mut builder = GraphBuilder::new("case");
        let mut spec = self.spec;
        for (position, shape) in self.inputs.iter().enumerate() {
            let ty = ValueType::tensor(ElementType::Float32, shape);
            spec = spec.reads(builder.input(format!("x{position}"), ty).unwrap());
        }
        spec = spec.defines("y", ValueType::tensor(ElementType::Float32, &self.output));
        builder.op(spec).unwrap();
        builder.finish()
    }

    fn work(self) -> Work {
        let graph = self.graph();
        work(&graph, graph.ops.first().unwrap())
    }

    fn flops(self) -> u128 {
        self.work().flops
    }
}

#[test]
fn conv_counts_a_multiply_add_per_weight_and_pixel() {
    let plain = case("Conv", &[&[2, 3, 8, 8], &[16, 3, 3, 3]], &[2, 16, 8, 8]);
    assert_eq!(plain.flops(), 2 * 2 * 16 * 8 * 8 * (3 * 3 * 3));
    let strided = case("Conv", &[&[1, 4, 8, 8], &[6, 4, 3, 3]], &[1, 6, 4, 4]).ints("strides", &[2, 2]);
    assert_eq!(strided.flops(), 2 * 6 * 4 * 4 * (4 * 3 * 3));
    let grouped = case("Conv", &[&[1, 8, 5, 5], &[8, 2, 3, 3]], &[1, 8, 5, 5]).int("group", 4);
    assert_eq!(grouped.flops(), 2 * 8 * 5 * 5 * (2 * 3 * 3));
    let one_axis = case("Conv", &[&[1, 4, 100], &[8, 4, 5]], &[1, 8, 96]);
    assert_eq!(one_axis.flops(), 2 * 8 * 96 * (4 * 5));
}

#[test]
fn a_conv_with_one_channel_per_group_is_depthwise_and_others_are_not() {
    let class = |weights: &[u64], group| {
        let conv = case("Conv", &[&[1, 8, 5, 5], weights], &[1, 8, 5, 5]).int("group", group);
        conv.work().class
    };
    assert_eq!(class(&[8, 1, 3, 3], 8), KernelClass::DepthwiseConv);
    assert_eq!(class(&[8, 2, 3, 3], 4), KernelClass::Conv);
    assert_eq!(class(&[8, 1, 3, 3], 1), KernelClass::Conv);
}

#[test]
fn quantized_and_fused_convs_find_their_weights() {
    let scalar: &[u64] = &[];
    let quantized = case(
        "QLinearConv",
        &[
            &[1, 3, 8, 8],
            scalar,
            scalar,
            &[16, 3, 3, 3],
            scalar,
            scalar,
            scalar,
            scalar,
        ],
        &[1, 16, 8, 8],
    );
    assert_eq!(quantized.flops(), 2 * 16 * 64 * 27);
    let fused = case("FusedConv", &[&[1, 3, 8, 8], &[16, 3, 3, 3]], &[1, 16, 8, 8]).microsoft();
    assert_eq!(fused.flops(), 2 * 16 * 64 * 27);
}

#[test]
fn conv_transpose_counts_by_input_pixel() {
    let up = case("ConvTranspose", &[&[1, 8, 4, 4], &[8, 3, 2, 2]], &[1, 3, 8, 8]).ints("strides", &[2, 2]);
    assert_eq!(up.flops(), 2 * (8 * 4 * 4) * (3 * 2 * 2));
}

#[test]
fn gemm_finds_the_inner_dimension_under_transposes() {
    let plain = case("Gemm", &[&[5, 7], &[7, 3]], &[5, 3]);
    assert_eq!(plain.flops(), 2 * 5 * 3 * 7);
    let transposed = case("Gemm", &[&[7, 5], &[3, 7], &[3]], &[5, 3])
        .int("transA", 1)
        .int("transB", 1);
    assert_eq!(transposed.flops(), 2 * 5 * 3 * 7 + 15);
}

#[test]
fn a_transposed_left_operand_is_turned_for_every_stretch_of_columns() {
    let repacked = |columns: u64, turned: i64| {
        let product = case("Gemm", &[&[64, 8], &[64, columns]], &[8, columns]);
        product.int("transA", turned).work().detail.repacked_bytes
    };
    assert_eq!(repacked(100, 0), 4 * 64 * 100);
    assert_eq!(repacked(100, 1), 4 * 64 * 100 + 2 * (4 * 64 * 8));
    assert_eq!(repacked(300, 1), 4 * 64 * 300 + 3 * 2 * (4 * 64 * 8));
}

#[test]
fn matmul_broadcasts_batches() {
    assert_eq!(
        case("MatMul", &[&[4, 1, 5, 7], &[6, 7, 3]], &[4, 6, 5, 3]).flops(),
        2 * 4 * 6 * 5 * 3 * 7
    );
    assert_eq!(case("MatMul", &[&[7], &[7, 3]], &[3]).flops(), 2 * 3 * 7);
    let fused = case("FusedMatMul", &[&[2, 7, 5], &[2, 7, 3]], &[2, 5, 3])
        .microsoft()
        .int("transA", 1);
    assert_eq!(fused.flops(), 2 * 2 * 5 * 3 * 7);
}

#[test]
fn products_of_stablehlo_sum_over_the_dimensions_they_name() {
    let product = |inner: &[i64]| {
        let mut product =
            case("dot_general", &[&[64, 16], &[64, 8]], &[16, 8]).ints("lhs_contracting_dimensions", inner);
        product.spec.domain = "stablehlo".into();
        product.flops()
    };
    assert_eq!(product(&[0]), 2 * 16 * 8 * 64);
    assert_eq!(product(&[]), 2 * 16 * 8, "an outer product");
    assert_eq!(product(&[7]), 0, "no such dimension");
}

#[test]
fn einsum_spans_the_space_of_its_letters() {
    let product = case("Einsum", &[&[8, 4, 6], &[8, 5, 6]], &[8, 4, 5]).text("equation", "bij, bkj -> bik");
    assert_eq!(product.flops(), 2 * 8 * 4 * 5 * 6);
    let hidden = case("Einsum", &[&[2, 3, 4, 6], &[3, 6, 5]], &[2, 3, 4, 5]).text("equation", "...ij,...jk->...ik");
    assert_eq!(hidden.flops(), 2 * 2 * 3 * 4 * 5 * 6);
    let trace = case("Einsum", &[&[9, 9]], &[]).text("equation", "ii");
    assert_eq!(trace.flops(), 9);
    let misfit = case("Einsum", &[&[9, 9, 9]], &[]).text("equation", "ii");
    assert_eq!(misfit.flops(), 0);
}

#[test]
fn recurrent_layers_meet_every_weight_once_per_step() {
    // 5 steps, batch 2, input 3, hidden 4: four gates of LSTM, three of GRU.
    let lstm = case("LSTM", &[&[5, 2, 3], &[1, 16, 3], &[1, 16, 4]], &[5, 1, 2, 4]);
    assert_eq!(lstm.flops(), 5 * 2 * (2 * (16 * 3 + 16 * 4) + 16 * 10));
    let both_ways = case("GRU", &[&[5, 2, 3], &[2, 12, 3], &[2, 12, 4]], &[5, 2, 2, 4]);
    assert_eq!(both_ways.flops(), 5 * 2 * (2 * (24 * 3 + 24 * 4) + 24 * 10));
}

#[test]
fn pools_count_their_windows_and_reductions_their_operand() {
    let pool = case("MaxPool", &[&[1, 4, 8, 8]], &[1, 4, 4, 4]).ints("kernel_shape", &[3, 3]);
    assert_eq!(pool.flops(), 4 * 4 * 4 * 9);
    assert_eq!(case("GlobalAveragePool", &[&[1, 4, 8, 8]], &[1, 4, 1, 1]).flops(), 256);
    assert_eq!(case("ReduceSum", &[&[6, 7], &[1]], &[6, 1]).flops(), 42);
    assert_eq!(case("ReduceSumSquare", &[&[6, 7], &[1]], &[6, 1]).flops(), 84);
}

#[test]
fn attention_counts_scores_products_and_projections() {
    // Batch 2, 8 queries, 10 keys, 4 heads of 16.
    let separate = case(
        "MultiHeadAttention",
        &[&[2, 8, 64], &[2, 10, 64], &[2, 10, 64]],
        &[2, 8, 64],
    );
    let scores = |queries: u128, keys: u128| 2 * queries * keys * (2 * (64 + 64) + 4 * 8);
    assert_eq!(separate.microsoft().int("num_heads", 4).flops(), scores(8, 10));
    let heads_apart = case(
        "Attention",
        &[&[2, 4, 8, 16], &[2, 4, 10, 16], &[2, 4, 10, 16]],
        &[2, 4, 8, 16],
    );
    assert_eq!(heads_apart.int("q_num_heads", 4).flops(), scores(8, 10));
    let projected = case("Attention", &[&[2, 8, 32], &[32, 192], &[192]], &[2, 8, 64]).microsoft();
    assert_eq!(
        projected.int("num_heads", 4).flops(),
        2 * 2 * 8 * 32 * 192 + scores(8, 8)
    );
    // Grouped queries: 4 query heads, 2 heads of keys and values, 5 cached steps.
    let grouped = case(
        "GroupQueryAttention",
        &[&[2, 8, 64], &[2, 8, 32], &[2, 8, 32], &[2, 2, 5, 16], &[2, 2, 5, 16]],
        &[2, 8, 64],
    );
    assert_eq!(grouped.microsoft().int("num_heads", 4).flops(), scores(8, 13));
}

#[test]
fn ops_that_pick_read_only_what_they_write() {
    let gather = case("Gather", &[&[50_000, 64], &[10]], &[10, 64]).work();
    assert_eq!((gather.read_bytes, gather.written_bytes), (2_560, 2_560));
    let expand = case("Expand", &[&[1, 4], &[2]], &[100, 4]).work();
    assert_eq!((expand.read_bytes, expand.written_bytes), (16, 1_600));
    assert_eq!(case("Shape", &[&[50_000, 64]], &[2]).work().read_bytes, 0);
}

#[test]
fn loops_are_counted_where_memory_is_not_contiguous() {
    let runs = |case: Case| case.work().detail.runs;
    assert_eq!(runs(case("Add", &[&[8, 16, 4], &[8, 16, 4]], &[8, 16, 4])), 1);
    assert_eq!(runs(case("Add", &[&[8, 16, 4], &[16, 1]], &[8, 16, 4])), 8 * 16);
    assert_eq!(runs(case("Expand", &[&[8, 1, 4, 1], &[4]], &[8, 2, 4, 2])), 8 * 2 * 4);
    assert_eq!(
        runs(case("Transpose", &[&[8, 16, 4]], &[16, 8, 4]).ints("perm", &[1, 0, 2])),
        8 * 16
    );
    assert_eq!(runs(case("Transpose", &[&[32, 16]], &[16, 32])), 32);
    assert_eq!(runs(case("Slice", &[&[8, 16, 4], &[1], &[1]], &[8, 10, 4])), 8);
    assert_eq!(runs(case("Concat", &[&[8, 3, 4], &[8, 5, 4]], &[8, 8, 4])), 16);
    assert_eq!(runs(case("Gather", &[&[6, 9, 4], &[7]], &[6, 7, 4]).int("axis", 1)), 42);
}

#[test]
fn an_unknown_shape_leaves_only_the_known_bytes() {
    let mut builder = GraphBuilder::new("open");
    let open = ValueType::Tensor {
        element: ElementType::Float32,
        shape: Some(vec![Dim::Symbol("N".into()), Dim::Known(4)]),
    };
    let x = builder.input("x", open.clone()).unwrap();
    let w = builder
        .constant("w", ValueType::tensor(ElementType::Float32, &[4, 5]))
        .unwrap();
    builder
        .op(OpSpec::new("mm", "MatMul").reads(x).reads(w).defines("y", open))
        .unwrap();
    let graph = builder.finish();
    let work = work(&graph, graph.ops.first().unwrap());
    assert_eq!((work.flops, work.read_bytes, work.written_bytes), (0, 80, 0));
}

#[test]
fn absurd_shapes_saturate() {
    let mut builder = GraphBuilder::new("absurd");
    let absurd = ValueType::Tensor {
        element: ElementType::Float32,
        shape: Some(vec![Dim::Known(u64::MAX >> 6), Dim::Known(1)]),
    };
    let x = builder.input("x", absurd.clone()).unwrap();
    let wide = ValueType::tensor(ElementType::Float32, &[1, u64::MAX >> 6]);
    let w = builder.input("w", wide).unwrap();
    builder
        .op(OpSpec::new("mm", "MatMul").reads(w).reads(x).defines("y", absurd))
        .unwrap();
    let graph = builder.finish();
    let profile = analytic(&graph, &Device::default(), no_bodies);
    let cost = profile.ops.first().unwrap();
    assert_eq!((cost.duration_ns, cost.flops), (u64::MAX, u64::MAX));
    assert_eq!(product(&[u64::MAX, u64::MAX, u64::MAX]), u128::MAX);
    assert_eq!(product(&[u64::MAX, u64::MAX, 0]), 0);
}

#[test]
fn foreign_domains_are_charged_by_bytes() {
    let mut foreign = case("Conv", &[&[2, 3, 8, 8], &[16, 3, 3, 3]], &[2, 16, 8, 8]);
    foreign.spec.domain = "org.example".into();
    let work = foreign.work();
    assert_eq!((work.class, work.flops), (KernelClass::Unknown, 0));
    assert!(work.read_bytes > 0);
}

#[test]
fn what_is_best_costs_a_look_at_each_element_and_what_is_sorted_its_moves() {
    let best = |axis, shape: &[u64], kept: &[u64]| case("TopK", &[shape, &[1]], kept).int("axis", axis).work().flops;
    // Of 200,000 random elements about 108 are among the ten best when their turn comes.
    let of_row = 200_000 + 16 * 108 * 3;
    assert_eq!(best(-1, &[32, 200_000], &[32, 10]), 32 * of_row);
    assert_eq!(best(0, &[200_000, 32], &[10, 32]), 32 * of_row);
    assert_eq!(best(1, &[8, 4096], &[8, 4096]), 8 * (4096 + 16 * 4096 * 12));
}

/// Types that the property below draws from, one of each formula at least.
const TYPES: &str = "\
    Add Where Exp Conv ConvTranspose MatMul Gemm Einsum ReduceSum MaxPool AveragePool GlobalAveragePool LRN \
    LayerNormalization Softmax TopK Attention LSTM Concat Transpose Gather GatherND GatherElements \
    ScatterElements ScatterND Expand Shape Loop Mystery Max";

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn no_kernel_is_free_and_no_shape_panics(
        op_type in proptest::sample::select(TYPES.split(' ').collect::<Vec<_>>()),
        shapes in prop::collection::vec(prop::collection::vec(0u64..1 << 12, 0..5), 0..4),
        output in prop::collection::vec(0u64..1 << 10, 0..5),
        axis in any::<i64>(),
        ints in prop::collection::vec(any::<i64>(), 0..5),
        equation in "[a-c.,>-]{0,9}",
    ) {
        let shapes: Vec<&[u64]> = shapes.iter().map(Vec::as_slice).collect();
        let mut case = case(op_type, &shapes, &output).int("axis", axis).int("group", axis).int("size", axis);
        for name in ["perm", "strides", "kernel_shape"] {
            case = case.ints(name, &ints);
        }
        let graph = case.int("transA", axis & 1).text("equation", &equation).graph();
        for device in Device::presets() {
            let profile = analytic(&graph, device, no_bodies);
            prop_assert!(profile.ops.iter().all(|op| op.duration_ns >= device.launch_ns));
        }
    }
}
