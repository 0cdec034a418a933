//! Dimensions as formulas of those that the inputs leave open.
//!
//! The inference crate knows sums, products and exact quotients; whatever else a rule would need becomes a symbol of which nothing is known.
//! Where it does, the rules here say what the result is: quotients that are rounded, maxima and minima. Each is a symbol, too, so that the
//! crate's rules reckon on with it, and [`Table`] has its formula. What depends on data stays a symbol without one.

mod call;
mod elements;
mod fraction;
mod parts;
mod reshapes;
mod scales;
mod table;
mod terms;
mod windows;

use onnx_runtime_ir::Node;
use onnx_runtime_shape_inference::{NodeIo, TypeInfo};
use remat_formula::Formula;
use remat_operators::operator;

use super::symbols::Symbols;
use call::Call;
pub(crate) use table::{Shape, Table};

/// Puts formulas in where the rules of the inference crate leave the results of a node open; `version` is that of the standard operators.
pub(super) fn complete(
    node: &Node,
    inputs: &[NodeIo],
    version: u64,
    results: &mut [NodeIo],
    symbols: &mut Symbols<'_>,
) {
    let Some(table) = &mut symbols.formulas else { return };
    let interner = &mut symbols.interner;
    let call = Call {
        node,
        inputs,
        version,
        results: results.len(),
    };
    let shapes = shapes(&call, table).unwrap_or_default();
    for (result, shape) in results.iter_mut().zip(shapes) {
        if let Some(info) = result.type_info.as_mut().filter(|info| info.rank() == shape.len()) {
            for (dim, formula) in info.shape.iter_mut().zip(shape) {
                if let Some(formula) = formula.filter(|_| table.formula(dim).is_none()) {
                    *dim = table.expression(&formula, interner);
                }
            }
        } else if let (None, None, Some(first)) = (&result.type_info, &result.value_type, call.info(0)) {
            let mut dim = |formula: Option<Formula>| match formula {
                Some(formula) => table.expression(&formula, interner),
                None => interner.fresh_dim(),
            };
            result.type_info = Some(TypeInfo::new(first.dtype, shape.into_iter().map(&mut dim).collect()));
        }
    }
    elements::complete(&call, results, table, interner);
}

/// The shapes of the results, as far as rules of this crate know them.
fn shapes(call: &Call<'_>, table: &mut Table) -> Option<Vec<Shape>> {
    let one = |shape: Shape| vec![shape];
    if !call.node.is_default_domain() {
        let broadcasts = operator(&call.node.domain, &call.node.op_type).broadcasts;
        return broadcasts.then(|| reshapes::broadcast(call, table).map(one))?;
    }
    match call.node.op_type.as_str() {
        "Conv" | "MaxPool" | "AveragePool" | "LpPool" => {
            let shape = windows::window(call, table)?;
            Some(vec![shape; call.results])
        }
        "ConvTranspose" | "MaxUnpool" => windows::transposed(call, table).map(one),
        "Resize" | "Upsample" => scales::resize(call, table).map(one),
        "Slice" => parts::slice(call, table).map(one),
        "Split" => parts::split(call, table),
        "Pad" => parts::pad(call, table).map(one),
        "Range" => parts::range(call, table).map(one),
        "Concat" => parts::concat(call, table).map(one),
        "Reshape" => reshapes::reshape(call, table).map(one),
        "Squeeze" => reshapes::squeeze(call, table).map(one),
        "Expand" => reshapes::expand(call, table).map(one),
        "Tile" => reshapes::tile(call, table).map(one),
        "MatMul" => reshapes::matrices(call, table).map(one),
        "SpaceToDepth" => reshapes::space_to_depth(call, table).map(one),
        "TopK" => parts::top(call, table),
        name if operator("", name).broadcasts => reshapes::broadcast(call, table).map(one),
        _ => None,
    }
}
