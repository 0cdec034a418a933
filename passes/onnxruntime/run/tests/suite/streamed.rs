//! Normalizations in two passes, as ONNX's own operators: no less accurate than the kernels of the runtime are on the same input.

use std::fmt::Write as _;
use std::ops::Range;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use remat::ir::Graph;
use remat::onnx::OnnxModel;
use remat::onnx::proto::{AttributeProto, Message, ModelProto, TensorProto, attribute_proto::AttributeType};
use remat_onnxruntime_run::{
    CloseFault, CloseOptions, Closeness, InputKind, OptimizationLevel, SessionSettings, compare_close, run_seeded,
};
use remat_testing::onnx::{FLOAT, NodeExt, graph, integers, model, node, opset, tensor, tensor_type, value};

use crate::common::runtime;
use crate::measure::{child_program, runner};

/// What the pixels of an image are like.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Around zero.
    Normal,
    /// Far from zero, compared with how far they are from each other.
    LargeOffset,
    /// All pixels of a channel are one number.
    Constant,
    /// Below the least normal number.
    Denormal,
    /// Around zero, with hardly anything added to the variance.
    TinyEpsilon,
}

const KINDS: [Kind; 5] = [
    Kind::Normal,
    Kind::LargeOffset,
    Kind::Constant,
    Kind::Denormal,
    Kind::TinyEpsilon,
];

/// How often each kind is tried.
const CASES: u64 = 24;

/// What the nodes around a normalization are.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pattern {
    /// `InstanceNormalization` alone.
    Instance,
    /// The same between two `Reshape`, by groups.
    Grouped,
    /// And a factor for each channel.
    Scaled,
    /// And a summand.
    ScaledAndMoved,
    /// `GroupNormalization`.
    Group,
}

/// A normalization of random sizes and numbers.
#[derive(Debug)]
struct Norm {
    pattern: Pattern,
    /// Images, channels, pixels.
    dims: Vec<u64>,
    groups: u64,
    epsilon: f32,
    x: Vec<f32>,
    scale: Vec<f32>,
    bias: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
    /// The axis that is cut, and where tiles of it lie.
    axis: usize,
    tiles: Vec<Range<u64>>,
}

fn below(random: &mut SplitMix64, count: u64) -> u64 {
    random.next_u64() % count
}

