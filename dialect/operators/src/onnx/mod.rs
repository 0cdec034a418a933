//! ONNX's default domain, up to operator set 26, with what ONNX Runtime adds to it.

mod arithmetic;
mod layers;
mod movement;
mod others;

pub(crate) use arithmetic::ROWS as ARITHMETIC;
pub(crate) use layers::ROWS as LAYERS;
pub(crate) use movement::ROWS as MOVEMENT;
pub(crate) use others::ROWS as OTHERS;

use crate::operator::Operator;

const fn onnx(name: &'static str) -> Operator {
    Operator::new("", name)
}
