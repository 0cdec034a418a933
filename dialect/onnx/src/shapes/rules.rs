//! What the inference crate's rules leave open although it follows: arithmetic on known numbers, and results whose rank is
//! known even if their extents are not.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, ShapeData, TypeInfo};

use super::guard::MAX_RANK;
use super::symbols::Symbols;

/// Adds known values and types to the results of a node of the default domain.
pub(super) fn complete(node: &Node, inputs: &[NodeIo], results: &mut [NodeIo], symbols: &mut Symbols<'_>) {
    let Some(result) = results.first_mut().filter(|_| node.is_default_domain()) else {
        return;
    };
    if result.shape_data.is_none() {
        result.shape_data = fold(node, inputs);
    }
    if result.type_info.is_none() && result.value_type.is_none() {
        result.type_info = shape(node, inputs, symbols);
    }
}

/// The value of a node all of whose inputs are known integers or truth values: the arithmetic with which exporters compute
/// shapes and decide between branches. Source: the operator definitions in the ONNX specification.
fn fold(node: &Node, inputs: &[NodeIo]) -> Option<ShapeData> {
    let operands: Vec<Operand> = inputs.iter().map(Operand::of).collect::<Option<_>>()?;
    let float_mod = node.attr("fmod").and_then(Attribute::as_int).unwrap_or(0) != 0;
    let op: fn(i64, i64) -> Option<i64> = match node.op_type.as_str() {
        "Add" => i64::checked_add,
        "Sub" => i64::checked_sub,
        "Mul" => i64::checked_mul,
        "Div" => i64::checked_div,
        "Mod" if float_mod => i64::checked_rem,
        "Mod" => floor_mod,
        "Max" => |a, b| Some(a.max(b)),
        "Min" => |a, b| Some(a.min(b)),
        "Equal" => |a, b| Some(i64::from(a == b)),
        "Greater" => |a, b| Some(i64::from(a > b)),
        "GreaterOrEqual" => |a, b| Some(i64::from(a >= b)),
        "Less" => |a, b| Some(i64::from(a < b)),
        "LessOrEqual" => |a, b| Some(i64::from(a <= b)),
        "And" => |a, b| Some(i64::from(a != 0 && b != 0)),
        "Or" => |a, b| Some(i64::from(a != 0 || b != 0)),
        "Xor" => |a, b| Some(i64::from((a != 0) != (b != 0))),
        "Not" => return unary(operands.first()?, |a| Some(i64::from(a == 0))),
        "Neg" => return unary(operands.first()?, i64::checked_neg),
        "Abs" => return unary(operands.first()?, i64::checked_abs),
        "Where" => return select(&operands),
        _ => return None,
    };
    let truth = matches!(
        node.op_type.as_str(),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual"
    );
    let [a, b] = operands.as_slice() else { return None };
    let values = (0..common_length(&operands)?)
        .map(|i| op(a.at(i)?, b.at(i)?))
        .collect::<Option<Vec<i64>>>()?;
    Some(data(
        if truth { DataType::Bool } else { a.dtype },
        operands.iter().all(|o| o.scalar),
        &values,
    ))
}

/// A known vector or scalar of integers.
struct Operand {
    dtype: DataType,
    scalar: bool,
    values: Vec<i64>,
}

impl Operand {
    fn of(io: &NodeIo) -> Option<Self> {
        let data = io.shape_data.as_ref().filter(|data| data.float_elems.is_none())?;
        let values = data.elems.iter().map(DimExpr::as_const).collect::<Option<Vec<i64>>>()?;
        Some(Self {
            dtype: data.dtype,
            scalar: data.is_scalar(),
            values,
        })
    }

    /// Element `index` after broadcasting.
    fn at(&self, index: usize) -> Option<i64> {
        if let [value] = self.values[..] {
            Some(value)
        } else {
            self.values.get(index).copied()
        }
    }
}

fn common_length(operands: &[Operand]) -> Option<usize> {
    let length = operands
        .iter()
        .map(|o| o.values.len())
        .find(|&length| length != 1)
        .unwrap_or(1);
    operands
        .iter()
        .all(|o| o.values.len() == 1 || o.values.len() == length)
        .then_some(length)
}

