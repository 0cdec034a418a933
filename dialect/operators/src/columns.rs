//! The kinds of facts that a row states.

use remat_ir::ElementType;

/// What running an operator does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: equal operands give equal bits.
    Pure,
    /// Draws random numbers. An operator with a `seed` does, too: a kernel seeds its generator when the session is created and
    /// advances it with every run.
    Random,
    /// Draws random numbers where it trains, which version, attributes and operands say.
    RandomInTraining,
    /// Updates an operand, communicates, or hides what it does.
    Stateful,
    /// Updates an operand where it trains, which version, attributes and results say.
    StatefulInTraining,
    /// Runs subgraphs.
    ControlFlow,
    /// The operation declares it itself, as MLIR's do; where it does not, it counts as stateful.
    Declared,
    /// The operation declares it itself; where it does not, nothing.
    DeclaredOrPure,
}

/// Which result is the memory of an operand, whatever the sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// None.
    Nothing,
    /// Result 0 is operand 0 under another shape, where it is a dense tensor.
    View,
    /// Every result is the operand of its number.
    EachView,
    /// Result 0 is operand 0 put into a container or taken out of it.
    Wrapper,
}

/// The operands that a run writes to in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updates {
    /// None.
    Nothing,
    /// Those at the first places; the results at the second ones are their memory.
    Operands(&'static [(usize, usize)]),
    /// Those from this place on.
    From(usize),
}

impl Updates {
    /// Whether the operand at this place is one of them.
    #[must_use]
    pub fn includes(self, place: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Operands(places) => places.iter().any(|&(operand, _)| operand == place),
            Self::From(first) => place >= first,
        }
    }

    /// The operand whose memory the result at this place is.
    #[must_use]
    pub fn operand_of(self, result: usize) -> Option<usize> {
        let Self::Operands(places) = self else { return None };
        let found = places.iter().find(|&&(_, made)| made == result);
        found.map(|&(operand, _)| operand)
    }
}

/// What ONNX Runtime makes of an operator where it lays images out in blocks of channels (`com.microsoft.nchwc`), at level ALL. In blocks some kernels
/// round otherwise, and an addition may become part of a convolution. Source: ONNX Runtime, `core/optimizer/nchwc_transformer.cc` and
/// `conv_add_act_fusion.cc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// It is never in blocks.
    Never,
    /// A convolution, in blocks where its weights are constant.
    Convolution {
        /// Whether the runtime made it of a convolution and what followed that.
        fused: bool,
    },
    /// A pool, in blocks where the channels of its operand fill them.
    Pool {
        /// Whether it is one over all of the image.
        global: bool,
        /// Whether it gives averages, which are rounded otherwise in blocks.
        averages: bool,
    },
    /// An addition: part of a convolution that makes an operand, where that is in blocks.
    Sum {
        /// Whether it is that outside of blocks, too.
        everywhere: bool,
    },
    /// A product, in blocks where its operands are of one shape; with a number for each channel part of the weights of a convolution.
    Product,
    /// A normalization by numbers for each channel, which become part of the weights of a convolution.
    Normalization,
    /// Its operands beside each other, in blocks where they are and fill them.
    Concat,
    /// An image at another size, in blocks where its operand is.
    Resize {
        /// Whether corners coincide where no attribute says otherwise.
        asymmetric: bool,
    },
    /// Each element by itself, in blocks where its operand is.
    Unary,
    /// Dimensions in another order: it may be part of a copy from or to blocks.
    Transpose,
    /// A copy from blocks.
    FromBlocks,
}

impl Blocked {
    /// Whether it is a convolution.
    #[must_use]
    pub fn is_convolution(self) -> bool {
        matches!(self, Self::Convolution { .. })
    }

    /// Whether it is an addition that may become part of a convolution.
    #[must_use]
    pub fn is_sum(self) -> bool {
        matches!(self, Self::Sum { .. })
    }

    /// What must be known of its operands when a model is loaded, so that it is in blocks.
    #[must_use]
    pub fn decided_by(self) -> Option<DecidedBy> {
        match self {
            Self::Sum { .. } | Self::Product => Some(DecidedBy::EqualShapes),
            Self::Pool { .. } => Some(DecidedBy::Channels),
            Self::Resize { asymmetric: false } => Some(DecidedBy::Shape),
            _ => None,
        }
    }

