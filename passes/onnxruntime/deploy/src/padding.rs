//! What blocks of channels cost: where everything is optimized, the runtime keeps images in blocks of 8 or 16 channels, fills the last block
//! up, and copies what others read back to the usual layout. While it copies, both are there.

use remat_ir::{Graph, OpId, TensorId};
use remat_operators::{Blocked, operator};
use schemars::JsonSchema;
use serde::Serialize;

/// A result that the runtime keeps in blocks of channels and copies back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Padding {
    /// The node that makes it, as the model has it.
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
    /// The largest one of a graph as the runtime laid it out, if it and its copy fill more than half of `peak` bytes; `nodes`: the model that it
    /// laid out.
    pub(crate) fn of(laid_out: &Graph, nodes: &Graph, peak: u64) -> Option<Self> {
        let all = laid_out.ops.keys().filter_map(|op| Self::at(laid_out, nodes, op));
        let largest = all.max_by_key(Self::together)?;
        (largest.together() > peak / 2).then_some(largest)
    }

    /// Bytes while it is copied.
    fn together(&self) -> u64 {
        self.blocked_bytes.saturating_add(self.copied_bytes)
    }

    fn at(graph: &Graph, nodes: &Graph, op: OpId) -> Option<Self> {
        let copy = &graph.ops[op];
        if operator(&copy.domain, &copy.op_type).blocked != Blocked::FromBlocks {
            return None;
        }
        let (read, made) = (copy.inputs.first().copied().flatten()?, copy.results().next()?);
        let bytes = |tensor: TensorId| graph.tensors[tensor].ty.bytes().ok().flatten();
        let channels = |tensor: TensorId| graph.tensors[tensor].ty.known_shape()?.get(1).copied();
        // The copy has the name that the value has in the model.
        let of = nodes
            .tensors
            .iter()
            .find(|tensor| tensor.name == graph.tensors[made].name);
        let maker = &nodes.ops[of?.producer?];
        Some(Self {
            node: maker.name.clone(),
            op_type: maker.op_type.clone(),
            channels: channels(made)?,
            padded_channels: channels(read)?,
            blocked_bytes: bytes(read)?,
            copied_bytes: bytes(made)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use remat_ir::{ElementType, GraphBuilder, OpSpec, ValueType};

    use remat_operators::BLOCKED_DOMAIN as BLOCKED;

    use super::*;

    const REORDERED: &str = "ReorderOutput";

    /// A head of 21 channels that is enlarged, as a model has it and as the runtime lays it out.
    fn head() -> [Graph; 2] {
        let image = |channels, side| ValueType::tensor(ElementType::Float32, &[1, channels, side, side]);
        let mut nodes = GraphBuilder::new("nodes");
        let x = nodes.input("x", image(21, 8)).unwrap();
        let made = nodes.op(OpSpec::new("enlarge", "Resize").reads(x).defines("y", image(21, 64)));
        nodes.output(made.unwrap().1[0].unwrap());
        let blocked = |name: &str, op_type: &str| {
            let mut spec = OpSpec::new(name, op_type);
            BLOCKED.clone_into(&mut spec.domain);
            spec
        };
        let mut laid_out = GraphBuilder::new("laid out");
        let x = laid_out.input("x_nchwc", image(32, 8)).unwrap();
        let made = laid_out.op(blocked("y_nchwc", "Upsample")
            .reads(x)
            .defines("y_nchwc", image(32, 64)));
        let made = made.unwrap().1[0].unwrap();
        let copied = laid_out.op(blocked("y_reordered", REORDERED)
            .reads(made)
            .defines("y", image(21, 64)));
        laid_out.output(copied.unwrap().1[0].unwrap());
        [nodes.finish(), laid_out.finish()]
    }

    #[test]
    fn a_padded_result_and_its_copy_are_named_by_the_node_of_the_model() {
        let [nodes, laid_out] = head();
        let bytes = |channels: u64| channels * 64 * 64 * 4;
        let expected = Padding {
            node: "enlarge".to_owned(),
            op_type: "Resize".to_owned(),
            channels: 21,
            padded_channels: 32,
            blocked_bytes: bytes(32),
            copied_bytes: bytes(21),
        };
        assert_eq!(Padding::of(&laid_out, &nodes, bytes(32 + 21)), Some(expected));
    }

    #[test]
    fn what_fills_less_than_half_of_the_memory_is_not_named() {
        let [nodes, laid_out] = head();
        assert_eq!(Padding::of(&laid_out, &nodes, 2 * (32 + 21) * 64 * 64 * 4), None);
        assert_eq!(Padding::of(&nodes, &nodes, 1), None);
    }
}
