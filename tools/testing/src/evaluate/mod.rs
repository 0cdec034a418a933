//! A reference interpreter: what a graph computes, in integers that wrap around, so that the order of sums does not matter.
//!
//! It is there to prove that two graphs compute the same, a graph and its tiles say. Ops that move and add elements do what ONNX says. Functions
//! of single elements (`Sigmoid`) and of whole axes (`Softmax`) are stood in for by others that depend on just the same elements. Averages are
//! sums multiplied by a number that depends on how many elements there are; rows in between two others are weighted sums, multiplied by twice
//! the scale.
#![expect(clippy::cast_possible_wrap, reason = "the shapes of tests are small")]

mod array;
mod einsum;
mod loops;
mod movement;
mod quantized;
mod reduce;
mod window;

use std::collections::BTreeMap;

use remat_ir::{Attribute, Graph, Op, OpKind, StorageClass, TensorId};

pub use array::Array;

/// The graph outputs by name, for inputs and constants that follow from their names.
///
/// # Panics
/// As [`evaluate_all`].
#[must_use]
pub fn evaluate(graph: &Graph) -> BTreeMap<String, Array> {
    let all = evaluate_all(graph, &BTreeMap::new());
    let output = |&id: &TensorId| {
        let name = &graph.tensors[id].name;
        (name.clone(), all[name].clone())
    };
    graph.outputs.iter().map(output).collect()
}

/// Every tensor by name. Inputs and constants are those in `given`, what the graph states of them, or what follows from their names.
///
/// # Panics
/// If the graph has an op or a type that is not known here, an op that repeats or moves memory, or one that cannot be computed.
#[must_use]
pub fn evaluate_all(graph: &Graph, given: &BTreeMap<String, Array>) -> BTreeMap<String, Array> {
    let mut values: BTreeMap<String, Array> = BTreeMap::new();
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if tensor.producer.is_none() {
            let value = given.get(&tensor.name).cloned();
            values.insert(tensor.name.clone(), value.unwrap_or_else(|| source(graph, id)));
        }
    }
    for op in &graph.ops {
        assert_eq!(op.kind, OpKind::Compute, "op `{}`", op.name);
        let operand = |input: &Option<TensorId>| values.get(&graph.tensors[(*input)?].name);
        let operands: Vec<Option<&Array>> = op.inputs.iter().map(operand).collect();
        let results = evaluate_op(op, &operands);
        for (&result, value) in op.outputs.iter().zip(results) {
            if let Some(result) = result {
                let tensor = &graph.tensors[result];
                if let Some(dims) = tensor.ty.known_shape() {
                    let is: Vec<u64> = value.dims.iter().map(|&dim| dim as u64).collect();
                    assert_eq!(is, dims, "the shape of `{}`", tensor.name);
                }
                values.insert(tensor.name.clone(), value);
            }
        }
    }
    values
}

/// The results of an op for these operands.
///
/// # Panics
/// If it cannot be computed.
#[must_use]
pub fn evaluate_op(op: &Op, operands: &[Option<&Array>]) -> Vec<Array> {
    let operands = operands.to_vec();
    Call { op, operands }.run()
}

/// What an input or constant is, as far as the graph does not say it: scales of an interpolation double all axes but the first two.
fn source(graph: &Graph, id: TensorId) -> Array {
    let tensor = &graph.tensors[id];
    let dims = tensor.ty.known_shape();
    let dims = dims.unwrap_or_else(|| panic!("the shape of `{}`", tensor.name));
    let small = |&dim: &u64| usize::try_from(dim).unwrap_or(usize::MAX);
    let dims: Vec<usize> = dims.iter().map(small).collect();
    let is_constant = graph.storages[tensor.storage].class == StorageClass::Constant;
    if let Some(elements) = graph.values.get(&id).filter(|_| is_constant) {
        let data = elements.clone();
        return Array { dims, data };
    }
    let scales = |op: &Op| op.op_type == "Resize" && op.inputs.get(2) == Some(&Some(id));
    if graph.ops.iter().any(scales) {
        let data = (0..dims[0]).map(|axis| if axis < 2 { 1 } else { 2 }).collect();
        return Array { dims, data };
    }
    Array::of_name(&tensor.name, dims)
}

/// An op with its operands.
struct Call<'a> {
    op: &'a Op,
    operands: Vec<Option<&'a Array>>,
}

