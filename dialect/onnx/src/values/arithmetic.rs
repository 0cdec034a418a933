//! Operators that work element by element.

use std::cmp::Ordering;

use onnx_runtime_ir::Attribute;
use remat_ir::ElementType;

use super::operands::Operands;
use super::tensor::{Data, Tensor, broadcast, broadcast_places, count};

/// An operator of one operand or of two, with broadcasting; those of any number are taken two by two.
pub(super) fn elementwise(operands: &Operands<'_>) -> Option<Tensor> {
    let name = operands.node.op_type.as_str();
    match name {
        "Clip" => return clip(operands),
        "Max" | "Min" | "Sum" => {
            let mut parts = operands.all()?.into_iter();
            let first = parts.next()?.clone();
            let name = if name == "Sum" { "Add" } else { name };
            return parts.try_fold(first, |joined, part| binary(name, &joined, part, false));
        }
        _ => {}
    }
    match operands.all()?[..] {
        [a] => unary(name, a),
        [a, b] => binary(name, a, b, operands.int("fmod", 0) != 0).or_else(|| shift(operands, a, b)),
        _ => None,
    }
}

pub(super) fn select(operands: &Operands<'_>) -> Option<Tensor> {
    let [condition, then, other] = operands.all()?[..] else {
        return None;
    };
    let dims = broadcast(&broadcast(&condition.dims, &then.dims)?, &other.dims)?;
    count(&dims)?;
    let spread = |tensor: &Tensor| tensor.pick(dims.clone(), broadcast_places(&tensor.dims, &dims));
    let (condition, then, other) = (spread(condition)?, spread(then)?, spread(other)?);
    let condition = condition.as_integers()?;
    match (&then.data, &other.data) {
        (Data::Integers(a), Data::Integers(b)) => {
            let values = condition
                .iter()
                .zip(a.iter().zip(b))
                .map(|(&c, (&a, &b))| if c != 0 { a } else { b });
            Tensor::integers(then.element, dims.clone(), values)
        }
        (Data::Floats(a), Data::Floats(b)) => {
            let values = condition
                .iter()
                .zip(a.iter().zip(b))
                .map(|(&c, (&a, &b))| if c != 0 { a } else { b });
            Tensor::floats(then.element, dims.clone(), values)
        }
        _ => None,
    }
}

fn clip(operands: &Operands<'_>) -> Option<Tensor> {
    let mut tensor = operands.value(0)?.clone();
    for (name, index, op) in [("min", 1, "Max"), ("max", 2, "Min")] {
        let attribute = operands.node.attr(name).and_then(Attribute::as_float);
        if let Some(bound) = attribute {
            let bound = Tensor::floats(tensor.element, Vec::new(), [f64::from(bound)])?;
            tensor = binary(op, &tensor, &bound, false)?;
        } else if let Some(bound) = operands.optional(index)? {
            tensor = binary(op, &tensor, bound, false)?;
        }
    }
    Some(tensor)
}

fn unary(name: &str, tensor: &Tensor) -> Option<Tensor> {
    let (element, dims) = (tensor.element, tensor.dims.clone());
    match &tensor.data {
        Data::Integers(values) => {
            let op: fn(i64) -> i64 = match name {
                "Neg" => i64::wrapping_neg,
                "Abs" => i64::wrapping_abs,
                "Sign" => i64::signum,
                "Relu" => |value| value.max(0),
                "Not" if element == ElementType::Bool => |value| i64::from(value == 0),
                "BitwiseNot" => |value| !value,
                _ => return None,
            };
            Tensor::integers(element, dims, values.iter().map(|&value| op(value)))
        }
        Data::Floats(values) => {
            let test: Option<fn(f64) -> bool> = match name {
                "IsNaN" => Some(f64::is_nan),
                "IsInf" => Some(f64::is_infinite),
                _ => None,
            };
            if let Some(test) = test {
                return Tensor::integers(
                    ElementType::Bool,
                    dims,
                    values.iter().map(|&value| i64::from(test(value))),
                );
            }
            let op: fn(f64) -> f64 = match name {
                "Neg" => |value| -value,
                "Abs" => f64::abs,
                "Floor" => f64::floor,
                "Ceil" => f64::ceil,
                "Round" => f64::round_ties_even,
                "Sqrt" => f64::sqrt,
                "Reciprocal" => f64::recip,
                "Relu" => |value| if value > 0.0 { value } else { 0.0 },
                "Sign" => |value| if value == 0.0 { 0.0 } else { value.signum() },
                _ => return None,
            };
            Tensor::floats(element, dims, values.iter().map(|&value| op(value)))
        }
    }
}

