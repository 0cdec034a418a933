//! Operations and bytes of an op, by the formula of its type.

mod attention;
mod conv;
mod matmul;
mod recurrent;
mod runs;
mod windows;

use remat_ir::{ElementType, Graph, Op};
use remat_operators::{Formula, Movement, operator};

use crate::KernelClass;
use crate::operands::{Operands, product};
use crate::work::{CpuDetail, Work};

/// The work of one run of `op`. Where a shape is unknown the arithmetic counts as nothing.
pub(crate) fn work(graph: &Graph, op: &Op) -> Work {
    let row = operator(&op.domain, &op.op_type);
    let looks_only =
        op.results().next().is_some() && op.results().all(|t| graph.is_view(t)) && row.overwrites.is_none();
    if !op.kind.is_run() || looks_only {
        return Work::none(KernelClass::View);
    }
    let operands = Operands::new(graph, op);
    let formula = row.cost;
    let (class, flops) = arithmetic(&operands, formula);
    let element = operands
        .input(0)
        .or_else(|| operands.output(0))
        .and_then(remat_ir::ValueType::element)
        .unwrap_or(ElementType::Float32);
    let written_bytes = operands.written_bytes();
    Work {
        class,
        element,
        flops: flops.unwrap_or(0),
        read_bytes: read_bytes(&operands, formula, written_bytes),
        written_bytes,
        detail: detail(&operands, formula).unwrap_or_default(),
    }
}

/// What a CPU kernel does besides; `None` where a shape it depends on is unknown.
fn detail(operands: &Operands<'_>, formula: Formula) -> Option<CpuDetail> {
    let runs = |runs: Option<u128>| {
        Some(CpuDetail {
            runs: runs?,
            ..CpuDetail::default()
        })
    };
    match formula {
        Formula::Conv { weight } => conv::detail(operands, weight),
        Formula::ConvTranspose { weight } => conv::transposed_detail(operands, weight),
        Formula::MatMul | Formula::DotGeneral | Formula::Gemm => matmul::detail(operands),
        Formula::Select => runs::select(operands),
        Formula::Elementwise(_) | Formula::Variadic | Formula::Move(Movement::Broadcast) => {
            runs(runs::broadcast(operands))
        }
        Formula::Softmax(_) | Formula::Normalization(_) => runs(runs::rows(operands)),
        Formula::GatherElements => runs(runs::gather_elements(operands)),
        Formula::Scatter => runs(runs::indices(operands)),
        Formula::ScatterTuples | Formula::Move(Movement::GatherTuples) => runs(runs::tuples(operands)),
        Formula::Move(Movement::Transpose) => runs(runs::transpose(operands)),
        Formula::Move(Movement::Gather) => runs(runs::gather(operands)),
        Formula::Move(Movement::Copy) => runs(runs::copy(operands)),
        _ => None,
    }
}

