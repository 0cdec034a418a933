//! Operations of StableHLO that its compilers fuse into the one operation that reads them, so that their results take no memory.
//!
//! XLA's instruction fusion does this for elementwise operations, and a broadcast is never written to memory where its readers are such.
//! XLA also repeats cheap operations in several readers; here that is a recompute, which the plan decides on.

use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, ValueLike};
use remat_ir::Attribute;
use remat_operators::{Formula, Movement, operator};

use crate::attributes::{attributes, identity};
use crate::types::value_type;

/// The type that several operations in one have in the graph.
pub(crate) const FUSION: &str = "fusion";

/// Whether operations of this name are fused into their only reader, where that takes part in fusions, too.
pub(crate) fn is_fused(domain: &str, op_type: &str) -> bool {
    let row = operator(domain, op_type);
    let elementwise = matches!(
        row.cost,
        Formula::Elementwise(_) | Formula::Transcendental(_) | Formula::Select | Formula::Move(Movement::Broadcast)
    );
    is_of_stablehlo(domain) && elementwise
}

/// Whether operations of this name take in what they read: elementwise ones and reductions.
pub(crate) fn takes_in(domain: &str, op_type: &str) -> bool {
    is_fused(domain, op_type) || (domain, op_type) == ("stablehlo", "reduce")
}

/// Whether the operation only spreads what it reads.
pub(crate) fn spreads(domain: &str, op_type: &str) -> bool {
    domain == "stablehlo" && ["broadcast_in_dim", "iota"].contains(&op_type)
}

/// The costs of several operations in one, the last of which is named, as attributes.
pub(crate) fn costs<'c: 'a, 'a>(
    last: &str,
    members: impl IntoIterator<Item = OperationRef<'c, 'a>>,
) -> [(&'static str, Attribute); 2] {
    let mut operations: i64 = 0;
    let mut class = if last == "reduce" { "reduction" } else { "elementwise" };
    for member in members {
        let (domain, op_type) = identity(member);
        if class == "elementwise" && matches!(operator(&domain, &op_type).cost, Formula::Transcendental(_)) {
            class = "transcendental";
        }
        operations = operations.saturating_add(arithmetic(member));
    }
    [
        ("loops", Attribute::String(class.as_bytes().to_vec())),
        ("operations", Attribute::Int(operations)),
    ]
}

/// Arithmetic operations of one operation without bodies.
pub(crate) fn arithmetic(op: OperationRef<'_, '_>) -> i64 {
    let (domain, op_type) = identity(op);
    let results = op
        .results()
        .fold(0i64, |sum, result| sum.saturating_add(elements(result.r#type())));
    let read = || op.operand(0).map_or(results, |operand| elements(operand.r#type()));
    match operator(&domain, &op_type).cost {
        Formula::Elementwise(weight) | Formula::Transcendental(weight) => results.saturating_mul(i64::from(weight)),
        Formula::Reduce(weight) => read().saturating_mul(i64::from(weight)),
        Formula::DotGeneral => results.saturating_mul(2).saturating_mul(inner(op)),
        _ => results,
    }
}

/// Products that are added up in each element of a `dot_general`.
fn inner(op: OperationRef<'_, '_>) -> i64 {
    let shape = op
        .operand(0)
        .ok()
        .and_then(|operand| value_type(operand.r#type(), None).known_shape());
    let named = attributes(op);
    let named = named.get("lhs_contracting_dimensions").and_then(Attribute::as_ints);
    let (Some(shape), Some(named)) = (shape, named) else {
        return 1;
    };
    let extents = named.iter().filter_map(|&dim| shape.get(usize::try_from(dim).ok()?));
    let product = extents.fold(1u64, |product, &extent| product.saturating_mul(extent));
    i64::try_from(product).unwrap_or(i64::MAX)
}

/// Elements of a value; scalars count as one.
fn elements(ty: melior::ir::Type<'_>) -> i64 {
    let product = |shape: Vec<u64>| shape.iter().fold(1u64, |product, &dim| product.saturating_mul(dim));
    let count = value_type(ty, None).known_shape().map_or(1, product);
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_of_stablehlo(domain: &str) -> bool {
    ["stablehlo", "chlo"].contains(&domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementwise_operations_and_broadcasts_are_fused_and_products_are_not() {
        for op_type in ["add", "tanh", "select", "convert", "broadcast_in_dim", "iota"] {
            assert!(
                is_fused("stablehlo", op_type) && takes_in("stablehlo", op_type),
                "{op_type}"
            );
        }
        for op_type in ["dot_general", "convolution", "transpose", "gather", "while", "sort"] {
            assert!(!takes_in("stablehlo", op_type), "{op_type}");
        }
        assert!(takes_in("stablehlo", "reduce") && !is_fused("stablehlo", "reduce"));
        assert!(is_fused("chlo", "erf") && !is_fused("tosa", "add"));
    }
}