/// `truncated` is for `Mod`: the remainder has the sign of the dividend.
fn binary(name: &str, a: &Tensor, b: &Tensor, truncated: bool) -> Option<Tensor> {
    let dims = broadcast(&a.dims, &b.dims)?;
    count(&dims)?;
    let pairs = broadcast_places(&a.dims, &dims)
        .into_iter()
        .zip(broadcast_places(&b.dims, &dims));
    match (&a.data, &b.data) {
        (Data::Integers(x), Data::Integers(y)) => {
            let pairs = pairs.map(|(i, j)| (x[i], y[j]));
            if let Some(holds) = comparison(name) {
                let values = pairs.map(|(x, y)| i64::from(holds(Some(x.cmp(&y)))));
                return Tensor::integers(ElementType::Bool, dims.clone(), values);
            }
            let element = a.element;
            let op = integer_operation(name, element, truncated)?;
            let values: Vec<i64> = pairs.map(|(x, y)| op(x, y)).collect::<Option<_>>()?;
            let result = Tensor::integers(element, dims.clone(), values.iter().copied())?;
            // Powers are no sums: beyond the type they are undefined.
            (name != "Pow" || result.as_integers() == Some(&values[..])).then_some(result)
        }
        (Data::Floats(x), Data::Floats(y)) => {
            let pairs = pairs.map(|(i, j)| (x[i], y[j]));
            if let Some(holds) = comparison(name) {
                let values = pairs.map(|(x, y)| i64::from(holds(x.partial_cmp(&y))));
                return Tensor::integers(ElementType::Bool, dims.clone(), values);
            }
            let op: fn(f64, f64) -> f64 = match name {
                "Add" => |x, y| x + y,
                "Sub" => |x, y| x - y,
                "Mul" => |x, y| x * y,
                "Div" => |x, y| x / y,
                "Max" if !has_nan(x) && !has_nan(y) => f64::max,
                "Min" if !has_nan(x) && !has_nan(y) => f64::min,
                "Mod" if truncated => |x, y| x % y,
                "Pow" if is_exact_power(x, y) => f64::powf,
                _ => return None,
            };
            Tensor::floats(a.element, dims.clone(), pairs.map(|(x, y)| op(x, y)))
        }
        // A power may have a base and an exponent of two types.
        (Data::Floats(x), Data::Integers(y)) if name == "Pow" => {
            let y: Vec<f64> = y.iter().map(|&value| value as f64).collect();
            if !is_exact_power(x, &y) {
                return None;
            }
            Tensor::floats(a.element, dims.clone(), pairs.map(|(i, j)| x[i].powf(y[j])))
        }
        (Data::Integers(x), Data::Floats(y)) if name == "Pow" => {
            let y: Vec<i64> = y
                .iter()
                .map(|&value| (value.fract() == 0.0).then_some(value as i64))
                .collect::<Option<_>>()?;
            let values: Vec<i64> = pairs.map(|(i, j)| power(x[i], y[j])).collect::<Option<_>>()?;
            Tensor::integers(a.element, dims.clone(), values)
        }
        _ => None,
    }
}

fn has_nan(values: &[f64]) -> bool {
    values.iter().any(|value| value.is_nan())
}

/// The largest number whose root is taken for exact: single precision has all whole numbers up to here.
const LARGEST_SQUARE: f64 = 16_777_216.0;

/// Whether powers are exact, so that every library gives the same: small whole bases and exponents, and roots of squares.
fn is_exact_power(bases: &[f64], exponents: &[f64]) -> bool {
    let small = |limit: f64| move |value: &f64| value.fract() == 0.0 && value.abs() <= limit;
    let trivial = exponents.iter().all(|value| [0.0, 1.0].contains(value));
    let is_square = |value: &f64| (0.0..=LARGEST_SQUARE).contains(value) && value.sqrt().fract() == 0.0;
    let are_roots = exponents.iter().all(|value| [0.5].contains(value)) && bases.iter().all(is_square);
    trivial
        || are_roots
        || (bases.iter().all(small(64.0)) && exponents.iter().all(|value| small(3.0)(value) && *value >= 0.0))
}

fn comparison(name: &str) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match name {
        "Equal" => |order| order == Some(Ordering::Equal),
        "Less" => |order| order == Some(Ordering::Less),
        "Greater" => |order| order == Some(Ordering::Greater),
        "LessOrEqual" => |order| matches!(order, Some(Ordering::Less | Ordering::Equal)),
        "GreaterOrEqual" => |order| matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    })
}

/// Integers wrap around, as in the runtime; a division by zero gives none.
fn integer_operation(name: &str, element: ElementType, truncated: bool) -> Option<fn(i64, i64) -> Option<i64>> {
    let truth = element == ElementType::Bool;
    Some(match name {
        "And" if truth => |a, b| Some(a & b),
        "Or" if truth => |a, b| Some(a | b),
        "Xor" if truth => |a, b| Some(a ^ b),
        _ if truth => return None,
        "BitwiseAnd" => |a, b| Some(a & b),
        "BitwiseOr" => |a, b| Some(a | b),
        "BitwiseXor" => |a, b| Some(a ^ b),
        "Add" => |a, b| Some(a.wrapping_add(b)),
        "Sub" => |a, b| Some(a.wrapping_sub(b)),
        "Mul" => |a, b| Some(a.wrapping_mul(b)),
        "Div" => i64::checked_div,
        "Max" => |a, b| Some(a.max(b)),
        "Min" => |a, b| Some(a.min(b)),
        "Mod" if truncated => i64::checked_rem,
        "Mod" => |a, b| {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            })
        },
        "Pow" => power,
        _ => return None,
    })
}

/// Runtimes compute powers of integers in floating point: alike as long as that is exact.
fn power(base: i64, exponent: i64) -> Option<i64> {
    let power = base.checked_pow(u32::try_from(exponent).ok()?)?;
    (power.unsigned_abs() < 1 << 53).then_some(power)
}

fn shift(operands: &Operands<'_>, a: &Tensor, b: &Tensor) -> Option<Tensor> {
    if operands.node.op_type != "BitShift" || a.element != b.element {
        return None;
    }
    let left = operands.text("direction")? == "LEFT";
    let dims = broadcast(&a.dims, &b.dims)?;
    count(&dims)?;
    let (x, y) = (a.as_integers()?, b.as_integers()?);
    let pairs = broadcast_places(&a.dims, &dims)
        .into_iter()
        .zip(broadcast_places(&b.dims, &dims));
    let values = pairs.map(|(i, j)| {
        let by = u32::try_from(y[j])
            .ok()
            .filter(|&by| u64::from(by) < a.element.bits())?;
        Some(if left { x[i].wrapping_shl(by) } else { x[i] >> by })
    });
    Tensor::integers(a.element, dims.clone(), values.collect::<Option<Vec<_>>>()?)
}
