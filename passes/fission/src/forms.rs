//! In which form ONNX Runtime computes an op, where forms have other bits.
//!
//! When it loads a model at `ENABLE_ALL` on x86, convolutions of constant weights work on blocks of 8 or 16 channels (NCHWc), and what follows
//! them stays in blocks where its kernel can. In blocks some ops are computed in another way, and an addition that follows a convolution may
//! become part of it: which sum is rounded first depends on what stands beside the op. A tile beside a `Slice` may so get another form than the
//! whole. The rules are those of `onnxruntime/core/optimizer/nchwc_transformer.cc` and `conv_add_act_fusion.cc` (1.31), held against the
//! graphs that the runtime writes.

use remat_ir::{Attribute, ElementType, Graph, Op, OpId, StorageClass, TensorId};
use remat_operators::{BLOCKED_DOMAIN, Blocked, operator};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// A form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The kernel of the op, whose bits do not depend on the layout.
    Own,
    /// A kernel for blocks of channels that rounds otherwise.
    InBlocks,
    /// A scale or an offset that became part of the weights of the convolution before it.
    InWeights,
    /// An addition that became part of the convolution that makes this operand: which of two sums begins with the other one.
    InConvolution(usize),
}

/// Channels in a block, by machine; `None`: no blocks.
const BLOCKS: [Option<u64>; 3] = [None, Some(8), Some(16)];

/// Channels that kernels for blocks take as they are must be multiples of this number.
const ALIGNMENT: u64 = 4;

/// The forms of the ops of a graph, to hold those of tiles against.
pub(crate) struct Forms<'g> {
    graph: &'g Graph,
    /// By entry of [`BLOCKS`]; empty where all ops have their own form.
    by_block: Vec<TiVec<OpId, Form>>,
    producers: FxHashMap<&'g str, OpId>,
}

impl<'g> Forms<'g> {
    pub(crate) fn of(graph: &'g Graph) -> Self {
        let is_origin = |op: &Op| matches!(blocked(op), Blocked::Convolution { .. } | Blocked::Pool { .. });
        if !graph.ops.iter().any(is_origin) {
            return Self {
                graph,
                by_block: Vec::new(),
                producers: FxHashMap::default(),
            };
        }
        let made = graph.tensors.iter();
        Self {
            graph,
            by_block: BLOCKS.iter().map(|&block| forms(graph, block)).collect(),
            producers: made
                .filter_map(|tensor| Some((tensor.name.as_str(), tensor.producer?)))
                .collect(),
        }
    }

    /// The first op of `tiled` that has another form than the op that it is a part of.
    pub(crate) fn differing(&self, tiled: &Graph) -> Option<OpId> {
        let pairs = BLOCKS.iter().zip(&self.by_block);
        let mut first = None;
        for (&block, whole) in pairs {
            let own = forms(tiled, block);
            let differs = |&id: &OpId| {
                let op = &tiled.ops[id];
                self.original(tiled, op).is_some_and(|of| whole[of] != own[id])
            };
            first = first.into_iter().chain(tiled.ops.keys().find(differs)).min();
        }
        first
    }

    /// The op that `op` of a tiled graph is a part of; `None` for those that fission added.
    fn original(&self, tiled: &Graph, op: &Op) -> Option<OpId> {
        let (place, result) = op
            .outputs
            .iter()
            .enumerate()
            .find_map(|(place, &result)| Some((place, result?)))?;
        let name = match op.parts.get(place) {
            Some(Some(part)) => part.of.as_str(),
            _ => tiled.tensors[result].name.as_str(),
        };
        let original = *self.producers.get(name)?;
        let of = &self.graph.ops[original];
        (of.op_type == op.op_type && of.domain == op.domain && of.source == op.source).then_some(original)
    }
}

/// What becomes of an op where images are laid out in blocks; ops that are in blocks already stay what they are.
fn blocked(op: &Op) -> Blocked {
    let row = operator(&op.domain, &op.op_type);
    let is_in_blocks = row.domain == BLOCKED_DOMAIN;
    match row.blocked {
        _ if is_in_blocks => Blocked::Never,
        Blocked::Pool { .. } | Blocked::Normalization if op.results().count() != 1 => Blocked::Never,
        blocked => blocked,
    }
}

/// A graph being walked in order.
struct Walk<'g> {
    graph: &'g Graph,
    block: Option<u64>,
    /// By tensor: how often it is read, graph outputs included.
    uses: TiVec<TensorId, u32>,
    /// By tensor: whether it exists in blocks.
    in_blocks: TiVec<TensorId, bool>,
}