impl Call<'_> {
    fn run(&self) -> Vec<Array> {
        vec![match self.op.op_type.as_str() {
            "softmax" if self.op.domain == "linalg" => self.along_axis(false),
            _ if self.op.domain == "linalg" => self.loops(),
            "pad" if self.op.domain == "tensor" => self.pad_by_attributes(),
            "Conv" | "FusedConv" => self.conv(),
            "ConvInteger" | "QLinearConv" => self.quantized_conv(),
            "QLinearMatMul" | "MatMulInteger" | "QGemm" | "MatMulIntegerToFloat" | "DynamicQuantizeMatMul" => {
                self.quantized_matmul()
            }
            "QLinearConcat" => self.quantized_concat(),
            "Einsum" => self.einsum(),
            "Expand" => self.expand(),
            "Tile" => self.tile(),
            "DepthToSpace" => self.depth_to_space(),
            "SpaceToDepth" => self.space_to_depth(),
            "ConvTranspose" => self.conv_transpose(),
            "MaxPool" | "AveragePool" | "QLinearAveragePool" => self.pool(),
            "MatMul" | "FusedMatMul" => self.matmul(),
            "Gemm" | "FusedGemm" => self.gemm(),
            "Resize" => self.resize(),
            "Concat" => self.concat(),
            "Slice" => self.slice(),
            "Split" => return self.split(),
            "Pad" => self.pad(),
            "Transpose" => self.transpose(),
            "Shape" => self.shape(),
            "Reshape" => self.reshape(),
            "Flatten" => self.flatten(),
            "Squeeze" | "Unsqueeze" => self.squeeze(),
            "Gather" => self.gather(),
            "GatherND" => self.gather_nd(),
            "GatherElements" => self.gather_elements(),
            "ScatterElements" => self.scatter_elements(),
            "QuantizeLinear" | "DequantizeLinear" => self.quantize(),
            "Softmax" | "LogSoftmax" | "QLinearSoftmax" | "LpNormalization" => self.along_axis(false),
            "CumSum" => self.cumulated(),
            "TopK" => return self.greatest(),
            "LayerNormalization" | "SkipLayerNormalization" | "SimplifiedLayerNormalization" => self.along_axis(true),
            "InstanceNormalization" | "GroupNormalization" => self.image_norm(),
            "BatchNormalization" => self.batch_norm(),
            "GlobalAveragePool" | "GlobalMaxPool" | "QLinearGlobalAveragePool" => self.global_pool(),
            name if name.starts_with("Reduce") || name.starts_with("Arg") => self.reduce(),
            _ => self.elementwise(),
        }]
    }

    fn operand(&self, position: usize) -> &Array {
        self.given(position)
            .unwrap_or_else(|| panic!("operand {position} of `{}`", self.op.name))
    }

    /// An operand that may be left out.
    fn given(&self, position: usize) -> Option<&Array> {
        self.operands.get(position).copied().flatten()
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_int)
            .unwrap_or(default)
    }

    fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_ints)
            .map(<[i64]>::to_vec)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.op.attributes.get(name).and_then(Attribute::as_str)
    }

    /// An axis of an array of `rank` axes, counted from the end where it is negative.
    fn axis(&self, axis: i64, rank: usize) -> usize {
        let rank = rank as i64;
        usize::try_from(if axis < 0 { axis + rank } else { axis })
            .unwrap_or_else(|_| panic!("axis {axis} of `{}`", self.op.name))
    }

    /// A function of the elements at one place; it depends on every one.
    fn elementwise(&self) -> Array {
        let operands: Vec<&Array> = self.operands.iter().flatten().copied().collect();
        let dims = operands
            .iter()
            .fold(Vec::new(), |dims, array| array::broadcast(&dims, &array.dims));
        let salt = self
            .op
            .op_type
            .bytes()
            .fold(7_i64, |salt, byte| salt * 3 + i64::from(byte))
            % 1_009;
        Array::from_fn(dims, |at| {
            let mut elements = operands.iter().map(|array| array.at_right(at));
            let first = elements.next().unwrap_or(0);
            match (self.op.op_type.as_str(), elements.next()) {
                ("Relu", None) => first.max(0),
                ("Neg", None) => first.wrapping_neg(),
                ("Identity" | "Cast", None) => first,
                ("Add", Some(second)) => first.wrapping_add(second),
                ("Sub", Some(second)) => first.wrapping_sub(second),
                ("Mul", Some(second)) => first.wrapping_mul(second),
                (_, None) => mixed(salt, first),
                (_, Some(second)) => elements.fold(mixed(mixed(salt, first), second), mixed),
            }
        })
    }
}

/// A number that depends on both.
fn mixed(a: i64, b: i64) -> i64 {
    a.wrapping_mul(31).wrapping_add(b.wrapping_mul(17)) ^ (b >> 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_by_hand() {
        let text = r#"graph "g" {
          const %x : i64[1, 1, 1, 3] values [1, 2, 3]
          const %w : i64[1, 1, 1, 2] values [10, 1]
          %y : i64[1, 1, 1, 4] = compute @y Conv(%x, %w) {pads = [0, 1, 0, 1]}
          %p : i64[1, 1, 1, 2] = compute @p MaxPool(%y) {kernel_shape = [1, 2], strides = [1, 2]}
          %t : i64[1, 1, 1, 4] = compute @t ConvTranspose(%x, %w)
          output %y
          output %p
          output %t
        }"#;
        let found = evaluate(&Graph::parse(text).expect("it is a graph"));
        assert_eq!(found["y"].data, [1, 12, 23, 30]);
        assert_eq!(found["p"].data, [12, 30]);
        assert_eq!(found["t"].data, [10, 21, 32, 3]);
    }

    #[test]
    fn movement_by_hand() {
        let text = r#"graph "g" {
          const %x : i64[2, 3] values [1, 2, 3, 4, 5, 6]
          const %one : i64[1] values [1]
          const %end : i64[1] values [9]
          const %pads : i64[4] values [1, 0, 0, 0]
          %s : i64[2, 2] = compute @s Slice(%x, %one, %end, %one)
          %t : i64[2, 2] = compute @t Transpose(%s) {perm = [1, 0]}
          %c : i64[2, 4] = compute @c Concat(%s, %t) {axis = 1}
          %p : i64[3, 2] = compute @p Pad(%s, %pads)
          %m : i64[2, 2] = compute @m MatMul(%s, %t)
          output %c
          output %p
          output %m
        }"#;
        let found = evaluate(&Graph::parse(text).expect("it is a graph"));
        assert_eq!(found["c"].data, [2, 3, 2, 5, 5, 6, 3, 6]);
        assert_eq!(found["p"].data, [0, 0, 2, 3, 5, 6]);
        assert_eq!(found["m"].data, [13, 28, 28, 61]);
    }
}
