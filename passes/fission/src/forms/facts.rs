//! What the forms of ops depend on, as far as each op itself says it.

use remat_ir::{Attribute, ElementType, Graph, Op, OpId, StorageClass, TensorId};
use remat_operators::{BLOCKED_DOMAIN, Blocked, operator};

/// A form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
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
pub(super) const BLOCKS: [Option<u64>; 3] = [None, Some(8), Some(16)];

/// Channels that kernels for blocks take as they are must be multiples of this number.
const ALIGNMENT: u64 = 4;

/// What the form of an op depends on, as far as the op itself says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(super) kind: Kind,
    /// Whether all operands are results of ops and have one shape.
    pub(super) is_alike: bool,
    /// Whether it has two operands, and whether these are images of one shape.
    pub(super) is_pair: bool,
    pub(super) is_pair_of_images: bool,
    /// By operand, of the first two: whether it is a constant with a number for each channel.
    pub(super) by_channel: [bool; 2],
    /// A convolution that something may become part of.
    pub(super) convolution: Option<Convolution>,
    /// The op of the graph before tiling that it is or is a part of.
    pub(super) of: Option<OpId>,
}

/// A convolution that nothing is part of yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convolution {
    pub(super) is_plain: bool,
    pub(super) has_bias: bool,
    pub(super) has_constant_weights: bool,
}

/// How an op is decided on; by entry of [`BLOCKS`] whether it fits blocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Convolution([bool; 3]),
    Pool {
        fits: [bool; 3],
        averages: bool,
        global: bool,
    },
    Sum {
        everywhere: bool,
    },
    Product,
    Normalization {
        is_known: bool,
    },
    Concat([bool; 3]),
    Resize(Form),
    Unary,
    Never,
}

impl Facts {
    /// Those of an op of a tiled graph, which is or is a part of op `of` before.
    pub(super) fn of(tiled: &Graph, op: &Op, of: Option<OpId>) -> Self {
        let reader = Reader {
            graph: tiled,
            op,
            blocked: blocked(op),
        };
        let dims = [0, 1].map(|place| reader.dims(place));
        let is_pair = op.inputs.len() == 2 && op.inputs.iter().all(Option::is_some);
        let is_made = |tensor: TensorId| tiled.tensors[tensor].producer.is_some();
        let has_shape = |tensor: TensorId| tiled.tensors[tensor].ty.known_shape() == dims[0];
        Self {
            kind: reader.kind(),
            is_alike: dims[0].is_some() && op.reads().all(|tensor| is_made(tensor) && has_shape(tensor)),
            is_pair,
            is_pair_of_images: is_pair && dims[0] == dims[1] && dims[0].as_ref().is_some_and(|dims| dims.len() == 4),
            by_channel: [0, 1].map(|place| reader.is_by_channel(place)),
            convolution: reader.convolution(),
            of,
        }
    }
}

/// What becomes of an op where images are laid out in blocks; ops that are in blocks already stay what they are.
pub(crate) fn blocked(op: &Op) -> Blocked {
    let row = operator(&op.domain, &op.op_type);
    let is_in_blocks = row.domain == BLOCKED_DOMAIN;
    match row.blocked {
        _ if is_in_blocks => Blocked::Never,
        Blocked::Pool { .. } | Blocked::Normalization if op.results().count() != 1 => Blocked::Never,
        blocked => blocked,
    }
}

/// Whether an op is a convolution that works on blocks on every machine that has them.
pub(crate) fn is_in_blocks(graph: &Graph, op: &Op) -> bool {
    let blocked = blocked(op);
    let reader = Reader { graph, op, blocked };
    blocked.is_convolution()
        && op.inputs.len() < 4
        && BLOCKS
            .into_iter()
            .flatten()
            .all(|block| reader.takes_blocks(Some(block)))
}

/// An op being read.
struct Reader<'a> {
    graph: &'a Graph,
    op: &'a Op,
    blocked: Blocked,
}