fn forms(graph: &Graph, block: Option<u64>) -> TiVec<OpId, Form> {
    let mut uses: TiVec<TensorId, u32> = TiVec::from(vec![0; graph.tensors.len()]);
    let reads = graph.ops.iter().flat_map(Op::reads);
    for tensor in reads.chain(graph.outputs.iter().copied()) {
        uses[tensor] += 1;
    }
    let mut walk = Walk {
        graph,
        block,
        uses,
        in_blocks: TiVec::from(vec![false; graph.tensors.len()]),
    };
    graph.ops.iter().map(|op| walk.form(op)).collect()
}

impl<'g> Walk<'g> {
    fn dims(&self, tensor: Option<TensorId>) -> Option<Vec<u64>> {
        self.graph.tensors[tensor?].ty.known_shape()
    }

    fn is_constant(&self, tensor: TensorId) -> bool {
        self.graph.storages[self.graph.tensors[tensor].storage].class == StorageClass::Constant
    }

    fn operand(op: &Op, place: usize) -> Option<TensorId> {
        op.inputs.get(place).copied().flatten()
    }

    /// The form of the next op in order; notes whether its result is in blocks.
    fn form(&mut self, op: &'g Op) -> Form {
        let (form, is_in_blocks) = self.decide(op);
        if let Some(result) = op.results().next() {
            self.in_blocks[result] = is_in_blocks;
        }
        form
    }

    fn decide(&self, op: &Op) -> (Form, bool) {
        let reads_blocks = |place: usize| Self::operand(op, place).is_some_and(|tensor| self.in_blocks[tensor]);
        match blocked(op) {
            Blocked::Convolution { .. } => {
                let blocked = self.takes_blocks(op);
                (if blocked { Form::InBlocks } else { Form::Own }, blocked)
            }
            Blocked::Pool { averages, .. } => {
                let channels = self.dims(Self::operand(op, 0)).filter(|dims| dims.len() == 4);
                let fits = channels
                    .zip(self.block)
                    .is_some_and(|(dims, block)| dims.get(1).is_some_and(|channels| channels.is_multiple_of(block)));
                (if fits && averages { Form::InBlocks } else { Form::Own }, fits)
            }
            Blocked::Sum { everywhere } => {
                let stays = self.all_in_blocks(op);
                let form = match self.summed(op, stays, everywhere) {
                    Some(place) => Form::InConvolution(place),
                    None if self.is_folded(op) => Form::InWeights,
                    None => Form::Own,
                };
                (form, stays)
            }
            Blocked::Product if self.is_folded(op) => (Form::InWeights, reads_blocks(0) || reads_blocks(1)),
            Blocked::Product => (Form::Own, self.all_in_blocks(op)),
            Blocked::Normalization => {
                let is_known =
                    (1..5).all(|place| Self::operand(op, place).is_some_and(|tensor| self.is_constant(tensor)));
                let blocked = reads_blocks(0) && is_known;
                let before = Self::operand(op, 0).and_then(|tensor| self.lone_conv(tensor));
                match before {
                    Some(_) if is_known => (Form::InWeights, blocked),
                    _ if blocked => (Form::InBlocks, true),
                    _ => (Form::Own, false),
                }
            }
            Blocked::Concat => {
                let is_channels = op.attributes.get("axis").and_then(Attribute::as_int) == Some(1);
                let fits = |tensor: TensorId| {
                    let dims = self.dims(Some(tensor));
                    let fits = dims.zip(self.block).is_some_and(|(dims, block)| {
                        dims.get(1).is_some_and(|channels| channels.is_multiple_of(block))
                    });
                    self.in_blocks[tensor] && fits
                };
                (Form::Own, is_channels && op.reads().all(fits))
            }
            Blocked::Resize { asymmetric } => self.resize(op, asymmetric, reads_blocks(0)),
            Blocked::Unary => (Form::Own, reads_blocks(0)),
            Blocked::Transpose | Blocked::FromBlocks | Blocked::Never => (Form::Own, false),
        }
    }

