//! Products of matrices. Every output element takes one multiply-add per step of the inner dimension, so batches and
//! broadcasting are in the shape of the result already.

use crate::operands::Operands;
use crate::work::CpuDetail;

/// MatMul and its fused and quantized kin; the inner dimension is read off operand 0.
pub(super) fn flops(operands: &Operands<'_>) -> Option<u128> {
    let a = operands.input_shape(0)?;
    // FusedMatMul with `transBatchA` stores A as `M x batch x K`, or as `K x batch x M` if transposed too.
    let inner = match (operands.flag("transA"), operands.flag("transBatchA")) {
        (true, true) => *a.first()?,
        (true, false) if a.len() > 1 => a[a.len() - 2],
        _ => *a.last()?,
    };
    Some(multiply_adds(operands.output_elements(0)?, inner))
}

/// StableHLO's `dot_general` sums over the dimensions of operand 0 that it names.
pub(super) fn dot_general_flops(operands: &Operands<'_>) -> Option<u128> {
    let a = operands.input_shape(0)?;
    let Some(inner) = operands.ints("lhs_contracting_dimensions") else {
        return flops(operands);
    };
    let mut extents = inner.iter().map(|&dim| a.get(usize::try_from(dim).ok()?).copied());
    let inner = extents.try_fold(1u64, |product, extent| Some(product.saturating_mul(extent?)))?;
    Some(multiply_adds(operands.output_elements(0)?, inner))
}

/// Gemm: `transA` puts the inner dimension first; the third operand is added.
pub(super) fn gemm_flops(operands: &Operands<'_>) -> Option<u128> {
    let a = operands.input_shape(0)?;
    let inner = *a.get(usize::from(!operands.flag("transA")))?;
    let outputs = operands.output_elements(0)?;
    let addition = if operands.input(2).is_some() { outputs } else { 0 };
    Some(multiply_adds(outputs, inner).saturating_add(addition))
}

/// Columns of the result that are worked off at once; a transposed left operand is turned anew for each such stretch.
const STRETCH: u128 = 128;
/// Turning reads and writes every element.
const TURN: u128 = 2;

/// The right operand is packed into panels, unless the left one is a single row; a transposed left operand is turned.
pub(super) fn detail(operands: &Operands<'_>) -> Option<CpuDetail> {
    let y = operands.output(0)?.known_shape()?;
    let single_row = operands.output_elements(0)? == u128::from(*y.last()?);
    let turned = if operands.flag("transA") && !single_row {
        let stretches = u128::from(*y.last()?).div_ceil(STRETCH);
        operands.input_bytes(0).saturating_mul(stretches * TURN)
    } else {
        0
    };
    let packed = if single_row { 0 } else { operands.input_bytes(1) };
    Some(CpuDetail {
        repacked_bytes: packed.saturating_add(turned),
        runs: 0,
        row: y.last().copied(),
    })
}

fn multiply_adds(outputs: u128, inner: u64) -> u128 {
    outputs.saturating_mul(2).saturating_mul(u128::from(inner))
}

/// Einsum: for each pair of operands one multiply-add per point of the space that all index letters span together.
pub(super) fn einsum_flops(operands: &Operands<'_>) -> Option<u128> {
    let equation = operands.text("equation")?;
    let left = equation.split("->").next()?;
    let mut sizes: Vec<(Index, u64)> = Vec::new();
    let terms: Vec<&str> = left.split(',').collect();
    for (position, term) in terms.iter().enumerate() {
        let shape = operands.input_shape(position)?;
        for (index, size) in indices(term, &shape)? {
            match sizes.iter_mut().find(|(known, _)| *known == index) {
                // A dimension of 1 under an ellipsis is broadcast.
                Some((_, known)) => *known = (*known).max(size),
                None => sizes.push((index, size)),
            }
        }
    }
    let space = sizes
        .iter()
        .fold(1u128, |acc, &(_, size)| acc.saturating_mul(u128::from(size)));
    let pairs = u128::try_from(terms.len().saturating_sub(1)).ok()?;
    Some(if pairs == 0 {
        space
    } else {
        space.saturating_mul(2).saturating_mul(pairs)
    })
}

/// One axis of an Einsum: a letter, or a position under the ellipsis counted from the right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Index {
    Letter(char),
    Ellipsis(usize),
}

/// The axes of one term with their sizes; `None` if term and shape do not fit.
fn indices(term: &str, shape: &[u64]) -> Option<Vec<(Index, u64)>> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let (before, after) = (letters(before), letters(after));
    let hidden = shape.len().checked_sub(before.len() + after.len())?;
    if hidden > 0 && !term.contains("...") {
        return None;
    }
    let ellipsis = (0..hidden).rev().map(Index::Ellipsis);
    let axes = before
        .into_iter()
        .map(Index::Letter)
        .chain(ellipsis)
        .chain(after.into_iter().map(Index::Letter));
    Some(axes.zip(shape.iter().copied()).collect())
}
