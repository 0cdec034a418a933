//! Matrix products.

use remat_operators::ProductOperands;

use super::{Cut, Need, Reason, Site};

/// Operands: `... x M x K` and `... x K x N`, the last two axes of each swapped where ONNX Runtime's fused form says so.
pub(super) fn matmul(site: &Site<'_>) -> Result<Cut, Reason> {
    let (left, right) = (site.dims(0)?, site.dims(1)?);
    let rank = site.out.len();
    if left.len() < 2 || right.len() < 2 || rank < 2 {
        return Err(Reason::Shapes);
    }
    if site.int("transBatchA", 0) != 0 || site.int("transBatchB", 0) != 0 {
        return Err(Reason::Attribute("transBatchA"));
    }
    let last = |dims: &[u64], back: usize| dims.len() - back;
    let cut = site.whole();
    let rows = site.rows.clone();
    if site.axis + 2 == rank {
        let back = if site.int("transA", 0) != 0 { 1 } else { 2 };
        return Ok(cut.with(0, last(&left, back), rows));
    }
    if site.axis + 1 == rank {
        let back = if site.int("transB", 0) != 0 { 2 } else { 1 };
        return Ok(cut.with(1, last(&right, back), rows));
    }
    let mut cut = cut;
    for place in 0..2 {
        cut.needs[place] = site.aligned(place)?;
    }
    Ok(cut)
}

/// Operands: two matrices or stacks of them, their scales and zero points, perhaps a summand.
pub(super) fn quantized(site: &Site<'_>, operands: &ProductOperands) -> Result<Cut, Reason> {
    let [left, right] = operands.factors;
    let (left_dims, right_dims, rank) = (site.dims(left)?, site.dims(right)?, site.out.len());
    if left_dims.len() < 2 || right_dims.len() < 2 || rank < 2 {
        return Err(Reason::Shapes);
    }
    let transposed = |name: &str| usize::from(site.int(name, 0) != 0);
    let mut cut = site.whole();
    if site.axis + 1 == rank {
        cut = cut.with(right, right_dims.len() - 1 - transposed("transB"), site.rows.clone());
    } else {
        let is_one = |&place: &usize| {
            let dims = site.operand(place).map(|_| site.dims(place)).transpose();
            dims.is_ok_and(|dims| dims.is_none_or(|dims| dims.iter().all(|&dim| dim == 1)))
        };
        if operands.scales_itself || !operands.by_row.iter().all(is_one) {
            return Err(Reason::Dependent);
        }
        if site.axis + 2 == rank {
            cut = cut.with(left, left_dims.len() - 2 + transposed("transA"), site.rows.clone());
        } else {
            for place in operands.factors {
                cut.needs[place] = site.aligned(place)?;
            }
        }
    }
    for &place in operands.by_column {
        if let Some(need) = cut.needs.get_mut(place) {
            *need = site.aligned(place)?;
        }
    }
    Ok(cut)
}

/// Operands: `M x K`, `K x N`, both perhaps transposed, and a summand that broadcasts to the result.
pub(super) fn gemm(site: &Site<'_>) -> Result<Cut, Reason> {
    let transposed = |name: &str| usize::from(site.int(name, 0) != 0);
    let rows = site.rows.clone();
    let mut cut = match site.axis {
        0 => site.whole().with(0, transposed("transA"), rows),
        1 => site.whole().with(1, 1 - transposed("transB"), rows),
        _ => return Err(Reason::Shapes),
    };
    if site.operand(2).is_some() {
        cut.needs[2] = site.aligned(2)?;
    } else if let Some(need) = cut.needs.get_mut(2) {
        *need = Need::Whole;
    }
    Ok(cut)
}
