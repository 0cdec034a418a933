//! What blocks of channels cost: where everything is optimized, the runtime keeps images in blocks of 8 or 16 channels, fills the last block
//! up, and copies what others read back to the usual layout. While it copies, both are there.

use remat_ir::{Graph, OpId, TensorId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::layout::{BLOCKED, CONVERTED, REORDERED};

/// A result that the runtime keeps in blocks of channels and copies back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Padding {
    /// The node that makes it, by the name that it has in the model where the runtime tells.
    pub node: String,
    /// Its operator.
    pub op_type: String,
    /// Its channels.
    pub channels: u64,
    /// Those that the runtime keeps.
    pub padded_channels: u64,
    /// What it takes in blocks, in bytes.
    pub blocked_bytes: u64,
    /// What the copy takes, in bytes: what it would take without blocks.
    pub copied_bytes: u64,
}

impl Padding {
    /// The largest one of a graph as the runtime laid it out, if it and its copy fill more than half of `peak` bytes.
    pub(crate) fn of(laid_out: &Graph, peak: u64) -> Option<Self> {
        let all = laid_out.ops.keys().filter_map(|op| Self::at(laid_out, op));
        let largest = all.max_by_key(Self::together)?;
        (largest.together() > peak / 2).then_some(largest)
    }

    /// Bytes while it is copied.
    fn together(&self) -> u64 {
        self.blocked_bytes.saturating_add(self.copied_bytes)
    }

    fn at(graph: &Graph, op: OpId) -> Option<Self> {
        let copy = &graph.ops[op];
        if copy.domain != BLOCKED || copy.op_type != REORDERED {
            return None;
        }
        let (read, made) = (copy.inputs.first().copied().flatten()?, copy.results().next()?);
        let bytes = |tensor: TensorId| graph.tensors[tensor].ty.bytes().ok().flatten();
        let channels = |tensor: TensorId| graph.tensors[tensor].ty.known_shape()?.get(1).copied();
        let maker = &graph.ops[graph.tensors[read].producer?];
        Some(Self {
            node: maker.name.strip_suffix(CONVERTED).unwrap_or(&maker.name).to_owned(),
            op_type: maker.op_type.clone(),
            channels: channels(made)?,
            padded_channels: channels(read)?,
            blocked_bytes: bytes(read)?,
            copied_bytes: bytes(made)?,
        })
    }
}
