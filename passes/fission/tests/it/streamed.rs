//! Normalizations in two passes and sums that are split: what the checker accepts computes what the original computes, in double precision.

use std::ops::RangeInclusive;

use proptest::prelude::*;
use remat_cost::{Device, ProblemOptions, analytic, no_bodies, problem};
use remat_fission::{
    Axis, Exactness, FissionError, FusedChain, Mode, Moved, SearchOptions, Tiling, apply, bound, search,
};
use remat_fission_check::check_fission;
use remat_ir::{Attribute, ElementType, Graph, GraphBuilder, OpSpec, TensorId, ValueType};
use remat_plan::Structure;
use remat_testing::{Numbers, cases, evaluate_numbers};

use crate::net::{fused_chain, open};

/// How exporters write a normalization.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pattern {
    /// Every channel is an instance.
    Instance,
    /// Groups are instances between two reshapes.
    Reshaped,
    /// One op, with numbers for each channel.
    Group,
    /// One op, with numbers for each element; of each channel by itself where there is more than one group.
    Elements,
}

/// What inputs are like.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Normal,
    FarFromZero,
    Constant,
    Denormal,
}

const KINDS: [Kind; 4] = [Kind::Normal, Kind::FarFromZero, Kind::Constant, Kind::Denormal];

/// Images, channels, groups and the axes of an image.
#[derive(Clone, Debug)]
struct Shape {
    images: u64,
    groups: u64,
    each: u64,
    image: Vec<u64>,
}

impl Shape {
    fn dims(&self) -> Vec<u64> {
        [&[self.images, self.groups * self.each], self.image.as_slice()].concat()
    }

    fn count(&self) -> u64 {
        self.image.iter().product()
    }
}

struct Net {
    builder: GraphBuilder,
    shape: Shape,
}

impl Net {
    fn op(
        &mut self,
        name: &str,
        op_type: &str,
        inputs: &[TensorId],
        dims: &[u64],
        attributes: &[(&str, Attribute)],
    ) -> TensorId {
        let mut spec = OpSpec::new(name, op_type);
        spec.source = u32::try_from(self.builder.graph().ops.len()).ok();
        spec.inputs = inputs.iter().map(|&input| Some(input)).collect();
        spec.attributes = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let spec = spec.defines(name, ValueType::tensor(ElementType::Float32, dims));
        self.builder.op(spec).unwrap().1[0].unwrap()
    }

    fn constant(&mut self, name: String, dims: &[u64]) -> TensorId {
        self.builder
            .constant(name, ValueType::tensor(ElementType::Float32, dims))
            .unwrap()
    }

    fn list(&mut self, name: String, elements: &[u64]) -> TensorId {
        let elements: Vec<i64> = elements.iter().map(|&element| element.cast_signed()).collect();
        let ty = ValueType::tensor(ElementType::Int64, &[elements.len() as u64]);
        self.builder.integers(name, ty, elements).unwrap()
    }

    /// The dimensions of a tensor, as exporters ask for them.
    fn shape(&mut self, name: String, of: TensorId) -> TensorId {
        let mut spec = OpSpec::new(name.clone(), "Shape");
        spec.source = u32::try_from(self.builder.graph().ops.len()).ok();
        spec.inputs = vec![Some(of)];
        let axes = self.shape.dims().len() as u64;
        let spec = spec.defines(name, ValueType::tensor(ElementType::Int64, &[axes]));
        self.builder.op(spec).unwrap().1[0].unwrap()
    }

