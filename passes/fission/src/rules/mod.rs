//! Splitting rules: from rows of a result to rows of operands.
//!
//! [`split`] asks the operator's row for its family ([`remat_operators::Split`]); each family is one function, grouped by file. A rule answers
//! for rows `lo..hi` of one axis of the result and names, for each operand, all of it or the rows of one axis that the kernel needs; attributes
//! and integer operands of the clone that differ from the original's; and the rows that its kernel computes beyond those asked for.
//!
//! Where a dimension may have another size in another run ([`remat_ir::Dim::Free`]), a rule answers only what is right for all of them: such an axis is
//! not cut, and no constant or attribute of a clone depends on it.
//!
//! A kernel that gets exactly these operands computes exactly the rows: more rows would shift its window. Where an axis can be cut only at
//! multiples of a number, the error says of which.

mod blocks;
mod cut;
mod einsum;
mod elementwise;
mod error;
mod loops;
mod movement;
mod normalize;
mod product;
mod reshape;
mod resize;
mod site;
mod window;

use std::ops::Range;

use remat_ir::{Graph, OpId, TensorId};
use remat_operators::{Split, operator};

pub use self::cut::{Cut, Integers, Need};
pub(crate) use self::einsum::terms;
pub use self::error::{NotSplit, Reason};
pub(crate) use self::normalize::{operand_axis, reduced_axes, softened_axes};
pub(crate) use self::site::Site;

/// What op `op` needs to compute `rows` of axis `axis` of its results.
///
/// # Errors
/// [`NotSplit`], which names the op and says why.
pub fn split(graph: &Graph, op: OpId, axis: usize, rows: Range<u64>) -> Result<Cut, NotSplit> {
    let entry = &graph.ops[op];
    rule(graph, op, axis, rows).map_err(|reason| NotSplit {
        op: entry.name.clone(),
        op_type: entry.op_type.clone(),
        axis,
        reason,
    })
}

fn rule(graph: &Graph, op: OpId, axis: usize, rows: Range<u64>) -> Result<Cut, Reason> {
    let entry = &graph.ops[op];
    let family = operator(&entry.domain, &entry.op_type).split;
    if matches!(family, Split::Never | Split::CombineAlong) {
        return Err(Reason::NoRule);
    }
    let site = Site::new(graph, entry, axis, rows)?;
    let several = matches!(
        family,
        Split::Divide
            | Split::AcrossAxis
            | Split::Softmax
            | Split::LogSoftmax
            | Split::Ranked
            | Split::LayerNorm
            | Split::RootNorm
            | Split::SkipLayerNorm
    );
    if !several && entry.results().count() != 1 {
        return Err(Reason::Results);
    }
    let cut = match family {
        Split::Never | Split::CombineAlong => Err(Reason::NoRule),
        Split::Elementwise | Split::ElementwiseInVectors => elementwise::broadcast(&site),
        Split::Quantize => elementwise::quantize(&site),
        Split::Conv => window::conv(&site, &window::FLOATS),
        Split::ConvInteger => window::conv(&site, &window::INTEGERS),
        Split::QLinearConv => window::conv(&site, &window::SCALED),
        Split::ConvTranspose => window::conv_transpose(&site),
        Split::Window => window::pool(&site),
        Split::PerChannel => normalize::per_channel(&site),
        Split::PerImage => normalize::per_image(&site),
        Split::ChannelScale => normalize::channel_scale(&site),
        Split::ByChannel => normalize::by_channel(&site),
        Split::Resize => resize::resize(&site),
        Split::MatMul => product::matmul(&site),
        Split::Gemm => product::gemm(&site),
        Split::QuantizedMatMul(operands) => product::quantized(&site, &operands),
        Split::Einsum => einsum::einsum(&site),
        Split::AcrossAxis | Split::Softmax | Split::LogSoftmax | Split::Ranked => normalize::softmax(&site),
        Split::Soften => normalize::soften(&site),
        Split::LayerNorm | Split::RootNorm => normalize::layer_norm(&site),
        Split::SkipLayerNorm => normalize::skip_layer_norm(&site),
        Split::GroupNorm => normalize::group_norm(&site),
        Split::Sum | Split::Maximum => normalize::reduce(&site),
        Split::Position { .. } => normalize::position(&site),
        Split::Cumulate => normalize::cumulate(&site),
        Split::Concat => movement::concat(&site),
        Split::QLinearConcat => movement::quantized_concat(&site),
        Split::Divide => movement::divide(&site),
        Split::Slice => movement::slice(&site),
        Split::Pad => movement::pad(&site),
        Split::Expand => movement::expand(&site),
        Split::Tile => movement::tile(&site),
        Split::DepthToSpace => blocks::depth_to_space(&site),
        Split::SpaceToDepth => blocks::space_to_depth(&site),
        Split::Transpose => movement::transpose(&site),
        Split::Reshape => reshape::reshape(&site),
        Split::Gather => movement::gather(&site),
        Split::GatherTuples => movement::gather_tuples(&site),
        Split::Elements => movement::elements(&site),
        Split::Loops => loops::loops(&site),
        Split::PadByAttributes => loops::pad(&site),
    }?;
    let is_free = |(operand, need): (&Option<TensorId>, &Need)| match (operand, need) {
        (Some(operand), &Need::Rows { axis, .. }) => graph.tensors[*operand].ty.is_free(axis),
        _ => false,
    };
    if entry.inputs.iter().zip(&cut.needs).any(is_free) {
        return Err(Reason::Free);
    }
    Ok(cut)
}
