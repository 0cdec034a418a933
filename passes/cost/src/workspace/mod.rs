//! Bytes that kernels take on top of operands and results while they run: ONNX Runtime 1.31 on a CPU, one thread, and of the `tosa`
//! dialect what its lowering in MLIR allocates.
//!
//! Every formula for ONNX Runtime was fitted to nodes run one at a time against the heap (`data/workspace.csv`, made by
//! `data/measure_workspace.py`) and read in the runtime's sources where the figures left a doubt. A kernel the table does
//! not know is taken to need nothing. What If, Loop and Scan take for
//! their subgraphs is for the caller to say ([`BodyBytes`]).

mod attention;
mod conv;
mod einsum;
mod moves;
mod tosa;
mod widened;

use remat_ir::{Attribute, Graph, Op, OpId};
use remat_operators::{Workspace, operator};

use crate::operands::{Operands, bits, value_bytes};

/// Workspace of one run of `op` that a compiler allocates, whatever the device: what the importer states by the attribute `workspace`, for
/// temporaries in regions, and what the lowering of an operator to several operations takes.
pub(crate) fn lowered(graph: &Graph, op: &Op) -> u64 {
    let stated = op.attributes.get("workspace").and_then(Attribute::as_int);
    let stated = stated.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let row = operator(&op.domain, &op.op_type);
    let own = tosa::bytes(row.workspace, &Operands::new(graph, op));
    stated.saturating_add(u64::try_from(own.unwrap_or(0)).unwrap_or(u64::MAX))
}

/// Bytes that an op takes for its subgraphs at most, on top of operands and results; `None` if nothing is known. The function that it is given
/// says what the kernel of any other op holds while it runs.
pub type BodyBytes = fn(&Graph, OpId, &dyn Fn(&Graph, OpId) -> u64) -> Option<u64>;

/// Of no subgraph anything is known.
#[must_use]
pub fn no_bodies(_: &Graph, _: OpId, _: &dyn Fn(&Graph, OpId) -> u64) -> Option<u64> {
    None
}

/// Workspace of one run of op `id` in ONNX Runtime, what it takes for subgraphs included; 0 where shapes are unknown.
pub(crate) fn bytes(graph: &Graph, id: OpId, bodies: BodyBytes) -> u64 {
    if graph.ops[id].bodies.is_empty() {
        return kernel_bytes(graph, id);
    }
    bodies(graph, id, &kernel_bytes).unwrap_or(0)
}

/// Workspace of one run of op `id` in ONNX Runtime without what it takes for subgraphs; 0 where shapes are unknown.
#[must_use]
pub fn kernel_bytes(graph: &Graph, id: OpId) -> u64 {
    let op = &graph.ops[id];
    let operands = Operands::new(graph, op);
    let row = operator(&op.domain, &op.op_type);
    let own = kernel(row.workspace, &operands).unwrap_or(0);
    let widened = widened::bytes(row, &operands);
    u64::try_from(own.saturating_add(widened)).unwrap_or(u64::MAX)
}

/// What a kernel takes of its own; `None` where nothing or nothing is known.
fn kernel(workspace: Workspace, operands: &Operands<'_>) -> Option<u128> {
    use Workspace as W;
    match workspace {
        W::Operand(index) => Some(operands.input_bytes(index)),
        W::PerOperand { operand, bytes } => elements(operands, operand, u128::from(bytes)),
        W::PerResult(bytes) => result_elements(operands, u128::from(bytes)),
        W::Results { copies, from } if operands.input_count() >= from => results(operands, copies),
        W::WidenedResults(copies) if bits(operands.output(0)?)? == 16 => results(operands, copies),
        W::Mask if operands.result_slots() < 2 => result_elements(operands, 1),
        W::Conv => conv::conv(operands),
        W::ConvTranspose => conv::transposed(operands),
        W::ConvInteger => conv::integer(operands),
        W::QLinearConv => conv::quantized(operands),
        W::Einsum => einsum::einsum(operands),
        W::Where => moves::where_op(operands),
        W::Expand => moves::expand(operands),
        W::IndexTuples => moves::tuples(operands),
        W::Coordinates => elements(operands, 0, 8)?.checked_mul(u128::try_from(operands.input_shape(0)?.len()).ok()?),
        W::Resize => moves::resize(operands),
        W::GridSample => moves::grid_sample(operands),
        W::OffTheLastAxis => off_the_last_axis(operands),
        W::LocalNorm => moves::local_norm(operands),
        W::Scores => attention::standard(operands),
        W::ProjectedAttention => attention::projected(operands),
        W::Flash { bias } => attention::separate(operands, bias),
        W::Recurrent { gates } => attention::recurrent(operands, u128::from(gates)),
        _ => None,
    }
}

/// Result 0 so many times.
fn results(operands: &Operands<'_>, copies: u32) -> Option<u128> {
    Some(value_bytes(operands.output(0)?).saturating_mul(u128::from(copies)))
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

#[cfg(test)]
mod tests;