    /// A normalization; its last op and result have the name.
    fn norm(
        &mut self,
        name: &str,
        pattern: Pattern,
        epsilon: Option<f32>,
        numbers: [bool; 2],
        x: TensorId,
    ) -> TensorId {
        let (dims, shape) = (self.shape.dims(), self.shape.clone());
        let (channels, groups) = (dims[1], shape.groups);
        let epsilon: Vec<(&str, Attribute)> = epsilon
            .map(|epsilon| ("epsilon", Attribute::Float(epsilon)))
            .into_iter()
            .collect();
        let of = |what: &str| format!("{name}.{what}");
        let is_elements = pattern == Pattern::Elements;
        let numbers = numbers.map(|is_there| is_there && !is_elements);
        let is_last = numbers == [false, false];
        let own = if is_last { name.to_owned() } else { of("norm") };
        let mut y = match pattern {
            Pattern::Instance => {
                let (scale, bias) = (
                    self.constant(of("scale"), &[channels]),
                    self.constant(of("bias"), &[channels]),
                );
                self.op(&own, "InstanceNormalization", &[x, scale, bias], &dims, &epsilon)
            }
            Pattern::Group => {
                let (scale, bias) = (
                    self.constant(of("scale"), &[channels]),
                    self.constant(of("bias"), &[channels]),
                );
                let attributes = [epsilon, vec![("num_groups", Attribute::Int(groups.cast_signed()))]].concat();
                self.op(&own, "GroupNormalization", &[x, scale, bias], &dims, &attributes)
            }
            Pattern::Elements => {
                let (first, axis) = if groups > 1 { (2, 2) } else { (1, 1) };
                let [scale, bias] = ["scale", "bias"].map(|name| self.constant(of(name), &dims[first..]));
                let attributes = [epsilon, vec![("axis", Attribute::Int(axis))]].concat();
                self.op(&own, "LayerNormalization", &[x, scale, bias], &dims, &attributes)
            }
            Pattern::Reshaped => {
                let inner = [shape.images, groups, shape.each * shape.count()];
                // The number of images is that of the operand.
                let to = self.list(of("to"), &[&[0], &inner[1..]].concat());
                let back = self.shape(of("back"), x);
                let (scale, bias) = (
                    self.constant(of("scale"), &[groups]),
                    self.constant(of("bias"), &[groups]),
                );
                let x = self.op(&of("before"), "Reshape", &[x, to], &inner, &[]);
                let x = self.op(
                    &of("instances"),
                    "InstanceNormalization",
                    &[x, scale, bias],
                    &inner,
                    &epsilon,
                );
                self.op(&own, "Reshape", &[x, back], &dims, &[])
            }
        };
        let by_channel = [&[channels], vec![1; shape.image.len()].as_slice()].concat();
        if numbers[0] {
            let factor = self.constant(of("factor"), &by_channel);
            let name = if numbers[1] { of("times") } else { name.to_owned() };
            y = self.op(&name, "Mul", &[factor, y], &dims, &[]);
        }
        if numbers[1] {
            let summand = self.constant(of("summand"), &by_channel);
            y = self.op(name, "Add", &[y, summand], &dims, &[]);
        }
        y
    }
}

/// Two normalizations, a sum of what is between them, and sums of what comes of it.
fn net(shape: &Shape, pattern: Pattern, epsilon: Option<f32>, numbers: [bool; 2], gives_image: bool) -> Graph {
    let dims = shape.dims();
    let mut net = Net {
        builder: GraphBuilder::new("g"),
        shape: shape.clone(),
    };
    let x = net
        .builder
        .input("x", ValueType::tensor(ElementType::Float32, &dims))
        .unwrap();
    let a = net.op("a", "Relu", &[x], &dims, &[]);
    let first = net.norm("first", pattern, epsilon, numbers, a);
    let b = net.op("b", "Relu", &[first], &dims, &[]);
    let c = net.op("c", "Add", &[b, a], &dims, &[]);
    let second = net.norm("second", pattern, epsilon, numbers, c);
    let d = net.op("d", "Relu", &[second], &dims, &[]);
    let axes = Attribute::Ints((2_i64..).take(dims.len() - 2).collect());
    let pooled = [&dims[..2], vec![1; dims.len() - 2].as_slice()].concat();
    let mean = net.op("mean", "ReduceMean", &[d], &pooled, &[("axes", axes.clone())]);
    let most = net.op("most", "ReduceMax", &[d], &pooled, &[("axes", axes.clone())]);
    let sum = net.op(
        "sum",
        "ReduceSumSquare",
        &[d],
        &dims[..2],
        &[("axes", axes), ("keepdims", Attribute::Int(0))],
    );
    let pool = net.op("pool", "GlobalAveragePool", &[d], &pooled, &[]);
    for output in [mean, most, sum, pool].into_iter().chain(gives_image.then_some(d)) {
        net.builder.output(output);
    }
    net.builder.finish()
}

fn given(kind: Kind) -> impl Fn(&str, &[usize]) -> Numbers {
    move |name, dims| {
        let seed = name
            .bytes()
            .fold(7u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
        };
        Numbers::from_fn(dims, |_| match kind {
            // Few numbers, many of which are equal.
            _ if name == "few" => (next() * 2.0).round(),
            _ if name != "x" => next(),
            Kind::Normal => next(),
            Kind::FarFromZero => 1e4 + next(),
            Kind::Constant => 0.7,
            Kind::Denormal => next() * 1e-40,
        })
    }
}

