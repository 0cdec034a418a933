//! MobileNetV2 at a width of 0.35 for small images, with ten classes, as an ONNX model.

use crate::onnx::{FLOAT, NodeExt, graph, model, node, numbers, tensor, tensor_type};
use onnx_protobuf::{Message, NodeProto, TensorProto};

/// By stage: how much wider the inside of a block is, channels at full width, blocks, stride of the first one.
const STAGES: [(i64, i64, usize, i64); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

/// The nearest multiple of 8 to 0.35 of that many channels, not below 0.9 of it.
fn width(channels: i64) -> i64 {
    let nearest = ((channels * 35 + 400) / 800 * 8).max(8);
    if nearest * 1_000 < channels * 315 {
        nearest + 8
    } else {
        nearest
    }
}

#[derive(Default)]
struct Network {
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
}

impl Network {
    fn node(&mut self, op: &str, inputs: &[&str], name: &str) -> String {
        self.nodes.push(node(op, inputs, &[name]).named(name));
        name.to_owned()
    }

    fn weight(&mut self, name: String, dims: &[i64]) -> String {
        self.weights.push(numbers(&name, dims));
        name
    }

    /// A convolution of square windows around each pixel.
    fn conv(&mut self, x: &str, name: &str, [from, to, kernel, stride, groups]: [i64; 5]) -> String {
        let w = self.weight(format!("{name}.w"), &[to, from / groups, kernel, kernel]);
        let b = self.weight(format!("{name}.b"), &[to]);
        let node = node("Conv", &[x, &w, &b], &[name]).named(name);
        let node = node.ints("pads", &[kernel / 2; 4]).ints("strides", &[stride; 2]);
        self.nodes.push(node.int("group", groups));
        name.to_owned()
    }

    fn active(&mut self, x: &str) -> String {
        self.node("Clip", &[x, "zero", "six"], &format!("{x}.y"))
    }

    /// Expand, filter each channel, project; what came is added where it has the same form.
    fn block(&mut self, x: &str, name: &str, [wider, from, to, stride]: [i64; 4]) -> String {
        let inside = from * wider;
        let mut y = x.to_owned();
        if wider > 1 {
            y = self.conv(&y, &format!("{name}.expand"), [from, inside, 1, 1, 1]);
            y = self.active(&y);
        }
        y = self.conv(&y, &format!("{name}.filter"), [inside, inside, 3, stride, inside]);
        y = self.active(&y);
        y = self.conv(&y, &format!("{name}.project"), [inside, to, 1, 1, 1]);
        if stride == 1 && from == to {
            y = self.node("Add", &[x, &y], &format!("{name}.sum"));
        }
        y
    }
}

/// The network for images of that many pixels along an edge, as a file.
///
/// # Panics
/// If it cannot be encoded.
#[must_use]
pub fn mobile_net(size: u32) -> Vec<u8> {
    let mut net = Network::default();
    for (name, value) in [("zero", 0.0), ("six", 6.0)] {
        let mut number = tensor(name, FLOAT, &[]);
        number.float_data = vec![value];
        net.weights.push(number);
    }
    let mut channels = width(32);
    let mut x = net.conv("image", "stem", [3, channels, 3, 2, 1]);
    x = net.active(&x);
    let mut number = 0;
    for (wider, wanted, blocks, stride) in STAGES {
        for block in 0..blocks {
            let stride = if block == 0 { stride } else { 1 };
            x = net.block(&x, &format!("block{number}"), [wider, channels, width(wanted), stride]);
            channels = width(wanted);
            number += 1;
        }
    }
    x = net.conv(&x, "head", [channels, 1_280, 1, 1, 1]);
    x = net.active(&x);
    net.node("GlobalAveragePool", &[&x], "mean");
    net.node("Flatten", &["mean"], "flat");
    let (w, b) = (
        net.weight("classes.w".to_owned(), &[1_280, 10]),
        net.weight("classes.b".to_owned(), &[10]),
    );
    net.node("Gemm", &["flat", &w, &b], "classes");
    let image = tensor_type(FLOAT, &format!("1 3 {size} {size}"));
    let mut graph = graph(&[("image", image)], net.nodes, &["classes"]);
    graph.initializer = net.weights;
    model(graph).write_to_bytes().expect("it can be encoded")
}