    /// Whether it reads blocks and is never fused into what makes them.
    #[must_use]
    pub fn is_never_fused(self) -> bool {
        matches!(
            self,
            Self::Convolution { .. } | Self::Pool { global: false, .. } | Self::Resize { asymmetric: false }
        )
    }
}

/// What must be known of the operands of an operator, so that it is in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DecidedBy {
    /// All extents.
    Shape,
    /// That their shapes are equal: extents of one name are, too.
    EqualShapes,
    /// Channels; other extents need not be known.
    Channels,
}

/// How results over parts of what an operator sums up are put together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// They are not: it sums nothing up, or nothing is known.
    Never,
    /// Added.
    Sum,
    /// Added, each weighted by its share of the elements.
    Mean,
    /// The largest of them: no bit differs.
    Maximum,
    /// The smallest of them: no bit differs.
    Minimum,
    /// Means, and sums of the squares of what differs from them, as Chan, Golub and LeVeque put them together (Algorithms for Computing the
    /// Sample Variance, 1983, equation 2.1).
    Moments,
    /// Maxima, and sums of exponentials of what differs from them, as Milakov and Gimelshein put them together (Online normalizer calculation for
    /// softmax, 2018, equation 4).
    Exponentials,
    /// The best of them, with their places: no bit differs.
    Best,
}

/// Another operator whose result has the shape of the row's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StandIn {
    /// Its name, in ONNX's default domain.
    pub name: &'static str,
    /// The operands that it gets.
    pub operands: &'static [usize],
    /// The element type of the result.
    pub element: Element,
}

/// The type of one result that follows from operands directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// Another column or a rule of shape inference says it.
    Other,
    /// That of an operand.
    Like(usize),
    /// The shape of an operand, of elements of this type.
    LikeOf(usize, ElementType),
    /// A vector as long as the first dimension of an operand, of elements of its type.
    Leading(usize),
    /// The shape that operand `shape` lists, of elements of the type of operand `element`.
    Listed {
        /// The list of extents.
        shape: usize,
        /// The operand of the element type.
        element: usize,
    },
    /// A truth value, as a vector of one element.
    Flag,
}

/// Element type of a result whose shape a [`StandIn`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// That of the operator that stands in.
    Same,
    /// This one.
    Is(ElementType),
    /// That of an operand; the other one where the operand is left out.
    OfOperand(usize, ElementType),
}

/// How the work of an operator is counted; `remat-cost` has the formulas, `docs/cost-model.md` their reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Formula {
    /// Looks at shapes only.
    Metadata,
    /// Moves bytes.
    Move(Movement),
    /// Picks single elements.
    GatherElements,
    /// Copies operand 0, then overwrites what the indices name.
    Scatter,
    /// The same; the last axis of the indices is a position.
    ScatterTuples,
    /// Cheap operations per element of the result.
    Elementwise(u32),
    /// Costly functions per element of the result, in operations.
    Transcendental(u32),
    /// Chooses between two operands, element by element.
    Select,
    /// One operation per element of the result and operand but the first.
    Variadic,
    /// Operations per element of operand 0, which shrinks.
    Reduce(u32),
    /// Operations per element of operand 0, which keeps its shape.
    Normalization(u32),
    /// Operations per element of operand 0.
    Softmax(u32),
    /// Sorts operand 0.
    Sort,
    /// One operation per element of the window `kernel_shape` and of the result: a maximum.
    Pool,
    /// The same for a mean.
    AveragePool,
    /// One operation per element of operand 0.
    GlobalPool,
    /// Normalization over `size` neighbouring channels.
    LocalNorm,
    /// Convolution of operand 0 with the weights.
    Conv {
        /// Operand that holds them.
        weight: usize,
    },
    /// Transposed convolution of operand 0 with the weights.
    ConvTranspose {
        /// Operand that holds them.
        weight: usize,
    },
    /// Convolution whose weights have the output channels innermost.
    ConvLastOutput {
        /// Operand that holds them.
        weight: usize,
    },
    /// Convolution of every channel by itself; the weights have the kernel outermost.
    Depthwise {
        /// Operand that holds them.
        weight: usize,
    },
    /// Transposed convolution whose weights have the input channels innermost.
    TransposedLastChannels {
        /// Operand that holds them.
        weight: usize,
    },
    /// Matrix product; operand 0 has the inner dimension last.
    MatMul,
    /// Matrix product; the attribute `lhs_contracting_dimensions` lists the inner dimensions of operand 0.
    DotGeneral,
    /// Matrix product with transposes and an addition.
    Gemm,
    /// Product and sum over index letters.
    Einsum,
    /// Attention in one kernel.
    Attention(AttentionLayout),
    /// Recurrent network over a sequence.
    Recurrent {
        /// Operands that hold the weights of inputs and of states.
        weights: [usize; 2],
    },
    /// As many operations as the attribute `operations` says, of the class that `loops` names.
    Stated,
    /// Nothing is known but the bytes.
    Bytes,
}