/// Whether two graphs have the same outputs, up to what double precision leaves of sums in another order.
pub(crate) fn computes(original: &Graph, other: &Graph) -> bool {
    KINDS.iter().all(|&kind| {
        let (before, after) = (
            evaluate_numbers(original, given(kind)),
            evaluate_numbers(other, given(kind)),
        );
        original.outputs.iter().all(|&output| {
            let name = &original.tensors[output].name;
            let (before, Some(after)) = (&before[name], after.get(name)) else {
                return false;
            };
            // What is averaged and added up is of the size of one there, whatever is left of it.
            let least = if kind == Kind::Normal { 1.0 } else { 1e-9_f64 };
            let largest = before
                .data
                .iter()
                .fold(least, |largest, value| largest.max(value.abs()));
            // What is constant is what its rounding leaves, times the inverse of the smallest deviation.
            let bound = if kind == Kind::Normal { 1e-11 } else { 1e-6 };
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= bound * largest;
            before.dims == after.dims && before.data.iter().zip(&after.data).all(is_near)
        })
    })
}

/// What holds dimensions.
const SHAPES: [&str; 2] = ["first.back", "second.back"];

/// Fused chains that end with the statistics of a normalization, and with sums.
fn tiling(tiles: [u32; 3], axes: [Axis; 3], modes: [Mode; 3]) -> Tiling {
    let chains = [
        ("a", "first_moments"),
        ("first_normalizer", "second_moments"),
        ("second_normalizer", "pool"),
    ];
    Tiling {
        streamed: vec!["first".to_owned(), "second".to_owned()],
        fused_chains: (0..3)
            .map(|at| fused_chain(chains[at].0, chains[at].1, tiles[at], axes[at], modes[at]))
            .collect(),
        ..Tiling::default()
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let image = prop::collection::vec(4..9_u64, 1..=3);
    (1..=2_u64, 1..=3_u64, 1..=2_u64, image).prop_map(|(images, groups, each, image)| Shape {
        images,
        groups,
        each,
        image,
    })
}

const PATTERNS: [Pattern; 4] = [Pattern::Instance, Pattern::Reshaped, Pattern::Group, Pattern::Elements];
const TILES: RangeInclusive<u32> = 2..=4;

fn nets() -> impl Strategy<Value = (Shape, Graph)> {
    let epsilon = prop::option::of(1e-6_f32..1e-2);
    let rest = (prop::sample::select(&PATTERNS[..]), epsilon, any::<[bool; 2]>());
    (shapes(), rest).prop_map(|(mut shape, (pattern, epsilon, numbers))| {
        if pattern == Pattern::Instance {
            (shape.groups, shape.each) = (shape.groups * shape.each, 1);
        }
        if pattern == Pattern::Elements && (shape.each > 1 || shape.image.len() == 1) {
            (shape.groups, shape.each) = (1, shape.groups * shape.each);
        }
        let graph = net(&shape, pattern, epsilon, numbers, true);
        (shape, graph)
    })
}

fn tilings() -> impl Strategy<Value = Tiling> {
    let modes = prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute, Mode::Hybrid]);
    let tiles = [TILES, TILES, TILES];
    (tiles, [modes.clone(), modes.clone(), modes]).prop_map(|(tiles, modes)| tiling(tiles, [Axis::Rows; 3], modes))
}

/// Tokens of three axes and rows of four are axis 2 of images only where those have two axes or more.
fn along(shape: &Shape, mut tiling: Tiling) -> Tiling {
    let axis = if shape.image.len() == 1 {
        Axis::Columns
    } else {
        Axis::Rows
    };
    tiling.fused_chains.iter_mut().for_each(|chain| chain.axis = axis);
    tiling
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn sums_over_tiles_make_up_what_the_whole_computes((shape, graph) in nets(), tiling in tilings()) {
        let tiling = along(&shape, tiling);
        let tiled = apply(&graph, &tiling, Exactness::Close).unwrap();
        prop_assert_eq!(check_fission(&graph, &tiled), Ok(()), "{}\n{}", graph, tiled);
        prop_assert!(computes(&graph, &tiled), "{}\n{}", graph, tiled);
        let parts = tiled.ops.iter().filter(|op| op.op_type == "Moments").count();
        prop_assert!(parts >= 4, "{parts} statistics of tiles");
        prop_assert!(!tiled.ops.iter().any(|op| op.op_type == "Shape"), "nobody asks for dimensions of a whole tensor: {}", tiled);
        // Where the number of images is open, the same is right for another one.
        let opened = open(&graph, shape.images, &SHAPES);
        let tiled = apply(&opened, &tiling, Exactness::Close).unwrap();
        prop_assert_eq!(check_fission(&opened, &tiled), Ok(()), "{}\n{}", opened, tiled);
        let others = [&opened, &tiled].map(|graph| open(graph, shape.images + 2, &SHAPES));
        prop_assert!(computes(&others[0], &others[1]), "{}\n{}", opened, tiled);
        let whole = apply(&graph, &tiling, Exactness::WholeSums);
        let combined = |tiled: &Graph| tiled.ops.iter().any(|op| op.op_type == "CombineMoments");
        prop_assert!(!whole.is_ok_and(|tiled| combined(&tiled)), "no sum may be split here");
    }
}