/// About normally distributed.
fn normal(random: &mut SplitMix64) -> f64 {
    let uniform = |random: &mut SplitMix64| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

impl Norm {
    fn random(kind: Kind, seed: u64) -> Self {
        let random = &mut SplitMix64::seed_from_u64(seed);
        let patterns = [
            Pattern::Instance,
            Pattern::Grouped,
            Pattern::Scaled,
            Pattern::ScaledAndMoved,
            Pattern::Group,
        ];
        let pattern = patterns[below(random, 5) as usize];
        let groups = 1 + below(random, 4);
        let each = if pattern == Pattern::Instance {
            1
        } else {
            1 + below(random, 4)
        };
        let channels = groups * each;
        let rank = 1 + below(random, 3);
        let longest = [600, 40, 12][rank as usize - 1];
        let mut dims = vec![1 + below(random, 2), channels];
        dims.extend((0..rank).map(|_| 4 + below(random, longest)));
        let axis = 2 + below(random, rank) as usize;
        let mut cuts: Vec<u64> = (0..below(random, 6))
            .map(|_| 1 + below(random, dims[axis] - 1))
            .collect();
        cuts.extend([0, dims[axis]]);
        cuts.sort_unstable();
        cuts.dedup();
        let pixels: u64 = dims[2..].iter().product();
        let mut x = Vec::new();
        for _ in 0..dims[0] * channels {
            let offset = match kind {
                Kind::LargeOffset => 1e4 + 10.0 * normal(random),
                Kind::Constant => 3.0 * normal(random),
                Kind::Normal | Kind::TinyEpsilon => normal(random),
                Kind::Denormal => 0.0,
            };
            let spread = match kind {
                Kind::Constant => 0.0,
                Kind::Denormal => 1e-40,
                _ => 1.0,
            };
            x.extend((0..pixels).map(|_| (offset + spread * normal(random)) as f32));
        }
        let numbers = |random: &mut SplitMix64, count: u64| (0..count).map(|_| normal(random) as f32).collect();
        let own = if pattern == Pattern::Group { channels } else { groups };
        Self {
            pattern,
            groups,
            epsilon: if kind == Kind::TinyEpsilon { 1e-12 } else { 1e-5 },
            x,
            scale: numbers(random, own),
            bias: numbers(random, own),
            gamma: numbers(random, channels),
            beta: numbers(random, channels),
            axis,
            tiles: cuts.windows(2).map(|pair| pair[0]..pair[1]).collect(),
            dims,
        }
    }

    /// With the runtime's own kernels. The image is a constant, so that it is as it is.
    fn model(&self) -> ModelProto {
        let mut model = self.model_of_input();
        let main = model.graph.mut_or_insert_default();
        main.input.clear();
        main.initializer.push(TensorProto {
            float_data: self.x.clone(),
            ..tensor(
                "x",
                FLOAT,
                &self.dims.iter().map(|&dim| dim.cast_signed()).collect::<Vec<i64>>(),
            )
        });
        model
    }

    /// The same, of an image that is given.
    fn model_of_input(&self) -> ModelProto {
        let signed = |dims: &[u64]| dims.iter().map(|&dim| dim.cast_signed()).collect::<Vec<i64>>();
        let channels = self.dims[1].cast_signed();
        let has_groups = !matches!(self.pattern, Pattern::Instance | Pattern::Group);
        let has_factor = matches!(self.pattern, Pattern::Scaled | Pattern::ScaledAndMoved);
        let has_summand = self.pattern == Pattern::ScaledAndMoved;
        let normalized = if has_groups { "n" } else { "y" };
        let from = if has_groups { "g" } else { "x" };
        let (op_type, inputs) = match self.pattern {
            Pattern::Group => ("GroupNormalization", ["x", "scale", "bias"]),
            _ => ("InstanceNormalization", [from, "scale", "bias"]),
        };
        let mut norm = node(op_type, &inputs, &[normalized]).named("norm");
        norm.attribute.push(AttributeProto {
            name: "epsilon".to_owned(),
            f: self.epsilon,
            type_: AttributeType::FLOAT.into(),
            ..AttributeProto::default()
        });
        if self.pattern == Pattern::Group {
            norm = norm.int("num_groups", self.groups.cast_signed());
        }
        let mut nodes = vec![norm];
        if has_groups {
            nodes.insert(0, node("Reshape", &["x", "grouped"], &["g"]).named("group"));
            let last = if has_factor { "r" } else { "y" };
            nodes.push(node("Reshape", &["n", "image"], &[last]).named("ungroup"));
        }
        if has_factor {
            let last = if has_summand { "m" } else { "y" };
            nodes.push(node("Mul", &["r", "gamma"], &[last]).named("mul"));
        }
        if has_summand {
            nodes.push(node("Add", &["m", "beta"], &["y"]).named("add"));
        }
        let floats = |name: &str, dims: &[i64], elements: &[f32]| TensorProto {
            float_data: elements.to_vec(),
            ..tensor(name, FLOAT, dims)
        };
        let aligned = [&[channels][..], &vec![1; self.dims.len() - 2]].concat();
        let own = (self.scale.len() as u64).cast_signed();
        let dims = self.dims.iter().map(u64::to_string).collect::<Vec<String>>().join(" ");
        let mut main = graph(&[("x", tensor_type(FLOAT, &dims))], nodes, &[]);
        main.output = vec![value("y", Some(tensor_type(FLOAT, &dims)))];
        main.initializer = vec![
            floats("scale", &[own], &self.scale),
            floats("bias", &[own], &self.bias),
            integers("grouped", &[0, self.groups.cast_signed(), -1]),
            integers("image", &signed(&self.dims)),
            floats("gamma", &aligned, &self.gamma),
            floats("beta", &aligned, &self.beta),
        ];
        let mut model = model(main);
        model.opset_import = vec![opset("", 21)];
        model.ir_version = 10;
        model
    }

    /// The same in two passes over the tiles.
    fn tiled(&self) -> Result<String, std::fmt::Error> {
        let (axis, dims) = (self.axis, &self.dims);
        let shape = |rows: u64| {
            let mut dims = dims.clone();
            dims[axis] = rows;
            format!("f32{dims:?}")
        };
        let ranges = |rows: &Range<u64>| {
            let all = dims.iter().enumerate();
            let all = all.map(|(at, &dim)| {
                if at == axis {
                    format!("{}:{}", rows.start, rows.end)
                } else {
                    format!("0:{dim}")
                }
            });
            all.collect::<Vec<String>>().join(", ")
        };
        let moments = format!("f32[{}, {}, 1, 2]", dims[0], dims[1]);
        let (all, pixels) = (0..dims[axis], dims[2..].iter().product::<u64>());
        let by_channel = format!("f32{:?}", [&[dims[1]][..], &vec![1; dims.len() - 2]].concat());
        let own = self.scale.len();
        let mut text = format!(
            "graph \"g\" {{\n  const %x : {}\n  const %scale : f32[{own}]\n  const %bias : f32[{own}]\n",
            shape(dims[axis])
        );
        write!(
            text,
            "  const %gamma : {by_channel}\n  const %beta : {by_channel}\n  const %axis : i64[1] values [{axis}]\n"
        )?;
        let mut parts = Vec::new();
        for (tile, rows) in self.tiles.iter().enumerate() {
            let (part, length) = (ranges(rows), rows.end - rows.start);
            write!(
                text,
                "  const %from.{tile} : i64[1] values [{}]\n  const %to.{tile} : i64[1] values [{}]\n",
                rows.start, rows.end
            )?;
            writeln!(
                text,
                "  %x.{tile} : {} part of x[{part}] = compute @x.{tile} Slice(%x, %from.{tile}, %to.{tile}, %axis)",
                shape(length)
            )?;
            writeln!(
                text,
                "  %m.{tile} : {moments} part over x[{part}] = compute @m.{tile} com.remat.streamed::Moments(%x.{tile})"
            )?;
            parts.push(format!("%m.{tile}"));
        }
        let counts: Vec<u64> = self
            .tiles
            .iter()
            .map(|rows| pixels / dims[axis] * (rows.end - rows.start))
            .collect();
        let operands = match self.pattern {
            Pattern::Scaled => "%scale, %bias, %gamma",
            Pattern::ScaledAndMoved => "%scale, %bias, %gamma, %beta",
            _ => "%scale, %bias",
        };
        let whole = ranges(&all);
        writeln!(
            text,
            "  %all : {moments} part over x[{whole}] = compute @all com.remat.streamed::CombineMoments({}) {{counts = {counts:?}}}",
            parts.join(", ")
        )?;
        writeln!(
            text,
            "  %f : {moments} part over x[{whole}] = compute @f com.remat.streamed::Normalizer(%all, {operands}) {{count = {pixels}, epsilon = {:?}, groups = {}}}",
            self.epsilon, self.groups
        )?;
        let mut pieces = Vec::new();
        for (tile, rows) in self.tiles.iter().enumerate() {
            writeln!(
                text,
                "  %y.{tile} : {} part of y[{}] = compute @y.{tile} com.remat.streamed::Normalize(%x.{tile}, %f)",
                shape(rows.end - rows.start),
                ranges(rows)
            )?;
            pieces.push(format!("%y.{tile}"));
        }
        writeln!(
            text,
            "  %y : {} part of y[{whole}] = compute @y Concat({}) {{axis = {axis}}}\n  output %y\n}}",
            shape(dims[axis]),
            pieces.join(", ")
        )?;
        Ok(text)
    }

    /// In double precision: each element, and the sum of the magnitudes that it is the sum of.
    fn reference(&self) -> Vec<(f64, f64)> {
        let (channels, pixels) = (self.dims[1] as usize, self.dims[2..].iter().product::<u64>() as usize);
        let (groups, each) = (self.groups as usize, channels / self.groups as usize);
        let wide: Vec<f64> = self.x.iter().map(|&x| f64::from(x)).collect();
        let mut found = Vec::new();
        for group in wide.chunks(each * pixels).enumerate() {
            let (number, elements) = (group.0 % groups, group.1);
            let count = elements.len() as f64;
            let mean = elements.iter().sum::<f64>() / count;
            let variance = elements.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            let deviation = (variance + f64::from(self.epsilon)).sqrt();
            for (at, &x) in elements.iter().enumerate() {
                let channel = number * each + at / pixels;
                let own = if self.pattern == Pattern::Group {
                    channel
                } else {
                    number
                };
                let of = |vector: &[f32], is_there: bool, other: f64| {
                    if is_there { f64::from(vector[channel]) } else { other }
                };
                let has_factor = matches!(self.pattern, Pattern::Scaled | Pattern::ScaledAndMoved);
                let gamma = of(&self.gamma, has_factor, 1.0);
                let beta = of(&self.beta, self.pattern == Pattern::ScaledAndMoved, 0.0);
                let factor = f64::from(self.scale[own]) / deviation * gamma;
                let base = f64::from(self.bias[own]) * gamma;
                found.push((
                    (x - mean) * factor + base + beta,
                    (x * factor).abs() + (mean * factor).abs() + base.abs() + beta.abs(),
                ));
            }
        }
        found
    }

    /// What a model gives in the runtime, which folds no constants.
    fn run(model: &ModelProto) -> Vec<f32> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model.write_to_bytes().unwrap()).unwrap();
        let settings = SessionSettings::exact(OptimizationLevel::Off);
        let outputs = run_seeded(runtime(), &path, &settings, 0).unwrap_or_else(|error| panic!("{error}"));
        outputs[0]
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect()
    }
}

