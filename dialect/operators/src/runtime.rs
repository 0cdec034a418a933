//! Operators that ONNX Runtime's optimizers make, for its own layouts of images, and those of the arena library.
//!
//! In `com.ms.internal.nhwc` channels stand last. In `com.microsoft.nchwc` they stand in blocks as wide as a vector: pooling is
//! vectorized, reordering is a copy. Models with blocked operators are made for one machine. A reordering is not run again: where a
//! file is loaded, each value is reordered once for all its readers.

use crate::columns::{Blocked as B, Element, Formula as F, Movement as M, ResultType as R};
use crate::operator::Operator;

/// The domain of operators on pages.
pub const PAGES_DOMAIN: &str = "com.remat";

/// The domain of operators on blocks of channels.
pub const BLOCKED_DOMAIN: &str = "com.microsoft.nchwc";

const fn nchwc(name: &'static str) -> Operator {
    Operator::new(BLOCKED_DOMAIN, name)
}

const fn nhwc(name: &'static str) -> Operator {
    Operator::new("com.ms.internal.nhwc", name)
}

const fn pages(name: &'static str) -> Operator {
    Operator::new(PAGES_DOMAIN, name).stateful().cost(F::Move(M::Copy))
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Operator] = &[
    nchwc("AveragePool").cost(F::Pool).shaped_as("AveragePool", &[0], Element::Same).blocked(B::Pool { global: false, averages: true }),
    nchwc("Conv").cost(F::Conv { weight: 1 }).shaped_as("Conv", &[0, 1], Element::Same).overwrites(3).blocked(B::Convolution { fused: true }),
    nchwc("GlobalAveragePool").cost(F::GlobalPool).shaped_as("GlobalAveragePool", &[0], Element::Same).blocked(B::Pool { global: true, averages: true }),
    nchwc("GlobalMaxPool").cost(F::GlobalPool).shaped_as("GlobalMaxPool", &[0], Element::Same).blocked(B::Pool { global: true, averages: false }),
    nchwc("MaxPool").cost(F::Pool).shaped_as("MaxPool", &[0], Element::Same).blocked(B::Pool { global: false, averages: false }),
    nchwc("ReorderInput").stateful().cost(F::Move(M::Copy)),
    nchwc("ReorderOutput").stateful().cost(F::Move(M::Copy)).blocked(B::FromBlocks),
    nchwc("Upsample").cost(F::Elementwise(8)),
    nhwc("AveragePool").cost(F::AveragePool),
    nhwc("BatchNormalization").cost(F::Normalization(4)),
    nhwc("Conv").cost(F::Conv { weight: 1 }),
    nhwc("ConvTranspose").cost(F::ConvTranspose { weight: 1 }),
    nhwc("DepthToSpace").cost(F::Move(M::Transpose)),
    nhwc("GlobalAveragePool").cost(F::GlobalPool),
    nhwc("GlobalLpPool").cost(F::GlobalPool),
    nhwc("GlobalMaxPool").cost(F::GlobalPool),
    nhwc("GridSample").cost(F::Elementwise(8)),
    nhwc("InstanceNormalization").cost(F::Normalization(8)),
    nhwc("LRN").cost(F::LocalNorm),
    nhwc("LpPool").cost(F::AveragePool),
    nhwc("MaxPool").cost(F::Pool),
    nhwc("MaxUnpool").cost(F::Transcendental(500)),
    nhwc("QLinearAveragePool").cost(F::AveragePool),
    nhwc("QLinearConv").cost(F::Conv { weight: 3 }),
    nhwc("QLinearConvTranspose").cost(F::ConvTranspose { weight: 3 }),
    nhwc("Resize").cost(F::Elementwise(8)),
    nhwc("SpaceToDepth").cost(F::Move(M::Transpose)),
    pages("PageIn"),
    pages("PageInBegin").results(&[R::Like(0)]),
    pages("PageOut"),
    pages("PageOutEnd").results(&[R::Like(0)]),
];