/// Efficiency class and operations of an op; `None` operations where a shape they depend on is unknown.
fn arithmetic(operands: &Operands<'_>, formula: Formula) -> (KernelClass, Option<u128>) {
    let per_output = |weight: u32| Some(operands.output_elements(0)?.saturating_mul(u128::from(weight)));
    let per_input = |weight: u32| Some(operands.input_elements(0)?.saturating_mul(u128::from(weight)));
    match formula {
        Formula::Metadata => (KernelClass::Copy, Some(0)),
        Formula::Move(Movement::Copy) => (KernelClass::Copy, Some(0)),
        Formula::Move(Movement::Transpose) => (KernelClass::Transpose, Some(0)),
        Formula::Move(Movement::Broadcast) => (KernelClass::Broadcast, Some(0)),
        Formula::Move(Movement::Gather | Movement::GatherTuples)
        | Formula::GatherElements
        | Formula::Scatter
        | Formula::ScatterTuples => (KernelClass::Gather, Some(0)),
        Formula::Elementwise(weight) => (KernelClass::Elementwise, per_output(weight)),
        Formula::Transcendental(weight) => (KernelClass::Transcendental, per_output(weight)),
        Formula::Variadic => {
            let operations = u32::try_from(operands.input_count().saturating_sub(1)).unwrap_or(u32::MAX);
            (KernelClass::Elementwise, per_output(operations.max(1)))
        }
        Formula::Reduce(weight) => (KernelClass::Reduce, per_input(weight)),
        Formula::Normalization(weight) => (KernelClass::Normalization, per_input(weight)),
        Formula::Softmax(weight) => (KernelClass::Softmax, per_input(weight)),
        Formula::Sort => (KernelClass::Sort, sort(operands)),
        Formula::Select => (KernelClass::Elementwise, per_output(2)),
        Formula::AveragePool => (KernelClass::AveragePool, windows::pool(operands)),
        Formula::Pool => (KernelClass::Pool, windows::pool(operands)),
        Formula::GlobalPool => (KernelClass::Pool, per_input(1)),
        Formula::LocalNorm => (KernelClass::Normalization, windows::local_norm(operands)),
        Formula::Conv { weight } => (conv::class(operands, weight), conv::flops(operands, weight)),
        Formula::ConvTranspose { weight } => (KernelClass::ConvTranspose, conv::transposed_flops(operands, weight)),
        Formula::ConvLastOutput { weight } => (KernelClass::Conv, conv::last_output_flops(operands, weight)),
        Formula::Depthwise { weight } => (KernelClass::DepthwiseConv, conv::depthwise_flops(operands, weight)),
        Formula::TransposedLastChannels { weight } => (
            KernelClass::ConvTranspose,
            conv::transposed_last_channels_flops(operands, weight),
        ),
        Formula::MatMul => (KernelClass::MatMul, matmul::flops(operands)),
        Formula::DotGeneral => (KernelClass::MatMul, matmul::dot_general_flops(operands)),
        Formula::Gemm => (KernelClass::MatMul, matmul::gemm_flops(operands)),
        Formula::Einsum => (KernelClass::MatMul, matmul::einsum_flops(operands)),
        Formula::Attention(layout) => (KernelClass::Attention, attention::flops(operands, layout)),
        Formula::Recurrent { weights } => (KernelClass::Recurrent, recurrent::flops(operands, weights)),
        Formula::Stated => stated(operands),
        Formula::Bytes => (KernelClass::Unknown, Some(0)),
    }
}

/// What the importer counted.
fn stated(operands: &Operands<'_>) -> (KernelClass, Option<u128>) {
    let class = match operands.text("loops") {
        Some("contraction") => KernelClass::MatMul,
        Some("reduction") => KernelClass::Reduce,
        Some("transcendental") => KernelClass::Transcendental,
        Some("elementwise") => KernelClass::Elementwise,
        _ => KernelClass::Unknown,
    };
    let operations = operands.int("operations").and_then(|count| u128::try_from(count).ok());
    (class, operations)
}

/// Of `n` elements along an axis each is compared with the least of the `k` best so far. Where their order is random, `k (1 + ln(n / k))` are among these
/// when their turn comes, each of which moves `log2 k` times: a heap. With `k = n` that is a sort.
fn sort(operands: &Operands<'_>) -> Option<u128> {
    /// A move takes as long as so many comparisons (ONNX Runtime 1.31, one core: 0.27 ns and 3.7 to 7 ns, for `n` from 3,125 to 200,000 and `k` from 1 to
    /// `n`).
    const MOVE: u128 = 16;
    let shape = operands.input_shape(0)?;
    let stated = operands.int("axis").or_else(|| operands.int("dimension"));
    let rank = i64::try_from(shape.len()).ok()?;
    let axis = stated.map_or(rank - 1, |axis| if axis < 0 { axis + rank } else { axis });
    let axis = usize::try_from(axis).ok()?;
    let length = |shape: &[u64]| shape.get(axis).map(|&length| u128::from(length.max(1)));
    let elements = length(&shape).unwrap_or(1);
    let kept = operands.output(0).and_then(|output| length(&output.known_shape()?));
    let kept = kept.unwrap_or(elements).clamp(1, elements);
    let entering = kept * (10 + 7 * u128::from((elements / kept).ilog2())) / 10;
    let of_row = elements + MOVE * entering * u128::from(kept.ilog2());
    Some((product(&shape) / elements).saturating_mul(of_row))
}

/// Bytes of operands that the op looks at: one that picks from its operands looks at as many as it writes.
fn read_bytes(operands: &Operands<'_>, formula: Formula, written: u128) -> u128 {
    match formula {
        Formula::Metadata => 0,
        // The other operands are shapes and indices.
        Formula::Move(Movement::Broadcast) => operands.input_bytes(0),
        Formula::Move(_) => written.min(operands.read_bytes()),
        _ => operands.read_bytes(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
