//! Values that are known before a model runs are those that ONNX Runtime computes, to the bit.
#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail as tests do")]

use std::process::ExitCode;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use remat_onnx::proto::{
    AttributeProto, GraphProto, Message, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_proto::AttributeType,
};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_run::{OptimizationLevel, Runtime, SessionSettings, run_seeded};
use remat_testing::{Need, run, runtime_library, trial};

const FLOAT: i32 = 1;
const INT32: i32 = 6;
const INT64: i32 = 7;
const BOOL: i32 = 9;
const FLOAT16: i32 = 10;
const DOUBLE: i32 = 11;

fn main() -> ExitCode {
    run([trial!(
        known_values_are_those_that_the_runtime_computes,
        Need::OnnxRuntime
    )])
}

/// A node on constants.
#[derive(Clone, Debug)]
struct Case {
    op: &'static str,
    operands: Vec<TensorProto>,
    attributes: Vec<AttributeProto>,
    outputs: usize,
}

fn tensor(code: i32, dims: &[usize], bytes: Vec<u8>) -> TensorProto {
    let mut tensor = TensorProto::new();
    tensor.data_type = code;
    tensor.dims = dims.iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
    tensor.raw_data = bytes;
    tensor
}

fn integers(dims: &[usize], values: &[i64]) -> TensorProto {
    tensor(
        INT64,
        dims,
        values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    )
}

/// Elements of a type from small whole or half numbers.
fn numbers(code: i32, dims: &[usize], halves: &[i64]) -> TensorProto {
    let bytes = halves.iter().flat_map(|&halves| match code {
        FLOAT => (halves as f32 / 2.0).to_le_bytes().to_vec(),
        DOUBLE => (halves as f64 / 2.0).to_le_bytes().to_vec(),
        INT32 => (halves as i32).to_le_bytes().to_vec(),
        BOOL => vec![u8::from(halves % 2 != 0)],
        _ => halves.to_le_bytes().to_vec(),
    });
    tensor(code, dims, bytes.collect())
}

fn int(name: &str, value: i64) -> AttributeProto {
    let mut attribute = AttributeProto::new();
    attribute.name = name.to_owned();
    attribute.type_ = AttributeType::INT.into();
    attribute.i = value;
    attribute
}

fn ints(name: &str, values: Vec<i64>) -> AttributeProto {
    let mut attribute = AttributeProto::new();
    attribute.name = name.to_owned();
    attribute.type_ = AttributeType::INTS.into();
    attribute.ints = values;
    attribute
}

fn case(op: &'static str, operands: Vec<TensorProto>, attributes: Vec<AttributeProto>) -> Case {
    Case {
        op,
        operands,
        attributes,
        outputs: 1,
    }
}

fn shapes(least_rank: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..4, least_rank..4)
}

/// A tensor of one of some types and of a shape.
fn of_shape(codes: &'static [i32], dims: Vec<usize>) -> impl Strategy<Value = TensorProto> {
    let count = dims.iter().product::<usize>();
    let halves = prop::collection::vec(-12_i64..12, count);
    (prop::sample::select(codes), halves).prop_map(move |(code, halves)| numbers(code, &dims, &halves))
}

fn any_tensor(least_rank: usize) -> impl Strategy<Value = (TensorProto, Vec<usize>)> {
    const CODES: &[i32] = &[INT64, FLOAT, INT32];
    shapes(least_rank).prop_flat_map(|dims| (of_shape(CODES, dims.clone()), Just(dims)))
}

fn axis_of(dims: &[usize]) -> impl Strategy<Value = i64> + use<> {
    let rank = i64::try_from(dims.len()).unwrap();
    -rank..rank
}