impl Formula {
    /// Whether it is a convolution of some kind.
    #[must_use]
    pub fn is_convolution(self) -> bool {
        matches!(
            self,
            Self::Conv { .. }
                | Self::ConvTranspose { .. }
                | Self::ConvLastOutput { .. }
                | Self::Depthwise { .. }
                | Self::TransposedLastChannels { .. }
        )
    }
}

/// How bytes are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Movement {
    /// In long runs.
    Copy,
    /// With strides.
    Transpose,
    /// From computed positions along an axis.
    Gather,
    /// From computed positions; the last axis of the indices is a position.
    GatherTuples,
    /// One element into many.
    Broadcast,
}

/// Which operands of an attention hold what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttentionLayout {
    /// Q, K, V are operands 0, 1, 2 (K and V may be packed into Q); `past` holds earlier keys.
    Separate {
        /// Operand with the keys of earlier steps, `B x heads x past x H`.
        past: usize,
    },
    /// Operand 0 is projected by the weights of operand 1 to Q, K and V at once; `past` holds earlier keys and values.
    Projected {
        /// Operand with keys and values of earlier steps, `2 x B x heads x past x H`.
        past: usize,
    },
}

/// What a kernel takes on top of operands and results while it runs; `remat-cost` has the formulas. ONNX Runtime's kernels on a CPU,
/// and for `tosa` what its lowering in MLIR allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workspace {
    /// Nothing, or nothing is known.
    Nothing,
    /// As much as an operand.
    Operand(usize),
    /// So many bytes per element of an operand.
    PerOperand {
        /// The operand.
        operand: usize,
        /// Bytes per element.
        bytes: u32,
    },
    /// So many bytes per element of result 0.
    PerResult(u32),
    /// Result 0 so many times.
    Results {
        /// How many times.
        copies: u32,
        /// With fewer operands than this: nothing.
        from: usize,
    },
    /// Result 0 so many times, in half precision only.
    WidenedResults(u32),
    /// One byte per element of result 0, unless the node has a second result.
    Mask,
    /// Of a convolution that unfolds the image.
    Conv,
    /// Of a transposed convolution.
    ConvTranspose,
    /// Of a convolution of bytes.
    ConvInteger,
    /// Of a quantized convolution.
    QLinearConv,
    /// Operands and result arranged for a matrix product.
    Einsum,
    /// Both branches, blended.
    Where,
    /// An offset per segment that is copied.
    Expand,
    /// An offset per index tuple.
    IndexTuples,
    /// The coordinates of each element of operand 0.
    Coordinates,
    /// Coefficients of an interpolation.
    Resize,
    /// Sampling points of one image.
    GridSample,
    /// Transposed copies, where `axis` is not the last.
    OffTheLastAxis,
    /// Squares of neighbouring channels.
    LocalNorm,
    /// The scores of an attention over separate Q, K, V.
    Scores,
    /// The same and the projection.
    ProjectedAttention,
    /// Queries, keys and values with heads apart, and one block of flash attention.
    Flash {
        /// Operand that is added to queries, keys and values.
        bias: Option<usize>,
    },
    /// States and gates of all steps.
    Recurrent {
        /// Gates of a cell.
        gates: u32,
    },
    /// `tosa`: the image with its margins.
    Padded,
    /// `tosa`: the same, and the result before the bias is added.
    PaddedAndResult,
    /// `tosa`: the image with its margins and the window.
    PaddedAndWindow,
    /// `tosa`: the same or the sums, whichever is larger.
    PaddedAndWindowOrSums,
    /// `tosa`: one element of operand 0 per element of result 0.
    Extremes,
}

/// How a kernel of ONNX Runtime on a CPU computes in half precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// In single precision between two casts, unless [`Operator::takes_half`](crate::Operator::takes_half) follows from its formula.
    Widened,
    /// The same, and the result is written over the widened operand.
    WidenedInPlace,
    /// As it is.
    Native,
}