fn example() -> Graph {
    let shape = Shape {
        images: 1,
        groups: 1,
        each: 4,
        image: vec![64, 64],
    };
    net(&shape, Pattern::Reshaped, None, [true, true], false)
}

#[test]
fn integers_that_are_reshaped_to_a_computed_shape_are_no_shape_themselves() {
    let mut builder = GraphBuilder::new("g");
    let ty = ValueType::tensor(ElementType::Int64, &[4, 6]);
    let x = builder.input("x", ty.clone()).unwrap();
    let mut op = |name: &str, op_type: &str, inputs: &[TensorId], ty: &ValueType| {
        let mut spec = OpSpec::new(name, op_type);
        spec.source = Some(u32::try_from(name.len()).unwrap());
        spec.inputs = inputs.iter().map(|&input| Some(input)).collect();
        builder.op(spec.defines(name, ty.clone())).unwrap().1[0].unwrap()
    };
    let data = op("a", "Neg", &[x], &ty);
    let shape = op("of", "Shape", &[x], &ValueType::tensor(ElementType::Int64, &[2]));
    let same = op("was", "Reshape", &[data, shape], &ty);
    let last = op("last", "Neg", &[same], &ty);
    builder.output(last);
    let graph = builder.finish();
    let stated = apply(&graph, &Tiling::default(), Exactness::Close).unwrap();
    assert_eq!(check_fission(&graph, &stated), Ok(()), "{stated}");
    assert!(computes(&graph, &stated), "{stated}");
    let names: Vec<&str> = stated.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["a", "was", "last"], "nobody asks for dimensions");
}

#[test]
fn a_search_splits_sums_only_where_it_may() {
    let graph = example();
    let device = Device::preset(Device::DEFAULT).unwrap();
    let lowest = |exactness| {
        let mut options = SearchOptions::new(&device);
        (options.exactness, options.evaluations) = (exactness, Some(3_000));
        let found = search(&graph, &options).unwrap();
        let tiled: Vec<Graph> = found
            .front
            .iter()
            .map(|one| apply(&graph, &one.tiling, exactness).unwrap())
            .collect();
        assert!(tiled.iter().all(|tiled| check_fission(&graph, tiled).is_ok()));
        assert_eq!(found.front[0].tiling, Tiling::default());
        found.front.last().cloned().unwrap()
    };
    let (whole, close) = (lowest(Exactness::WholeSums), lowest(Exactness::Close));
    assert!(whole.tiling.streamed.is_empty());
    assert!(!close.tiling.streamed.is_empty());
    assert!(close.peak * 10 < whole.peak * 8, "{close:?}\n{whole:?}");
    let bounds = [Exactness::WholeSums, Exactness::Close].map(|exactness| bound(&graph, exactness).unwrap().bytes);
    assert!(
        bounds[1] < bounds[0] && bounds[0] <= whole.peak && bounds[1] <= close.peak,
        "{bounds:?}"
    );
}

#[test]
fn what_is_no_normalization_is_named() {
    let tiling = |name: &str| Tiling {
        streamed: vec![name.to_owned()],
        ..Tiling::default()
    };
    let refused = |name: &str| apply(&example(), &tiling(name), Exactness::Close).unwrap_err();
    assert_eq!(refused("b"), FissionError::NotStreamed("b".to_owned()));
    assert_eq!(
        refused("first.norm"),
        FissionError::NotStreamed("first.norm".to_owned())
    );
    assert_eq!(refused("nobody"), FissionError::UnknownOp("nobody".to_owned()));
    assert!(apply(&example(), &tiling("first"), Exactness::Close).is_ok());
}

#[test]
fn an_op_runs_earlier_where_all_that_it_reads_is_there() {
    let tiling = |op: &str, before: &str| Tiling {
        moved: vec![Moved {
            op: op.to_owned(),
            before: before.to_owned(),
        }],
        ..Tiling::default()
    };
    let graph = example();
    let moved = apply(
        &graph,
        &tiling("pool", "mean"),
        Exactness::Exact {
            threads: 1,
            blocks: false,
        },
    )
    .unwrap();
    let names: Vec<&str> = moved.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names[names.len() - 4..], ["pool", "mean", "most", "sum"]);
    assert_eq!(check_fission(&graph, &moved), Ok(()));
    let refused = apply(&graph, &tiling("pool", "b"), Exactness::Close).unwrap_err();
    assert!(matches!(refused, FissionError::NotMoved { .. }));
}