fn elementwise() -> impl Strategy<Value = Case> {
    const NUMBERS: &[i32] = &[INT64, FLOAT, INT32, DOUBLE];
    const PAIRS: &[&str] = &[
        "Add",
        "Sub",
        "Mul",
        "Max",
        "Min",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "GreaterOrEqual",
        "Sum",
    ];
    let pairs = (
        prop::sample::select(PAIRS),
        prop::sample::select(NUMBERS),
        shapes(0),
        any::<bool>(),
    );
    let pairs = pairs.prop_flat_map(|(op, code, dims, scalar)| {
        let code = if op == "Sum" && code != DOUBLE { FLOAT } else { code };
        let count = dims.iter().product::<usize>();
        let other = if scalar { Vec::new() } else { dims.clone() };
        let halves = prop::collection::vec(-12_i64..12, 2 * count);
        halves.prop_map(move |halves| {
            let second = numbers(code, &other, &halves[count..count + other.iter().product::<usize>()]);
            case(op, vec![numbers(code, &dims, &halves[..count]), second], Vec::new())
        })
    });
    let divisions = (
        prop::sample::select(&["Div", "Mod"][..]),
        any::<bool>(),
        -40_i64..40,
        1_i64..9,
        any::<bool>(),
    );
    let divisions = divisions.prop_map(|(op, float, a, b, negative)| {
        let b = if negative { -b } else { b };
        if float {
            let fmod = if op == "Mod" { vec![int("fmod", 1)] } else { Vec::new() };
            return case(op, vec![numbers(FLOAT, &[1], &[a]), numbers(FLOAT, &[], &[b])], fmod);
        }
        case(op, vec![integers(&[1], &[a]), integers(&[], &[b])], Vec::new())
    });
    const FLOATS: &[&str] = &[
        "Neg",
        "Abs",
        "Floor",
        "Ceil",
        "Round",
        "Reciprocal",
        "Relu",
        "Sign",
        "IsNaN",
    ];
    let singles = (prop::sample::select(FLOATS), any_tensor(0)).prop_map(|(op, (tensor, dims))| {
        let halves: Vec<i64> = (0..dims.iter().product::<usize>())
            .map(|i| i64::try_from(i).unwrap() * 3 - 4)
            .collect();
        let only_floats = !["Neg", "Abs", "Sign"].contains(&op);
        let tensor = if only_floats {
            numbers(FLOAT, &dims, &halves)
        } else {
            tensor
        };
        case(op, vec![tensor], Vec::new())
    });
    let powers = (-6_i64..6, 0_i64..4, any::<bool>()).prop_map(|(base, exponent, float)| {
        let base = if float {
            numbers(FLOAT, &[1], &[2 * base])
        } else {
            integers(&[1], &[base])
        };
        case("Pow", vec![base, integers(&[], &[exponent])], Vec::new())
    });
    let roots = (0_i64..100).prop_map(|value| case("Sqrt", vec![numbers(FLOAT, &[], &[value])], Vec::new()));
    let squares = (0_i64..2000).prop_map(|root| {
        let (square, half) = (numbers(FLOAT, &[], &[2 * root * root]), numbers(FLOAT, &[], &[1]));
        case("Pow", vec![square, half], Vec::new())
    });
    let truth = (prop::sample::select(&["And", "Or", "Xor"][..]), shapes(0)).prop_flat_map(|(op, dims)| {
        let pair = (of_shape(&[BOOL], dims.clone()), of_shape(&[BOOL], dims));
        pair.prop_map(move |(a, b)| case(op, vec![a, b], Vec::new()))
    });
    let choice = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        of_shape(&[BOOL], dims)
            .prop_map(move |condition| case("Where", vec![condition, tensor.clone(), tensor.clone()], Vec::new()))
    });
    let casts = (
        any_tensor(0),
        prop::sample::select(&[FLOAT, INT32, INT64, BOOL, FLOAT16, DOUBLE][..]),
    );
    let casts = casts.prop_map(|((tensor, _), to)| case("Cast", vec![tensor], vec![int("to", i64::from(to))]));
    prop_oneof![pairs, divisions, singles, powers, roots, squares, truth, choice, casts]
}

