//! Splitting rules: from rows of a result to rows of operands.
//!
//! [`split`] asks the operator's row for its family ([`remat_operators::Split`]); each family is one function, grouped by file. A rule answers
//! for rows `lo..hi` of one axis of the result and names, for each operand, all of it or the rows of one axis that the kernel needs; attributes
//! and integer operands of the clone that differ from the original's; and the rows that its kernel computes beyond those asked for.
//!
//! A kernel that gets exactly these operands computes exactly the rows: more rows would shift its window. Where an axis can be cut only at
//! multiples of a number, the error says of which.

mod elementwise;
mod movement;
mod normalize;
mod product;
mod reshape;
mod resize;
mod site;
mod window;

use std::collections::BTreeMap;
use std::ops::Range;

use remat_files::shown;
use remat_ir::{Attribute, Graph, OpId};
use remat_operators::{Split, operator};
use thiserror::Error;

pub(crate) use self::normalize::{operand_axis, reduced_axes};
pub(crate) use self::site::Site;

/// What a part of a result needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cut {
    /// By operand.
    pub needs: Vec<Need>,
    /// Attributes of the clone that differ from the original's.
    pub attributes: BTreeMap<String, Attribute>,
    /// Operands of the clone that are new constants.
    pub integers: BTreeMap<usize, Integers>,
    /// Rows of the clone's result before and after those asked for; 0 for most.
    pub spare: (u64, u64),
}

/// What a clone reads of an operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// All of it.
    Whole,
    /// Rows of one axis.
    Rows {
        /// The axis of the operand.
        axis: usize,
        /// The rows.
        rows: Range<u64>,
    },
}

/// A new constant of 64-bit integers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Integers {
    /// Its dimensions.
    pub dims: Vec<u64>,
    /// Its elements in row-major order.
    pub elements: Vec<i64>,
}

impl Integers {
    /// A list of integers.
    #[must_use]
    pub fn list(elements: Vec<i64>) -> Self {
        Self {
            dims: vec![elements.len() as u64],
            elements,
        }
    }
}

/// Why an op cannot compute a part of its result.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{op}` ({op_type}) cannot be split along axis {axis}: {reason}", op = shown(.op), op_type = shown(.op_type))]
pub struct NotSplit {
    /// The op.
    pub op: String,
    /// What it computes.
    pub op_type: String,
    /// The axis of the result.
    pub axis: usize,
    /// The reason.
    pub reason: Reason,
}

/// What is in the way.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Reason {
    /// Nobody stated a rule.
    #[error("there is no rule for this operator")]
    NoRule,
    /// A shape is not known.
    #[error("its shapes are not known")]
    Shapes,
    /// The op has results that a part does not give.
    #[error("it has more than one result")]
    Results,
    /// Every row of the result depends on all rows of an operand.
    #[error("the rows depend on each other")]
    Dependent,
    /// An integer operand is computed in the run, or its elements are not known.
    #[error("bounds, axes, shapes or indices are no known constants")]
    Computed,
    /// An attribute has a value that no rule covers.
    #[error("attribute `{0}` has a value without a rule")]
    Attribute(&'static str),
    /// The rows asked for lie in the padding altogether.
    #[error("a tile would lie in the padding")]
    Padding,
    /// Rows can be cut at multiples of this number only.
    #[error("it can be cut at multiples of {0} only")]
    Multiple(u64),
}

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
    if family == Split::Never {
        return Err(Reason::NoRule);
    }
    let site = Site::new(graph, entry, axis, rows)?;
    let several = matches!(family, Split::Divide | Split::LayerNorm | Split::SkipLayerNorm);
    if !several && entry.results().count() != 1 {
        return Err(Reason::Results);
    }
    match family {
        Split::Never => Err(Reason::NoRule),
        Split::Elementwise | Split::ElementwiseInVectors => elementwise::broadcast(&site),
        Split::Quantize => elementwise::quantize(&site),
        Split::Conv => window::conv(&site),
        Split::ConvTranspose => window::conv_transpose(&site),
        Split::Window => window::pool(&site),
        Split::PerChannel => normalize::per_channel(&site),
        Split::PerImage => normalize::per_image(&site),
        Split::ChannelScale => normalize::channel_scale(&site),
        Split::Resize => resize::resize(&site),
        Split::MatMul => product::matmul(&site),
        Split::Gemm => product::gemm(&site),
        Split::Softmax => normalize::softmax(&site),
        Split::LayerNorm => normalize::layer_norm(&site),
        Split::SkipLayerNorm => normalize::skip_layer_norm(&site),
        Split::Sum | Split::Maximum => normalize::reduce(&site),
        Split::Concat => movement::concat(&site),
        Split::Divide => movement::divide(&site),
        Split::Slice => movement::slice(&site),
        Split::Pad => movement::pad(&site),
        Split::Transpose => movement::transpose(&site),
        Split::Reshape => reshape::reshape(&site),
        Split::Gather => movement::gather(&site),
        Split::GatherTuples => movement::gather_tuples(&site),
    }
}
