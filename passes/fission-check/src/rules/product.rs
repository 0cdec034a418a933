//! Products of matrices.

use super::super::site::{NoWay, Site, Way};

/// Operands: two stacks of matrices; the stacks are broadcast.
pub(super) fn matmul<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let rank = site.rank();
    let ranks = [site.dims(0)?.len(), site.dims(1)?.len()];
    if ranks.iter().any(|&own| own < 2 || own > rank)
        || site.int("transBatchA", 0) != 0
        || site.int("transBatchB", 0) != 0
    {
        return Err("its shapes are not understood".to_owned());
    }
    let mut way = site.way()?;
    for (operand, &own) in ranks.iter().enumerate() {
        let dims = site.dims(operand)?;
        for (axis, &dim) in dims.iter().enumerate().take(own - 2) {
            let of = axis + rank - own;
            if dim == site.out[of] {
                way = way.with_axis(operand, axis, &site.part[of]);
            } else if dim != 1 {
                return Err("its shapes do not fit".to_owned());
            }
        }
    }
    let turned = |name: &str| usize::from(site.int(name, 0) != 0);
    Ok(way
        .with_axis(0, ranks[0] - 2 + turned("transA"), &site.part[rank - 2])
        .with_axis(1, ranks[1] - 1 - turned("transB"), &site.part[rank - 1]))
}

/// Where a product in integers has its operands.
struct Quantized {
    factors: [usize; 2],
    /// Scales and zero points of the left matrix.
    of_left: &'static [usize],
    /// Those of the right one, and what is added: they are broadcast to the result.
    broadcast: &'static [usize],
    /// Whether the left matrix is quantized by its own elements, all of them.
    finds_scale: bool,
}

/// Products of matrices of bytes, by operator.
pub(super) fn quantized<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let form = |factors, of_left, broadcast, finds_scale| Quantized {
        factors,
        of_left,
        broadcast,
        finds_scale,
    };
    let form = match site.op.op_type.as_str() {
        "MatMulInteger" => form([0, 1], &[2], &[3], false),
        "QLinearMatMul" => form([0, 3], &[1, 2], &[4, 5], false),
        "QGemm" => form([0, 3], &[1, 2], &[4, 5, 6], false),
        "MatMulIntegerToFloat" => form([0, 1], &[2, 4], &[3, 5, 6], false),
        "DynamicQuantizeMatMul" => form([0, 1], &[], &[2, 3, 4], true),
        _ => return Err("no rule is known".to_owned()),
    };
    let rank = site.rank();
    let [left, right] = form.factors;
    let dims = [site.dims(left)?, site.dims(right)?];
    if dims.iter().any(|dims| dims.len() < 2 || dims.len() > rank) {
        return Err("its shapes are not understood".to_owned());
    }
    let cuts_left = (0..rank - 1).any(|axis| !site.is_whole(axis));
    for &operand in form.of_left.iter().filter(|&&operand| site.has(operand)) {
        if cuts_left && site.dims(operand)?.iter().any(|&dim| dim != 1) {
            return Err(format!("operand {operand} has several numbers"));
        }
    }
    if cuts_left && form.finds_scale {
        return Err("its scale follows from all rows".to_owned());
    }
    let mut way = site.way()?;
    for (operand, dims) in [left, right].into_iter().zip(&dims) {
        for (axis, &dim) in dims.iter().enumerate().take(dims.len() - 2) {
            let of = axis + rank - dims.len();
            if dim == site.out[of] {
                way = way.with_axis(operand, axis, &site.part[of]);
            } else if dim != 1 {
                return Err("its shapes do not fit".to_owned());
            }
        }
    }
    let turned = |name: &str| usize::from(site.int(name, 0) != 0);
    let row_axis = dims[0].len() - 2 + turned("transA");
    let column_axis = dims[1].len() - 1 - turned("transB");
    way = way
        .with_axis(left, row_axis, &site.part[rank - 2])
        .with_axis(right, column_axis, &site.part[rank - 1]);
    for &operand in form.broadcast.iter().filter(|&&operand| site.has(operand)) {
        way = way.with(operand, site.broadcast(operand)?);
    }
    Ok(way)
}

/// Operands: two matrices, and a summand that is broadcast.
pub(super) fn gemm<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    if site.rank() != 2 {
        return Err("its shapes are not understood".to_owned());
    }
    let mut way = matmul(site)?;
    if site.has(2) {
        way = way.with(2, site.broadcast(2)?);
    }
    Ok(way)
}