fn layouts() -> impl Strategy<Value = Case> {
    let flat = any_tensor(0).prop_map(|(tensor, _)| case("Reshape", vec![tensor, integers(&[1], &[-1])], Vec::new()));
    let partly = any_tensor(2).prop_map(|(tensor, dims)| {
        let last = i64::try_from(dims[dims.len() - 1]).unwrap();
        case("Reshape", vec![tensor, integers(&[3], &[0, -1, last])], Vec::new())
    });
    let turned = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        let order: Vec<i64> = (0..i64::try_from(dims.len()).unwrap()).collect();
        let order = Just(order).prop_shuffle();
        order.prop_map(move |order| case("Transpose", vec![tensor.clone()], vec![ints("perm", order)]))
    });
    let expanded = (any_tensor(1), 1_i64..4).prop_map(|((tensor, dims), times)| {
        let mut wanted = vec![times];
        wanted.extend(dims.iter().map(|&dim| i64::try_from(dim).unwrap()));
        case("Expand", vec![tensor, integers(&[wanted.len()], &wanted)], Vec::new())
    });
    let tiled = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        prop::collection::vec(0_i64..3, dims.len()).prop_map(move |times| {
            case(
                "Tile",
                vec![tensor.clone(), integers(&[times.len()], &times)],
                Vec::new(),
            )
        })
    });
    let joined = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        axis_of(&dims).prop_map(move |axis| case("Concat", vec![tensor.clone(); 3], vec![int("axis", axis)]))
    });
    let split = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        axis_of(&dims).prop_map(move |axis| {
            let extent = dims[usize::try_from(axis.rem_euclid(i64::try_from(dims.len()).unwrap())).unwrap()];
            let parts = [i64::try_from(extent).unwrap() - 1, 1];
            Case {
                outputs: 2,
                ..case(
                    "Split",
                    vec![tensor.clone(), integers(&[2], &parts)],
                    vec![int("axis", axis)],
                )
            }
        })
    });
    let wider = any_tensor(0).prop_map(|(tensor, dims)| {
        let last = i64::try_from(dims.len()).unwrap() + 1;
        case("Unsqueeze", vec![tensor, integers(&[2], &[0, last])], Vec::new())
    });
    let narrower = any_tensor(0).prop_map(|(tensor, _)| case("Squeeze", vec![tensor], Vec::new()));
    let flattened = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        axis_of(&dims).prop_map(move |axis| case("Flatten", vec![tensor.clone()], vec![int("axis", axis)]))
    });
    prop_oneof![
        flat, partly, turned, expanded, tiled, joined, split, wider, narrower, flattened
    ]
}

