//! Bytes that kernels take on top of operands and results while they run: ONNX Runtime 1.31 on a CPU, one thread, and of the `tosa`
//! dialect what its lowering in MLIR allocates.
//!
//! Every formula for ONNX Runtime was fitted to nodes run one at a time against the heap (`data/workspace.csv`, made by
//! `data/measure_workspace.py`) and read in the runtime's sources where the figures left a doubt. A kernel the table does
//! not know is taken to need nothing.

mod attention;
mod conv;
mod einsum;
mod moves;
mod tosa;
mod widened;

use remat_ir::{Attribute, Graph, Op, ValueType};

use crate::operands::{Operands, value_bytes};

/// Workspace of one run of `op` that a compiler allocates, whatever the device: what the importer states by the attribute `workspace`, for
/// temporaries in regions, and what the lowering of an operator to several operations takes.
pub(crate) fn lowered(graph: &Graph, op: &Op) -> u64 {
    let stated = op.attributes.get("workspace").and_then(Attribute::as_int);
    let stated = stated.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let own = match op.domain.as_str() {
        "tosa" => tosa::bytes(&op.op_type, &Operands::new(graph, op)),
        _ => None,
    };
    stated.saturating_add(u64::try_from(own.unwrap_or(0)).unwrap_or(u64::MAX))
}

/// Workspace of one run of `op` in ONNX Runtime; 0 where shapes are unknown.
pub(crate) fn bytes(graph: &Graph, op: &Op) -> u64 {
    let operands = Operands::new(graph, op);
    let own = match op.domain.as_str() {
        "" | "ai.onnx" => onnx(&op.op_type, &operands),
        "com.microsoft" => microsoft(&op.op_type, &operands),
        // Blocked kernels work in place of their operands; foreign ones are not known.
        _ => None,
    };
    let widened = widened::bytes(op, &operands);
    u64::try_from(own.unwrap_or(0).saturating_add(widened)).unwrap_or(u64::MAX)
}

/// The default domain.
fn onnx(op_type: &str, operands: &Operands<'_>) -> Option<u128> {
    match op_type {
        "Conv" => conv::conv(operands),
        "ConvTranspose" => conv::transposed(operands),
        "ConvInteger" => conv::integer(operands),
        "QLinearConv" => conv::quantized(operands),
        "QLinearMatMul" => result_elements(operands, 4),
        "Einsum" => einsum::einsum(operands),

        "Where" => moves::where_op(operands),
        "Expand" => moves::expand(operands),
        "ScatterElements" | "Scatter" => elements(operands, 1, 8),
        "GatherND" | "ScatterND" => moves::tuples(operands),
        "OneHot" => elements(operands, 0, 8),
        "NonZero" => elements(operands, 0, 8)?.checked_mul(u128::try_from(operands.input_shape(0)?.len()).ok()?),
        "Unique" => elements(operands, 0, 120),
        "Resize" => moves::resize(operands),
        "GridSample" => moves::grid_sample(operands),

        "Softmax" | "LogSoftmax" | "Hardmax" => off_the_last_axis(operands),
        // Sums of three and more go through one intermediate result.
        "Max" | "Min" | "Sum" | "Mean" if operands.input_count() > 2 => Some(value_bytes(operands.output(0)?)),
        "Dropout" if operands.result_slots() < 2 => result_elements(operands, 1),
        "LRN" => moves::local_norm(operands),
        "SoftmaxCrossEntropyLoss" => Some(operands.input_bytes(0)),
        // Functions: what their bodies hold.
        "HardSwish" | "Mish" => Some(value_bytes(operands.output(0)?)),
        "GroupNormalization" => Some(value_bytes(operands.output(0)?).saturating_mul(2)),
        "MeanVarianceNormalization" => Some(value_bytes(operands.output(0)?).saturating_mul(3)),

        "Attention" => attention::standard(operands),
        "LSTM" => attention::recurrent(operands, 4),
        "GRU" => attention::recurrent(operands, 3),
        "RNN" => attention::recurrent(operands, 1),
        _ => None,
    }
}

/// The runtime's own operators.
fn microsoft(op_type: &str, operands: &Operands<'_>) -> Option<u128> {
    match op_type {
        "FusedConv" => conv::conv(operands),
        "QLinearConv" => conv::quantized(operands),
        "QGemm" => result_elements(operands, 4),
        // The first operand, quantized.
        "DynamicQuantizeMatMul" => elements(operands, 0, 1),
        "QLinearAveragePool" => elements(operands, 0, 4),
        "BiasGelu" => Some(value_bytes(operands.output(0)?)),
        "FastGelu" if operands.input_count() > 1 => Some(value_bytes(operands.output(0)?)),
        // Half precision only: both operands and the result in single precision.
        "SkipLayerNormalization" if bits(operands.output(0)?)? == 16 => {
            Some(value_bytes(operands.output(0)?).saturating_mul(6))
        }
        "Attention" => attention::projected(operands),
        "MultiHeadAttention" | "GroupQueryAttention" => attention::separate(operands),
        _ => None,
    }
}

/// So many bytes per element of an operand.
fn elements(operands: &Operands<'_>, index: usize, bytes: u128) -> Option<u128> {
    Some(operands.input_elements(index)?.saturating_mul(bytes))
}

/// So many bytes per element of the first result.
fn result_elements(operands: &Operands<'_>, bytes: u128) -> Option<u128> {
    Some(operands.output_elements(0)?.saturating_mul(bytes))
}

/// Transposed copies of operand and result, where the axis is not the last; models of operator sets below 13 flatten
/// instead, which a graph does not tell.
fn off_the_last_axis(operands: &Operands<'_>) -> Option<u128> {
    let rank = i64::try_from(operands.input_shape(0)?.len()).ok()?;
    let axis = operands.int("axis").unwrap_or(-1);
    if axis == -1 || axis + 1 == rank {
        return None;
    }
    Some(operands.input_bytes(0).saturating_mul(2))
}

/// Bits of one element.
fn bits(ty: &ValueType) -> Option<u128> {
    ty.element().map(|element| u128::from(element.bits()))
}

#[cfg(test)]
mod tests;