/// The largest error of each model is compared, since a single element may be right by chance, and may be as large as a few roundings of the largest
/// term that an element is the sum of. Far from zero `GroupNormalization` gives NaN in the runtime: it subtracts squares.
pub(crate) fn two_passes_are_as_accurate_as_the_kernels_of_the_runtime() {
    const ULPS: f64 = 4.0;
    for (number, kind) in (0..).zip(KINDS) {
        for case in 0..CASES {
            let norm = Norm::random(kind, 1_000 * number + case);
            let model = norm.model();
            let onnx = OnnxModel::from_bytes(&model.write_to_bytes().unwrap(), None, &Default::default());
            let onnx = onnx.unwrap_or_else(|error| panic!("{error}"));
            let text = norm.tiled().unwrap();
            let tiled = Graph::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let ours = onnx
                .export_proto(&tiled)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let (theirs, ours) = (Norm::run(&model), Norm::run(&ours));
            let expected = norm.reference();
            assert_eq!((theirs.len(), ours.len()), (expected.len(), expected.len()));
            let error = |found: &[f32]| {
                let pairs = found.iter().zip(&expected);
                let errors = pairs.map(|(&found, &(right, _))| (f64::from(found) - right).abs());
                errors.fold(
                    0.0,
                    |most: f64, error| if error.is_nan() { f64::INFINITY } else { most.max(error) },
                )
            };
            let unit = f64::from(f32::EPSILON) / 2.0;
            let magnitude = expected
                .iter()
                .fold(0.0, |most: f64, &(_, magnitude)| most.max(magnitude));
            let (own, other) = (error(&ours), error(&theirs));
            assert!(
                own.is_finite() && own <= 2.0 * other + ULPS * unit * magnitude,
                "{kind:?} {:?} of {:?} in {} groups, tiles {:?}: off by {own}, the runtime by {other}",
                norm.pattern,
                norm.dims,
                norm.groups,
                norm.tiles
            );
        }
    }
}

