//! Estimates put together from stretches are those of graphs that are written whole.

use std::rc::Rc;

use proptest::prelude::*;
use remat_cost::{Device, no_bodies};
use remat_ir::{Attribute, ElementType, Graph, GraphBuilder, OpId, OpSpec, Placement, ResultSpec, TensorId, ValueType};

use super::basis::Basis;
use super::costs::Costs;
use super::courses::Courses;
use super::stretches::Means;
use crate::best::bests;
use crate::course::Span;
use crate::forms::Forms;
use crate::{Axis, Exactness, Mode, SearchOptions, Tiling, bound, bound_once, search};

const DIMS: [u64; 4] = [1, 16, 12, 16];

/// A graph being built, of images of one shape.
struct Net {
    builder: GraphBuilder,
    images: Vec<TensorId>,
    names: usize,
}

impl Net {
    fn constant(&mut self, dims: &[u64]) -> TensorId {
        self.names += 1;
        let ty = ValueType::tensor(ElementType::Float32, dims);
        self.builder.constant(format!("c{}", self.names), ty).unwrap()
    }

    fn op(&mut self, op_type: &str, inputs: &[TensorId], attributes: &[(&str, Attribute)], dims: &[u64]) -> TensorId {
        self.names += 1;
        let mut spec = OpSpec::new(format!("op{}", self.names), op_type);
        spec.inputs = inputs.iter().copied().map(Some).collect();
        let attributes = attributes.iter();
        spec.attributes = attributes
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        spec.results = vec![Some(ResultSpec {
            name: format!("t{}", self.names),
            ty: ValueType::tensor(ElementType::Float32, dims),
            placement: match op_type {
                "Reshape" => Placement::ViewOf(inputs[0]),
                _ => Placement::New,
            },
        })];
        self.builder.op(spec).unwrap().1[0].unwrap()
    }

    /// Adds a layer of one of some kinds, which may read an earlier image, too.
    fn layer(&mut self, kind: usize, earlier: usize) {
        let at = *self.images.last().unwrap();
        let other = self.images[self.images.len() - 1 - earlier % self.images.len()];
        let pads = |pad: i64| ("pads", Attribute::Ints(vec![pad; 4]));
        let numbers = [DIMS[1]];
        let next = match kind {
            0 | 1 => {
                let weights = self.constant(&[16, 16, 3, 3]);
                let mut inputs = vec![at, weights];
                inputs.extend((kind == 1).then(|| self.constant(&numbers)));
                self.op("Conv", &inputs, &[pads(1)], &DIMS)
            }
            2 => self.op("Relu", &[at], &[], &DIMS),
            3 => self.op("Add", &[at, other], &[], &DIMS),
            4 => {
                let kernel = ("kernel_shape", Attribute::Ints(vec![3, 3]));
                self.op("MaxPool", &[at], &[pads(1), kernel], &DIMS)
            }
            5 => {
                let both = self.op("Concat", &[at, other], &[("axis", Attribute::Int(1))], &[1, 32, 12, 16]);
                let weights = self.constant(&[16, 32, 1, 1]);
                self.op("Conv", &[both, weights], &[], &DIMS)
            }
            6 => {
                let (scale, bias) = (self.constant(&numbers), self.constant(&numbers));
                self.op("InstanceNormalization", &[at, scale, bias], &[], &DIMS)
            }
            7 => {
                let mean = self.op("GlobalAveragePool", &[at], &[], &[1, 16, 1, 1]);
                self.op("Mul", &[other, mean], &[], &DIMS)
            }
            8 => {
                let lists = self.shapes();
                let flat = self.op("Reshape", &[at, lists[0]], &[], &[1, 16, 192]);
                let soft = self.op("Sigmoid", &[flat], &[], &[1, 16, 192]);
                self.op("Reshape", &[soft, lists[1]], &[], &DIMS)
            }
            9 => {
                let (axis, at_axis) = [(1, 1), (2, 2), (3, 3)][earlier % 3];
                let mut dims = DIMS;
                dims[at_axis] = 1;
                let place = self.op("ArgMax", &[at], &[("axis", Attribute::Int(axis))], &dims);
                self.builder.output(place);
                return;
            }
            10 => self.op("Softmax", &[at], &[("axis", Attribute::Int(-1))], &DIMS),
            11 => self.of_half_size(at),
            _ => self.attention(at),
        };
        self.images.push(next);
    }

    /// The shape of channels in a row each, and that of images.
    fn shapes(&mut self) -> [TensorId; 2] {
        [vec![1, 16, 192], vec![1, 16, 12, 16]].map(|list: Vec<i64>| {
            self.names += 1;
            let ty = ValueType::tensor(ElementType::Int64, &[list.len() as u64]);
            self.builder.integers(format!("c{}", self.names), ty, list).unwrap()
        })
    }

    /// A convolution of an image of half the size.
    fn of_half_size(&mut self, at: TensorId) -> TensorId {
        let halves = [1, 16, 6, 8];
        let pair = |name: &'static str, number: i64| (name, Attribute::Ints(vec![number; 2]));
        let half = self.op(
            "MaxPool",
            &[at],
            &[pair("kernel_shape", 2), pair("strides", 2)],
            &halves,
        );
        let weights = self.constant(&[16, 16, 1, 1]);
        let half = self.op("Conv", &[half, weights], &[], &halves);
        let weights = self.constant(&[16, 16, 2, 2]);
        self.op("ConvTranspose", &[half, weights], &[pair("strides", 2)], &DIMS)
    }