impl Reader<'_> {
    fn operand(&self, place: usize) -> Option<TensorId> {
        self.op.inputs.get(place).copied().flatten()
    }

    fn dims(&self, place: usize) -> Option<Vec<u64>> {
        self.graph.tensors[self.operand(place)?].ty.known_shape()
    }

    fn is_constant(&self, place: usize) -> bool {
        let operand = self.operand(place);
        operand.is_some_and(|tensor| {
            self.graph.storages[self.graph.tensors[tensor].storage].class == StorageClass::Constant
        })
    }

    fn kind(&self) -> Kind {
        let fits = |dims: &Option<Vec<u64>>| {
            let channels = dims.as_ref().and_then(|dims| dims.get(1).copied());
            BLOCKS.map(|block| {
                channels
                    .zip(block)
                    .is_some_and(|(channels, block)| channels.is_multiple_of(block))
            })
        };
        match self.blocked {
            Blocked::Convolution { .. } => Kind::Convolution(BLOCKS.map(|block| self.takes_blocks(block))),
            Blocked::Pool { averages, global } => Kind::Pool {
                fits: fits(&self.dims(0).filter(|dims| dims.len() == 4)),
                averages,
                global,
            },
            Blocked::Sum { everywhere } => Kind::Sum { everywhere },
            Blocked::Product => Kind::Product,
            Blocked::Normalization => Kind::Normalization {
                is_known: (1..5).all(|place| self.is_constant(place)),
            },
            Blocked::Concat => {
                let is_channels = self.op.attributes.get("axis").and_then(Attribute::as_int) == Some(1);
                let mut all = [is_channels; 3];
                for tensor in self.op.reads() {
                    let tensor = &self.graph.tensors[tensor];
                    let own = fits(&tensor.ty.known_shape().filter(|_| tensor.producer.is_some()));
                    all = [0, 1, 2].map(|block| all[block] && own[block]);
                }
                Kind::Concat(all)
            }
            Blocked::Resize { asymmetric } => self.resize(asymmetric).map_or(Kind::Never, Kind::Resize),
            Blocked::Unary => Kind::Unary,
            Blocked::Transpose | Blocked::FromBlocks | Blocked::Never => Kind::Never,
        }
    }

    /// The form of a resize of what is in blocks, where it stays in blocks.
    fn resize(&self, is_asymmetric: bool) -> Option<Form> {
        let text = |name: &str, default: &'static str| {
            let text = self.op.attributes.get(name).and_then(Attribute::as_str);
            text.unwrap_or(default).to_owned()
        };
        let by_default = if is_asymmetric { "asymmetric" } else { "half_pixel" };
        let coordinates = text("coordinate_transformation_mode", by_default);
        let has_scales = self.op.inputs.len() <= 3;
        match (text("mode", "nearest").as_str(), coordinates.as_str()) {
            ("linear", "half_pixel" | "asymmetric" | "align_corners") if has_scales => Some(Form::InBlocks),
            ("nearest", "asymmetric") if has_scales => Some(Form::Own),
            _ => None,
        }
    }

    /// Whether a convolution works on blocks.
    fn takes_blocks(&self, block: Option<u64>) -> bool {
        let (Some(block), Some(weights)) = (block, self.operand(1)) else {
            return false;
        };
        let is_float = self.graph.tensors[weights].ty.element() == Some(ElementType::Float32);
        let is_known = self.is_constant(1) && (self.operand(2).is_none() || self.is_constant(2));
        let dims = self.dims(1).filter(|dims| dims.len() == 4);
        let Some(dims) = dims.filter(|_| is_float && is_known) else {
            return false;
        };
        let group = self.op.attributes.get("group").and_then(Attribute::as_int).unwrap_or(1);
        let group = u64::try_from(group).unwrap_or(1).max(1);
        match (dims[0], dims[1]) {
            (_, inner) if group == 1 => inner < block || inner.is_multiple_of(ALIGNMENT),
            (outer, 1) if outer == group => outer.is_multiple_of(ALIGNMENT),
            (outer, inner) => inner.is_multiple_of(block) && (outer / group).is_multiple_of(block),
        }
    }

    fn convolution(&self) -> Option<Convolution> {
        let is_bare =
            self.blocked.is_convolution() && !self.op.attributes.contains_key("activation") && self.op.inputs.len() < 4;
        is_bare.then(|| Convolution {
            is_plain: self.blocked == Blocked::Convolution { fused: false },
            has_bias: self.operand(2).is_some(),
            has_constant_weights: self.is_constant(1),
        })
    }

    fn is_by_channel(&self, place: usize) -> bool {
        let dims = self.dims(place).unwrap_or_default();
        self.is_constant(place) && dims.len() >= 3 && dims.iter().filter(|&&dim| dim > 1).count() <= 1
    }
}