/// A normalization of images with three channels in tiles of rows, and a file of it where `change` is done to the graph.
fn compared(change: impl Fn(String) -> String) -> Closeness {
    let norm = Norm {
        dims: vec![1, 3, 12, 10],
        groups: 1,
        epsilon: 1e-5,
        pattern: Pattern::ScaledAndMoved,
        x: Vec::new(),
        scale: vec![0.7],
        bias: vec![0.1],
        gamma: vec![1.5, -0.5, 1.0],
        beta: vec![0.2, 0.0, -0.3],
        axis: 2,
        tiles: vec![0..5, 5..12],
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [base, other] = ["base", "other"].map(|name| folder.path().join(name).with_extension("onnx"));
    let model = norm.model_of_input();
    std::fs::write(&base, model.write_to_bytes().unwrap()).unwrap();
    let onnx = OnnxModel::open(&base, &Default::default()).unwrap_or_else(|error| panic!("{error}"));
    let text = change(norm.tiled().unwrap().replace("const %x :", "input %x :"));
    let tiled = Graph::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let proto = onnx.export_proto(&tiled).unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(&other, proto.write_to_bytes().unwrap()).unwrap();
    let child = child_program();
    let settings = SessionSettings::exact(OptimizationLevel::All);
    let options = CloseOptions {
        seeds: vec![0, 1],
        limit: 1e-3,
        time: None,
    };
    compare_close(
        &runner(&child, runtime().library()),
        (&base, &other),
        &settings,
        &options,
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn what_rounds_otherwise_is_close_and_what_computes_otherwise_is_apart() {
    let close = compared(|text| text);
    assert!(close.inputs.iter().map(|inputs| inputs.kind).eq(InputKind::ALL));
    assert_eq!(close.fault(), None, "{close:?}");
    assert!((1e-9..1e-6).contains(&close.relative_difference()), "{close:?}");
    assert!(!close.is_identical() && close.psnr_db() > Some(100.0), "{close:?}");
    let wrong = |from: &str, to: &str| {
        let close = compared(|text| {
            assert!(text.contains(from), "{text}");
            text.replace(from, to)
        });
        close.fault().map(|(output, fault)| (output.name.clone(), fault))
    };
    let apart = Some(("y".to_owned(), CloseFault::Apart));
    assert_eq!(wrong("counts = [50, 70]", "counts = [70, 50]"), apart);
    assert_eq!(wrong("count = 120", "count = 118"), apart);
    assert_eq!(wrong("epsilon = 1e-5", "epsilon = 1e-2"), apart);
}