    /// Attention between channels.
    fn attention(&mut self, at: TensorId) -> TensorId {
        let lists = self.shapes();
        let flat = self.op("Reshape", &[at, lists[0]], &[], &[1, 16, 192]);
        let turned = self.op(
            "Transpose",
            &[flat],
            &[("perm", Attribute::Ints(vec![0, 2, 1]))],
            &[1, 192, 16],
        );
        let scores = self.op("MatMul", &[flat, turned], &[], &[1, 16, 16]);
        let soft = self.op("Softmax", &[scores], &[("axis", Attribute::Int(-1))], &[1, 16, 16]);
        let mixed = self.op("MatMul", &[soft, flat], &[], &[1, 16, 192]);
        self.op("Reshape", &[mixed, lists[1]], &[], &DIMS)
    }
}

fn graph(layers: &[(usize, usize)], outputs: &[usize]) -> Graph {
    let mut builder = GraphBuilder::new("g".to_owned());
    let input = builder.input("x".to_owned(), ValueType::tensor(ElementType::Float32, &DIMS));
    let mut net = Net {
        builder,
        images: vec![input.unwrap()],
        names: 0,
    };
    for &(kind, earlier) in layers {
        net.layer(kind, earlier);
    }
    let last = net.images.len() - 1;
    if last == 0 {
        return net.builder.finish();
    }
    for place in outputs.iter().map(|place| 1 + place % last).chain([last]) {
        let output = net.images[place];
        if !net.builder.graph().outputs.contains(&output) {
            net.builder.output(output);
        }
    }
    net.builder.finish()
}

fn span() -> impl Strategy<Value = (usize, usize, u32, Axis, Mode)> {
    (
        0usize..6,
        0usize..6,
        prop::sample::select(vec![2u32, 3, 4]),
        prop::sample::select(vec![Axis::Rows, Axis::Columns, Axis::Channels]),
        prop::sample::select(vec![Mode::LineBuffer, Mode::Recompute, Mode::Hybrid]),
    )
}

/// The fused chains that are possible of those asked for: each begins a few ops behind the last one.
fn spans(courses: &mut Courses, asked: &[(usize, usize, u32, Axis, Mode)]) -> Vec<Span> {
    let ops = courses.basis.graph.ops.len();
    let (mut found, mut next) = (Vec::new(), 0);
    for &(gap, length, tiles, axis, mode) in asked {
        let (first, last) = (next + gap, next + gap + length);
        let span = Span::new((OpId::new(first), OpId::new(last)), tiles, axis, mode);
        if last < ops && courses.get(span).is_some() {
            found.push(span);
            next = last + 1;
        }
    }
    found
}

proptest! {
    #![proptest_config(remat_testing::cases(512))]

    #[test]
    fn an_estimate_from_stretches_is_that_of_the_graph_written_whole(
        layers in prop::collection::vec((0usize..13, 0usize..5), 3..16),
        outputs in prop::collection::vec(0usize..16, 0..3),
        sets in prop::collection::vec(prop::collection::vec(span(), 0..5), 1..6),
        exactness in prop::sample::select(vec![
            Exactness::Exact { threads: 1, blocks: false },
            Exactness::Exact { threads: 1, blocks: true },
            Exactness::WholeSums,
            Exactness::Close,
        ]),
        kernels in any::<bool>(),
        op_bytes in prop::sample::select(vec![0, 6_000, 1 << 20]),
    ) {
        let mut device = Device::preset(Device::DEFAULT).unwrap();
        device.cpu_kernels = kernels;
        let graph = graph(&layers, &outputs);
        let forms = exactness.is_exact().then(|| Forms::of(&graph)).flatten();
        let mut costs = Costs::new(&device, no_bodies, op_bytes);
        let mut means = Means { costs: &mut costs, forms: forms.as_ref() };
        let streamed = bests(&graph).into_iter().map(|best| graph.ops[best.op].name.clone());
        let changes = Tiling { streamed: streamed.collect(), ..Tiling::default() };
        let basis = Rc::new(Basis::new(&graph, changes).unwrap());
        let mut courses = Courses::of(&basis, exactness).unwrap();
        for asked in &sets {
            let spans = spans(&mut courses, asked);
            let chains: Vec<_> = spans.iter().filter_map(|&span| courses.get(span)).collect();
            let whole = courses.score_of_written(&chains, &mut means);
            prop_assert_eq!(courses.score(&chains, &mut means), whole, "{:?}", spans);
        }
    }

    #[test]
    fn no_tiling_that_computes_nothing_twice_undercuts_the_bound_for_these(
        layers in prop::collection::vec((0usize..13, 0usize..5), 3..16),
        outputs in prop::collection::vec(0usize..16, 0..3),
        exactness in prop::sample::select(vec![
            Exactness::Exact { threads: 1, blocks: false },
            Exactness::WholeSums,
            Exactness::Close,
        ]),
    ) {
        let device = Device::preset(Device::DEFAULT).unwrap();
        let graph = graph(&layers, &outputs);
        let least = bound_once(&graph, exactness).map_or(0, |bound| bound.bytes);
        prop_assert!(bound(&graph, exactness).is_some());
        let mut options = SearchOptions::new(&device);
        (options.exactness, options.evaluations, options.again) = (exactness, Some(400), false);
        options.modes = vec![Mode::LineBuffer];
        for candidate in search(&graph, &options).unwrap().front {
            prop_assert!(candidate.peak >= least, "{} {least} {:?}", candidate.peak, candidate.tiling);
        }
    }
}
