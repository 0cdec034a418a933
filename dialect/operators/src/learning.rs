//! Classical machine learning, and the operators of training that ONNX tried out.

use crate::columns::{Formula as F, Movement as M};
use crate::operator::Operator;

const fn learning(name: &'static str) -> Operator {
    Operator::new("ai.onnx.ml", name)
}

const fn preview(name: &'static str) -> Operator {
    Operator::new("ai.onnx.preview.training", name)
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Operator] = &[
    learning("ArrayFeatureExtractor").cost(F::Move(M::Gather)),
    learning("Binarizer").cost(F::Elementwise(2)),
    learning("FeatureVectorizer").cost(F::Move(M::Copy)),
    learning("Imputer").cost(F::Elementwise(2)),
    learning("Normalizer").cost(F::Normalization(4)),
    learning("OneHotEncoder").cost(F::Move(M::Broadcast)),
    learning("Scaler").cost(F::Elementwise(2)),
    learning("ZipMap").sized_as_operands(1),
    preview("Adagrad").cost(F::Elementwise(10)),
    preview("Adam").cost(F::Elementwise(10)),
    preview("Gradient"),
    preview("Momentum").cost(F::Elementwise(10)),
];
