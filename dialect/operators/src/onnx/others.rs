//! Subgraphs, random numbers, text, transforms, and operators of early versions.
//!
//! What subgraphs, text and transforms of open length do depends on data: only their bytes are charged.

use remat_ir::ElementType as T;

use crate::columns::{Element, Formula as F, Workspace as W};
use crate::onnx::onnx;
use crate::operator::Operator;

#[rustfmt::skip]
pub(crate) const ROWS: &[Operator] = &[
    onnx("Affine").fused_as_activation(),
    onnx("Bernoulli").cost(F::Elementwise(10)).random(),
    onnx("BlackmanWindow").cost(F::Transcendental(20)),
    onnx("DFT").slots(3, 0),
    onnx("Det"),
    onnx("HammingWindow").cost(F::Transcendental(20)),
    onnx("HannWindow").cost(F::Transcendental(20)),
    onnx("If").runs_subgraphs(),
    onnx("ImageDecoder"),
    onnx("Loop").runs_subgraphs().slots(2, 0),
    onnx("MelWeightMatrix").cost(F::Transcendental(200)),
    onnx("Multinomial").random(),
    onnx("NonMaxSuppression").slots(5, 0).on_heap(),
    onnx("NonZero").cost(F::Transcendental(500)).workspace(W::Coordinates),
    onnx("ParametricSoftplus").fused_as_activation(),
    onnx("RandomNormal").cost(F::Elementwise(10)).random(),
    onnx("RandomNormalLike").cost(F::Elementwise(10)).random(),
    onnx("RandomUniform").cost(F::Elementwise(10)).random(),
    onnx("RandomUniformLike").cost(F::Elementwise(10)).random(),
    onnx("RegexFullMatch").shaped_as("Identity", &[0], Element::Is(T::Bool)),
    onnx("STFT").slots(4, 0),
    onnx("ScaledTanh").fused_as_activation(),
    onnx("Scan").runs_subgraphs(),
    onnx("SequenceMap").runs_subgraphs(),
    onnx("StringConcat").shaped_as("Add", &[0, 1], Element::Same),
    onnx("StringNormalizer"),
    onnx("StringSplit"),
    onnx("TfIdfVectorizer"),
];
