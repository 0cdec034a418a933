//! What is true of operators without a row, by domain.

use crate::columns::{Effect, Formula, Movement, Split};
use crate::operator::Operator;

/// Domains whose operators compute their results from their operands alone, unless a row says otherwise, and dialects of MLIR, whose
/// operations say themselves what they do. Other domains are not known.
#[rustfmt::skip]
const DOMAINS: &[Operator] = &[
    Operator::new("", ""),
    Operator::new("ai.onnx.ml", ""),
    Operator::new("ai.onnx.preview.training", ""),
    Operator::new("com.microsoft", ""),
    Operator::new("com.microsoft.nchwc", "").effects(Effect::Stateful),
    Operator::new("com.ms.internal.nhwc", ""),
    Operator::new("chlo", "").effects(Effect::DeclaredOrPure).cost(Formula::Elementwise(1)),
    Operator::new("affine", "").effects(Effect::Declared).cost(Formula::Stated),
    Operator::new("arith", "").effects(Effect::Declared).cost(Formula::Elementwise(1)).split(Split::Elementwise),
    Operator::new("linalg", "").effects(Effect::Declared).cost(Formula::Stated).split(Split::Loops),
    Operator::new("math", "").effects(Effect::Declared).cost(Formula::Elementwise(1)).split(Split::Elementwise),
    Operator::new("remat", "").effects(Effect::Declared).cost(Formula::Metadata),
    Operator::new("scf", "").effects(Effect::Declared).cost(Formula::Stated),
    Operator::new("stablehlo", "").effects(Effect::DeclaredOrPure).cost(Formula::Elementwise(1)),
    Operator::new("tensor", "").effects(Effect::Declared).cost(Formula::Move(Movement::Copy)),
    Operator::new("tosa", "").effects(Effect::Declared).cost(Formula::Elementwise(1)),
];

/// The cautious answer: stateful, unless the operation declares that it is not.
const UNKNOWN: &Operator = &Operator::new("", "").effects(Effect::Declared);

/// The row of every operator of `domain` that has none of its own.
pub(crate) fn others(domain: &str) -> &'static Operator {
    DOMAINS.iter().find(|row| row.domain == domain).unwrap_or(UNKNOWN)
}