    fn resize(&self, op: &Op, is_asymmetric: bool, reads_blocks: bool) -> (Form, bool) {
        let text = |name: &str, default: &'static str| {
            let text = op.attributes.get(name).and_then(Attribute::as_str);
            text.unwrap_or(default).to_owned()
        };
        let by_default = if is_asymmetric { "asymmetric" } else { "half_pixel" };
        let coordinates = text("coordinate_transformation_mode", by_default);
        let has_scales = op.inputs.len() <= 3;
        match (text("mode", "nearest").as_str(), coordinates.as_str()) {
            ("linear", "half_pixel" | "asymmetric" | "align_corners") if reads_blocks && has_scales => {
                (Form::InBlocks, true)
            }
            ("nearest", "asymmetric") if reads_blocks && has_scales => (Form::Own, true),
            _ => (Form::Own, false),
        }
    }

    /// Whether a convolution works on blocks.
    fn takes_blocks(&self, op: &Op) -> bool {
        let Some(block) = self.block else {
            return false;
        };
        let (Some(weights), bias) = (Self::operand(op, 1), Self::operand(op, 2)) else {
            return false;
        };
        let is_float = self.graph.tensors[weights].ty.element() == Some(ElementType::Float32);
        let is_known = self.is_constant(weights) && bias.is_none_or(|bias| self.is_constant(bias));
        let dims = self.dims(Some(weights)).filter(|dims| dims.len() == 4);
        let Some(dims) = dims.filter(|_| is_float && is_known) else {
            return false;
        };
        let group = op.attributes.get("group").and_then(Attribute::as_int).unwrap_or(1);
        let group = u64::try_from(group).unwrap_or(1).max(1);
        match (dims[0], dims[1]) {
            (_, inner) if group == 1 => inner < block || inner.is_multiple_of(ALIGNMENT),
            (outer, 1) if outer == group => outer.is_multiple_of(ALIGNMENT),
            (outer, inner) => inner.is_multiple_of(block) && (outer / group).is_multiple_of(block),
        }
    }

    /// Whether all operands are in blocks and of one shape.
    fn all_in_blocks(&self, op: &Op) -> bool {
        let first = self.dims(Self::operand(op, 0));
        first.is_some()
            && op
                .reads()
                .all(|tensor| self.in_blocks[tensor] && self.dims(Some(tensor)) == first)
    }

    /// The convolution that makes a tensor, if only one op reads it and nothing else is part of it.
    fn lone_conv(&self, tensor: TensorId) -> Option<&'g Op> {
        let producer = self.graph.tensors[tensor].producer?;
        let op = &self.graph.ops[producer];
        let is_bare = blocked(op).is_convolution() && !op.attributes.contains_key("activation") && op.inputs.len() < 4;
        (is_bare && self.uses[tensor] == 1).then_some(op)
    }

    /// The operand whose convolution an addition of two tensors of one shape becomes part of: in blocks the first one that is made by such a
    /// convolution, else the one that is made first.
    fn summed(&self, op: &Op, stays: bool, everywhere: bool) -> Option<usize> {
        let [Some(left), Some(right)] = [0, 1].map(|place| Self::operand(op, place)) else {
            return None;
        };
        let dims = [left, right].map(|operand| self.dims(Some(operand)));
        let is_one_shape = dims[0] == dims[1] && dims[0].as_ref().is_some_and(|dims| dims.len() == 4);
        if op.inputs.len() != 2 || !is_one_shape {
            return None;
        }
        let sums = |tensor: TensorId| match self.lone_conv(tensor) {
            Some(_) if self.in_blocks[tensor] => stays,
            Some(conv) => {
                let is_plain = blocked(conv) == Blocked::Convolution { fused: false };
                everywhere && is_plain && Self::operand(conv, 2).is_some()
            }
            None => false,
        };
        let places = [left, right]
            .into_iter()
            .enumerate()
            .filter(|&(_, tensor)| sums(tensor));
        let made = |tensor: TensorId| self.graph.tensors[tensor].producer;
        let (place, _) = places.min_by_key(|&(place, tensor)| (made(tensor).filter(|_| !stays), place))?;
        Some(place)
    }

    /// Whether a constant number by channel becomes part of the weights or the bias of the convolution before.
    fn is_folded(&self, op: &Op) -> bool {
        let [Some(left), Some(right)] = [0, 1].map(|place| Self::operand(op, place)) else {
            return false;
        };
        let by_channel = |tensor: TensorId| {
            let dims = self.dims(Some(tensor)).unwrap_or_default();
            self.is_constant(tensor) && dims.len() >= 3 && dims.iter().filter(|&&dim| dim > 1).count() <= 1
        };
        let folds = |conv: TensorId, other: TensorId| {
            let conv = self.lone_conv(conv);
            let has_weights = conv.and_then(|conv| Self::operand(conv, 1));
            has_weights.is_some_and(|weights| self.is_constant(weights)) && by_channel(other)
        };
        op.inputs.len() == 2 && (folds(left, right) || folds(right, left))
    }
}