#[test]
fn the_inner_dimension_of_a_product_is_a_sum_over_rows() {
    let mut net = Net {
        builder: GraphBuilder::new("g"),
        shape: Shape {
            images: 1,
            groups: 1,
            each: 1,
            image: vec![1],
        },
    };
    let f32s = |dims: &[u64]| ValueType::tensor(ElementType::Float32, dims);
    let h = net.builder.input("x", f32s(&[16, 3])).unwrap();
    let turned = net.builder.input("h", f32s(&[3, 16])).unwrap();
    let w = net.constant("w".to_owned(), &[3, 40]);
    let logits = net.op("logits", "MatMul", &[h, w], &[16, 40], &[]);
    let d = net.op("d", "Relu", &[logits], &[16, 40], &[]);
    let dw = net.op("dw", "MatMul", &[turned, d], &[3, 40], &[]);
    net.builder.output(dw);
    let graph = net.builder.finish();
    let tiling = Tiling {
        fused_chains: vec![fused_chain("logits", "dw", 4, Axis::Rows, Mode::LineBuffer)],
        ..Tiling::default()
    };
    let tiled = apply(&graph, &tiling, Exactness::Close).unwrap();
    assert_eq!(check_fission(&graph, &tiled), Ok(()));
    assert!(computes(&graph, &tiled));
    let largest = tiled
        .tensors
        .iter()
        .filter(|tensor| tensor.name.starts_with("logits"))
        .map(|tensor| tensor.ty.bytes().unwrap());
    assert_eq!(largest.max(), Some(Some(4 * 40 * 4)), "logits are never whole");
}

#[test]
fn convolutions_by_rows_and_normalizations_by_channels_take_turns() {
    let device = Device::preset(Device::DEFAULT).unwrap();
    let shape = Shape {
        images: 1,
        groups: 4,
        each: 2,
        image: vec![32, 32],
    };
    let dims = shape.dims();
    let mut net = Net {
        builder: GraphBuilder::new("g"),
        shape,
    };
    let small = ValueType::tensor(ElementType::Float32, &[1, 1, 32, 32]);
    let mut at = net.builder.input("x", small).unwrap();
    for (place, channels) in [1, 8, 8].into_iter().enumerate() {
        let weights = net.constant(format!("w{place}"), &[8, channels, 1, 1]);
        at = net.op(&format!("conv{place}"), "Conv", &[at, weights], &dims, &[]);
        at = net.norm(&format!("norm{place}"), Pattern::Reshaped, None, [true, true], at);
        at = net.op(&format!("relu{place}"), "Relu", &[at], &dims, &[]);
    }
    let weights = net.constant("last".to_owned(), &[1, 8, 1, 1]);
    let last = net.op("y", "Conv", &[at, weights], &[1, 1, 32, 32], &[]);
    net.builder.output(last);
    let graph = net.builder.finish();
    let found = |exactness: Exactness| {
        let mut options = SearchOptions::new(&device);
        (options.exactness, options.evaluations) = (exactness, Some(2_000));
        (options.axes, options.tiles) = (vec![Axis::Rows, Axis::Channels], vec![2, 4, 8]);
        search(&graph, &options).unwrap().in_pieces
    };
    let in_pieces = found(Exactness::WholeSums).unwrap();
    let chains = &in_pieces.tiling.fused_chains;
    let goes_along = |chain: &FusedChain| (chain.first.starts_with("norm"), chain.axis);
    let axes = |chain| matches!(goes_along(chain), (true, Axis::Channels) | (false, Axis::Rows));
    assert!(chains.len() == 10 && chains.iter().all(axes), "{chains:?}");
    let tiled = apply(&graph, &in_pieces.tiling, Exactness::WholeSums).unwrap();
    assert_eq!(check_fission(&graph, &tiled), Ok(()));
    // Without tiles a normalization needs two of the large tensors.
    let large = 4 * dims.iter().product::<u64>();
    assert!(need(&graph, &device) >= 2 * large);
    assert!(need(&tiled, &device) < 2 * large, "{}", need(&tiled, &device));
    assert_eq!(found(Exactness::Close), None);
}

/// The most bytes that an op needs by itself.
fn need(graph: &Graph, device: &Device) -> u64 {
    let options = ProblemOptions::default();
    let problem = problem(graph, &analytic(graph, device, no_bodies), &options).unwrap();
    problem.bottleneck(&Structure::of(&problem)).unwrap().bytes
}