fn unary(operand: &Operand, op: fn(i64) -> Option<i64>) -> Option<ShapeData> {
    let values = operand
        .values
        .iter()
        .map(|&value| op(value))
        .collect::<Option<Vec<i64>>>()?;
    Some(data(operand.dtype, operand.scalar, &values))
}

fn select(operands: &[Operand]) -> Option<ShapeData> {
    let [condition, then, other] = operands else {
        return None;
    };
    let pick = |i| if condition.at(i)? != 0 { then.at(i) } else { other.at(i) };
    let values = (0..common_length(operands)?).map(pick).collect::<Option<Vec<i64>>>()?;
    Some(data(then.dtype, operands.iter().all(|o| o.scalar), &values))
}

fn data(dtype: DataType, scalar: bool, values: &[i64]) -> ShapeData {
    let elements = values.iter().map(|&value| DimExpr::constant(value)).collect();
    let mut data = ShapeData::vector(dtype, elements);
    if scalar {
        data.dims.clear();
    }
    data
}

/// Remainder with the sign of the divisor.
fn floor_mod(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) {
        rest + b
    } else {
        rest
    })
}

/// The type of a result whose extents depend on values that are not known, but whose rank does not.
fn shape(node: &Node, inputs: &[NodeIo], symbols: &mut Symbols<'_>) -> Option<TypeInfo> {
    let first = inputs.first()?.type_info.as_ref();
    // Number of elements of a vector operand.
    let length = |index: usize| {
        let [length] = inputs.get(index)?.type_info.as_ref()?.shape.as_slice() else {
            return None;
        };
        length
            .as_const()
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= MAX_RANK)
    };
    let mut open = |rank: usize| (0..rank).map(|_| symbols.interner.fresh_dim()).collect::<Vec<_>>();
    match node.op_type.as_str() {
        "Trilu" => first.cloned(),
        "ConstantOfShape" => {
            let dtype = match node.attr("value") {
                Some(Attribute::Tensor(value)) => value.dtype,
                _ => DataType::Float32,
            };
            Some(TypeInfo::new(dtype, open(length(0)?)))
        }
        op if op.starts_with("Reduce") => {
            let info = first?;
            let keeps = node.attr("keepdims").and_then(Attribute::as_int).unwrap_or(1) != 0;
            let rank = if keeps {
                info.rank()
            } else {
                info.rank().checked_sub(length(1)?)?
            };
            Some(TypeInfo::new(info.dtype, open(rank)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_runtime_ir::{NodeId, ValueId};

    fn folded(op: &str, inputs: &[&[i64]]) -> Option<Vec<i64>> {
        let node = Node::new(NodeId(0), op, vec![Some(ValueId(0)); inputs.len()], vec![ValueId(9)]);
        let known = |values: &&[i64]| NodeIo {
            shape_data: Some(data(DataType::Int64, false, values)),
            ..NodeIo::default()
        };
        let inputs: Vec<NodeIo> = inputs.iter().map(known).collect();
        fold(&node, &inputs)?.elems.iter().map(DimExpr::as_const).collect()
    }

    #[test]
    fn the_idiom_of_exporters_for_expand_folds() {
        let equal = folded("Equal", &[&[-1, 7, -1], &[-1]]).unwrap();
        assert_eq!(equal, [1, 0, 1]);
        assert_eq!(folded("Where", &[&equal, &[1], &[-1, 7, -1]]), Some(vec![1, 7, 1]));
    }

    #[test]
    fn integer_division_and_remainder_are_those_of_the_specification() {
        assert_eq!(folded("Div", &[&[-7, 7], &[2]]), Some(vec![-3, 3]));
        assert_eq!(folded("Mod", &[&[-7, 7], &[3]]), Some(vec![2, 1]));
        assert_eq!(folded("Mod", &[&[1], &[0]]), None);
        assert_eq!(folded("Div", &[&[i64::MIN], &[-1]]), None);
    }

    #[test]
    fn lengths_that_do_not_broadcast_fold_to_nothing() {
        assert_eq!(folded("Add", &[&[1, 2], &[1, 2, 3]]), None);
    }
}