fn selections() -> impl Strategy<Value = Case> {
    let slices = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        let step = prop_oneof![-3_i64..0, 1_i64..4];
        (
            axis_of(&dims),
            -5_i64..5,
            prop_oneof![-5_i64..5, Just(i64::MAX), Just(i64::MIN)],
            step,
        )
            .prop_map(move |(axis, start, end, step)| {
                let lists = [start, end, axis, step].map(|value| integers(&[1], &[value]));
                case("Slice", [tensor.clone()].into_iter().chain(lists).collect(), Vec::new())
            })
    });
    let gathers = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        let elements = any::<bool>();
        (
            axis_of(&dims),
            prop::sample::select(&[0_i64, -1][..]),
            shapes(0),
            elements,
        )
            .prop_map(move |(axis, index, shape, elements)| {
                let (op, shape) = if elements {
                    ("GatherElements", dims.clone())
                } else {
                    ("Gather", shape)
                };
                let indices = integers(&shape, &vec![index; shape.iter().product()]);
                case(op, vec![tensor.clone(), indices], vec![int("axis", axis)])
            })
    });
    let tuples = any_tensor(2)
        .prop_map(|(tensor, _)| case("GatherND", vec![tensor, integers(&[2, 2], &[0, -1, -1, 0])], Vec::new()));
    let scattered = (any_tensor(1), any::<bool>()).prop_map(|((tensor, dims), tuples)| {
        if tuples {
            let row = dims[1..].iter().product::<usize>();
            let mut update = tensor.clone();
            update.dims[0] = 1;
            update.raw_data.truncate(tensor.raw_data.len() / dims[0].max(1));
            assert!(update.raw_data.len() >= row);
            return case("ScatterND", vec![tensor, integers(&[1, 1], &[-1]), update], Vec::new());
        }
        let indices = integers(&dims, &vec![0; dims.iter().product()]);
        let first = if dims[0] == 1 { 0 } else { 1 };
        let indices = if first == 0 {
            indices
        } else {
            integers(&dims, &counting(&dims))
        };
        case(
            "ScatterElements",
            vec![tensor.clone(), indices, tensor],
            vec![int("axis", 0)],
        )
    });
    let found = any_tensor(1).prop_map(|(tensor, _)| case("NonZero", vec![tensor], Vec::new()));
    let padded = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        prop::collection::vec(0_i64..3, 2 * dims.len())
            .prop_map(move |pads| case("Pad", vec![tensor.clone(), integers(&[pads.len()], &pads)], Vec::new()))
    });
    let triangles =
        (any_tensor(2), -2_i64..3, 0_i64..2).prop_filter_map("a type without a kernel", |((tensor, _), k, upper)| {
            let kernel = tensor.data_type != INT32;
            kernel.then(|| case("Trilu", vec![tensor, integers(&[], &[k])], vec![int("upper", upper)]))
        });
    let best = any_tensor(1).prop_flat_map(|(tensor, dims)| {
        (axis_of(&dims), 0_i64..2).prop_map(move |(axis, largest)| Case {
            outputs: 2,
            ..case(
                "TopK",
                vec![tensor.clone(), integers(&[1], &[1])],
                vec![int("axis", axis), int("largest", largest)],
            )
        })
    });
    let taken = any_tensor(1).prop_map(|(tensor, dims)| {
        let condition = vec![1_i64; dims[0]];
        case(
            "Compress",
            vec![tensor, numbers(BOOL, &[dims[0]], &condition)],
            vec![int("axis", 0)],
        )
    });
    prop_oneof![
        slices, gathers, tuples, scattered, found, padded, triangles, best, taken
    ]
}

/// Along the first axis 0, 1, 2, and so on.
fn counting(dims: &[usize]) -> Vec<i64> {
    let row = dims[1..].iter().product::<usize>();
    (0..dims.iter().product::<usize>())
        .map(|place| i64::try_from(place / row).unwrap())
        .collect()
}

fn others() -> impl Strategy<Value = Case> {
    const JOINS: &[&str] = &["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"];
    let reduced = (prop::sample::select(JOINS), any_tensor(1), 0_i64..2).prop_flat_map(|(op, (_, dims), keeps)| {
        let whole = of_shape(&[INT64, INT32], dims.clone());
        (axis_of(&dims), whole).prop_map(move |(axis, tensor)| {
            case(op, vec![tensor, integers(&[1], &[axis])], vec![int("keepdims", keeps)])
        })
    });
    let args = (
        prop::sample::select(&["ArgMax", "ArgMin"][..]),
        any_tensor(1),
        0_i64..2,
        0_i64..2,
    );
    let args = args.prop_flat_map(|(op, (tensor, dims), keeps, last)| {
        axis_of(&dims).prop_map(move |axis| {
            let attributes = vec![
                int("axis", axis),
                int("keepdims", keeps),
                int("select_last_index", last),
            ];
            case(op, vec![tensor.clone()], attributes)
        })
    });
    let sums = (shapes(1), 0_i64..2, 0_i64..2).prop_flat_map(|(dims, exclusive, reverse)| {
        (axis_of(&dims), of_shape(&[INT64, INT32], dims)).prop_map(move |(axis, tensor)| {
            let attributes = vec![int("exclusive", exclusive), int("reverse", reverse)];
            case("CumSum", vec![tensor, integers(&[], &[axis])], attributes)
        })
    });
    let ranges = (-9_i64..9, -9_i64..9, prop_oneof![-4_i64..0, 1_i64..5], any::<bool>());
    let ranges = ranges.prop_map(|(start, limit, step, float)| {
        let list = [start, limit, step];
        let scalar = |value| {
            if float {
                numbers(FLOAT, &[], &[2 * value])
            } else {
                integers(&[], &[value])
            }
        };
        case("Range", list.map(scalar).to_vec(), Vec::new())
    });
    let shape = (any_tensor(1), -3_i64..3, -3_i64..4)
        .prop_map(|((tensor, _), start, end)| case("Shape", vec![tensor], vec![int("start", start), int("end", end)]));
    let size = any_tensor(0).prop_map(|(tensor, _)| case("Size", vec![tensor], Vec::new()));
    let filled = shapes(0).prop_map(|dims| {
        let list: Vec<i64> = dims.iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
        case("ConstantOfShape", vec![integers(&[dims.len()], &list)], Vec::new())
    });
    let hot = (shapes(1), 1_i64..5, -1_i64..1).prop_map(|(dims, depth, axis)| {
        let indices = integers(&dims, &counting(&[1, dims.iter().product()]));
        let values = integers(&[2], &[-3, 8]);
        case(
            "OneHot",
            vec![indices, integers(&[], &[depth]), values],
            vec![int("axis", axis)],
        )
    });
    let eyes = (1_usize..4, 1_usize..4, -2_i64..3).prop_map(|(rows, columns, k)| {
        let like = integers(&[rows, columns], &vec![5; rows * columns]);
        case("EyeLike", vec![like], vec![int("k", k)])
    });
    prop_oneof![reduced, args, sums, ranges, shape, size, filled, hot, eyes]
}

