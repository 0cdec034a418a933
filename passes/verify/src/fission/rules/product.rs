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
