//! Graphs for the tests of the textual form and of the drawing.

#![expect(clippy::unwrap_used, reason = "a graph that cannot be built is a broken test")]

use remat_ir::{
    Attribute, Dim, Effects, ElementType, Graph, GraphBuilder, OpKind, OpSpec, Part, Placement, ResultSpec, Spare,
    ValueType,
};

/// A graph with at least one of everything that the textual form can say.
pub(crate) fn rich_graph() -> Graph {
    let mut b = GraphBuilder::new("every \"thing\"\n");
    let shape = |dims: &[Dim]| Some(dims.to_vec());
    let f32s = |dims: &[u64]| ValueType::tensor(ElementType::Float32, dims);
    let batch = Dim::Symbol("batch".into());
    let image = ValueType::Tensor {
        element: ElementType::Float32,
        shape: shape(&[batch, Dim::Symbol("2*H".into()), Dim::Unknown, Dim::Known(3)]),
    };
    let x = b.input("x", image).unwrap();
    let w = b.constant("onnx::Conv_1", f32s(&[64, 3, 7, 7])).unwrap();
    let sparse = ValueType::SparseTensor {
        element: ElementType::Int4,
        shape: None,
    };
    let table = ValueType::Map {
        key: ElementType::String,
        value: Box::new(ValueType::Sequence(Box::new(sparse))),
    };
    let outer = b.input("outer", ValueType::Optional(Box::new(table))).unwrap();

    let mut conv = OpSpec::new("/layer1/conv", "Conv")
        .reads(x)
        .reads(w)
        .defines("y", f32s(&[2, 8]));
    conv.inputs.push(None);
    conv.source = Some(12);
    for (name, value) in [
        ("kernel_shape", Attribute::Ints(vec![7, -7])),
        ("group", Attribute::Int(i64::MIN)),
        ("auto pad", Attribute::String(b"SAME \"UPPER\"".to_vec())),
        ("raw", Attribute::String(vec![0xff, 0, b'a'])),
        ("alpha", Attribute::Float(1.0)),
        (
            "betas",
            Attribute::Floats(vec![-0.0, 1e-7, f32::INFINITY, f32::NAN, f32::from_bits(0xff80_0001)]),
        ),
        ("names", Attribute::Strings(vec![b"a".to_vec(), vec![0x80]])),
        ("no_ints", Attribute::Ints(vec![])),
        ("no_floats", Attribute::Floats(vec![])),
        ("no_strings", Attribute::Strings(vec![])),
        ("body", Attribute::Opaque("graph of 3 nodes".into())),
    ] {
        conv.attributes.insert(name.into(), value);
    }
    let again = conv.clone();
    let (conv, y) = b.op(conv).unwrap();
    let y = y[0].unwrap();

    let (_, flat) = b
        .op(OpSpec::new("flat", "Flatten").reads(y).views("flat", f32s(&[16]), y))
        .unwrap();
    let flat = flat[0].unwrap();
    let mut split = OpSpec::new("split", "Split")
        .reads(flat)
        .defines("a", ValueType::Unknown);
    split.domain = "com.microsoft".into();
    split.results.push(None);
    split.results.push(Some(ResultSpec {
        name: "b".into(),
        ty: f32s(&[]),
        placement: Placement::Constant,
    }));
    split.captures = vec![outer, x];
    split.effects = Effects::ControlFlow;
    let (_, parts) = b.op(split).unwrap();
    let (a, c) = (parts[0].unwrap(), parts[2].unwrap());
    b.set_bytes(b.graph().tensors[a].storage, 4096);

    let mut draw = OpSpec::new("draw", "RandomNormal").effects(Effects::Random);
    draw.results.push(None);
    b.op(draw).unwrap();
    b.op(OpSpec::new("print", "Print").reads(c).effects(Effects::Stateful))
        .unwrap();
    b.page_out(a);
    b.dealloc(y);
    b.page_in(a);
    let late = b.constant("late", f32s(&[1])).unwrap();
    let bounds = ValueType::tensor(ElementType::Int64, &[2]);
    let bounds = b.integers("starts", bounds, vec![-1, i64::MAX]).unwrap();
    let mut slice = OpSpec::new("slice", "Slice")
        .reads(x)
        .reads(bounds)
        .defines("rows", f32s(&[2, 7]));
    slice.parts = vec![Some(Part {
        of: "/layer1/x:0".into(),
        ranges: vec![0..2, 8..12],
        spare: Some(Spare {
            axis: 1,
            before: 2,
            after: 1,
        }),
        is_sum: false,
    })];
    let (_, rows) = b.op(slice).unwrap();
    let rows = rows[0].unwrap();
    let mut cut = OpSpec::new("cut", "Flatten")
        .reads(rows)
        .views("cut", f32s(&[14]), rows);
    cut.parts = vec![Some(Part::whole("cut", &[14]))];
    b.op(cut).unwrap();
    let mut again = again;
    again.name = "/layer1/conv.1".into();
    again.kind = OpKind::Recompute { of: conv };
    again.results[0].as_mut().unwrap().name = "y.1".into();
    let (_, again) = b.op(again).unwrap();
    b.output(again[0].unwrap());
    b.output(late);
    b.output(again[0].unwrap());

    let mut graph = b.finish();
    let dealloc = graph.ops.iter_mut().find(|op| op.kind == OpKind::Dealloc).unwrap();
    dealloc.name = "give up".into();
    let late = graph.tensors[late].storage;
    graph.storages[late].bytes = None;
    graph
}