/// A model of all the nodes.
fn model(cases: &[Case]) -> ModelProto {
    let mut graph = GraphProto::new();
    graph.name = "values".to_owned();
    for (index, case) in cases.iter().enumerate() {
        let mut node = NodeProto::new();
        node.op_type = case.op.to_owned();
        node.name = format!("{}_{index}", case.op);
        node.attribute.clone_from(&case.attributes);
        for (at, operand) in case.operands.iter().enumerate() {
            let mut operand = operand.clone();
            operand.name = format!("in_{index}_{at}");
            node.input.push(operand.name.clone());
            graph.initializer.push(operand);
        }
        for at in 0..case.outputs {
            let mut output = ValueInfoProto::new();
            output.name = format!("out_{index}_{at}");
            node.output.push(output.name.clone());
            graph.output.push(output);
        }
        graph.node.push(node);
    }
    let mut model = ModelProto::new();
    model.ir_version = 8;
    let mut opset = OperatorSetIdProto::new();
    opset.version = 18;
    model.opset_import.push(opset);
    model.graph = Some(graph).into();
    model
}

fn known_values_are_those_that_the_runtime_computes() {
    let runtime = Runtime::load(&runtime_library()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.onnx");
    let config = Config {
        cases: 30,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let cases = prop::collection::vec(prop_oneof![elementwise(), layouts(), selections(), others()], 150);
    let checked = runner.run(&cases, |cases| {
        let model = model(&cases);
        std::fs::write(&path, model.write_to_bytes().unwrap()).unwrap();
        let settings = SessionSettings::exact(OptimizationLevel::Off);
        let outputs =
            run_seeded(&runtime, &path, &settings, 0).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let options = ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        };
        let opened = OnnxModel::open(&path, &options).unwrap();
        let known = opened.known_values(&options).unwrap();
        let mut outputs = outputs.iter();
        for (index, case) in cases.iter().enumerate() {
            for at in 0..case.outputs {
                let name = format!("out_{index}_{at}");
                let computed = outputs.next().unwrap();
                let Some(value) = known.get(&name) else {
                    return Err(TestCaseError::fail(format!("not followed: {case:?}")));
                };
                let dims: Vec<i64> = value.dims.iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
                prop_assert_eq!(&computed.name, &name);
                prop_assert_eq!(&computed.shape, &dims, "{:?}", case);
                prop_assert_eq!(&computed.bytes, &value.bytes, "{:?}", case);
            }
        }
        Ok(())
    });
    if let Err(TestError::Fail(reason, _) | TestError::Abort(reason)) = checked {
        panic!("{reason}");
    }
}