/// Where a matrix product in integers has its operands; scales and zero points are single numbers, or one each by row or column of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProductOperands {
    /// The matrices.
    pub factors: [usize; 2],
    /// One number, or one by row.
    pub by_row: &'static [usize],
    /// What broadcasts to the result from its columns on.
    pub by_column: &'static [usize],
    /// Whether the scale of the left matrix follows from all of it.
    pub scales_itself: bool,
}

/// How the result of an operator can be computed part by part; `remat-fission` has the rules, from the rows of a result along an axis to
/// the rows of the operands. An operator with several results has the same rows of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// Not at all, or nothing is known.
    Never,
    /// Along every axis; axes of operands count from the last one.
    Elementwise,
    /// The same, but ONNX Runtime's kernel computes the elements that fill no vector in another way: the bits of an element depend on where
    /// it stands in its tensor.
    ElementwiseInVectors,
    /// Along every axis; scale and zero point are scalars, or one each along `axis`.
    Quantize,
    /// Convolution: images, output channels, pixels.
    Conv,
    /// The same in integers, the weights operand 1, zero points after them.
    ConvInteger,
    /// The same in integers with scales, the weights operand 3.
    QLinearConv,
    /// Transposed convolution: images, output channels, pixels.
    ConvTranspose,
    /// A window that moves over pixels: every axis.
    Window,
    /// Every channel of every image by itself; vectors have an element per channel.
    PerChannel,
    /// Every image by itself.
    PerImage,
    /// Along every axis; vectors have an element per channel.
    ChannelScale,
    /// Along every axis; operand 1 has numbers for each channel of each image, `N x C x 1 x 2`, and further operands broadcast to the result.
    ByChannel,
    /// Interpolation by whole factors.
    Resize,
    /// Matrix product: batch, rows, columns.
    MatMul,
    /// Matrix product of two matrices and an addition.
    Gemm,
    /// Matrix product in integers: batch, rows, columns.
    QuantizedMatMul(ProductOperands),
    /// Products and sums over letters that name axes: the letters of the result.
    Einsum,
    /// Every axis but `axis`; in models of operator sets below 13 the axes before `axis`.
    AcrossAxis,
    /// The same, of exponentials that are divided by their sum.
    Softmax,
    /// The same, of the logarithms of those.
    LogSoftmax,
    /// Not at all; what parts along `axis` give is combined, and rows of operand 1 go with its columns.
    CombineAlong,
    /// Along `axis`; operand 1 has numbers for the rows across it.
    Soften,
    /// The axes before `axis`; the others are normalized by mean and variance.
    LayerNorm,
    /// The axes before `axis`; the others are normalized by the mean of squares.
    RootNorm,
    /// The axes but the last; the first two operands have the shape of the result, or broadcast to it.
    SkipLayerNorm,
    /// Images, and whole groups of channels.
    GroupNorm,
    /// The axes that stay, by sums whose order depends on the shape.
    Sum,
    /// The axes that stay, by maxima.
    Maximum,
    /// The axes that stay, by the place of the largest or smallest element along one axis.
    Position {
        /// Whether it is the largest.
        largest: bool,
    },
    /// Every axis but `axis`, along which it finds as many of the largest or smallest elements as operand 1 says, and their places.
    Ranked,
    /// Every axis but the one that operand 1 names.
    Cumulate,
    /// Concatenation: every axis but the joined one.
    Concat,
    /// The same; two operands of the result stand before the first piece, each of which has two operands of its own behind it.
    QLinearConcat,
    /// Every axis but the one that is divided among the results.
    Divide,
    /// Every axis; bounds are constants.
    Slice,
    /// Every axis, by constants.
    Pad,
    /// Along every axis; one row of the operand may stand for many of the result.
    Expand,
    /// Axes that are not repeated.
    Tile,
    /// Images, pixels, and channels where each gives neighbours one after the other: blocks of channels become pixels.
    DepthToSpace,
    /// Images and pixels: blocks of pixels become channels.
    SpaceToDepth,
    /// Every axis, at its place before.
    Transpose,
    /// Axes before which operand and result have as many elements.
    Reshape,
    /// Axes of the data that stay, and those of the indices.
    Gather,
    /// The axes of the indices but the last.
    GatherTuples,
    /// Axes along which no element is looked up or written.
    Elements,
    /// Along every axis that is one loop, as the importer states.
    Loops,
    /// Every axis, by constants in attributes.
    PadByAttributes,
}
