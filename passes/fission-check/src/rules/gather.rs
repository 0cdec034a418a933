//! `Gather` and `GatherND`: rows of the data at constant or computed indices; `GatherElements` and `ScatterElements`: single elements.

use super::super::site::{Need, NoWay, Site, Way, axis, signed};
use super::super::values::Rows;

/// Operands: data, indices. The axis of the data is replaced by the axes of the indices.
pub(super) fn gather<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    let (data, indices) = (site.dims(0)?, site.dims(1)?);
    let along = axis(site.int("axis", 0), data.len())?;
    if site.rank() + 1 != data.len() + indices.len() {
        return Err("its shapes do not fit".to_owned());
    }
    let taken: &[Rows] = &site.part[along..along + indices.len()];
    let others = |site: &Site<'a>| -> Result<Way<'a>, NoWay> {
        let mut way = site.way()?;
        for axis in (0..data.len()).filter(|&axis| axis != along) {
            let of = if axis < along { axis } else { axis + indices.len() - 1 };
            way = way.with_axis(0, axis, &site.part[of]);
        }
        Ok(way)
    };
    let mut ways = vec![others(site)?.with(1, taken.to_vec())];
    let (&[extent], [rows]) = (&indices[..], taken) else {
        return Ok(ways);
    };
    let Ok(known) = site.integers(1) else { return Ok(ways) };
    let (Ok(start), Ok(end)) = (usize::try_from(rows.start), usize::try_from(rows.end)) else {
        return Ok(ways);
    };
    let Some(own) = known.get(start..end).filter(|_| known.len() as u64 == extent) else {
        return Ok(ways);
    };
    let from_start = |&index: &i64| {
        if index < 0 {
            index.saturating_add(signed(data[along]))
        } else {
            index
        }
    };
    let own: Vec<i64> = own.iter().map(from_start).collect();
    let (Some(&least), Some(&most)) = (own.iter().min(), own.iter().max()) else {
        return Ok(ways);
    };
    let (Ok(first), Ok(last)) = (u64::try_from(least), u64::try_from(most)) else {
        return Ok(ways);
    };
    if last >= data[along] {
        return Ok(ways);
    }
    let mut all = others(site)?;
    all.operands[1] = Need::exactly(own.clone());
    ways.push(all);
    let mut some = others(site)?.with_axis(0, along, &(first..last + 1));
    some.operands[1] = Need::exactly(own.iter().map(|index| index - least).collect());
    ways.push(some);
    Ok(ways)
}

/// Operands: data, lists of indices. The axes of the indices but the last come first in the result, then what the lists leave of the data's.
pub(super) fn gather_nd<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let indices = site.dims(1)?;
    let lists = indices.len().checked_sub(1).filter(|&lists| lists <= site.rank());
    let lists = lists.filter(|_| site.int("batch_dims", 0) == 0);
    let lists = lists.ok_or("its shapes are not understood")?;
    if (lists..site.rank()).any(|axis| !site.is_whole(axis)) {
        return Err("it cuts what the lists leave of the data".to_owned());
    }
    let way = |way: Way<'a>, axis: usize| way.with_axis(1, axis, &site.part[axis]);
    Ok((0..lists).fold(site.way()?, way))
}

/// Operands: data, indices, perhaps updates, of equal rank. An index replaces the place along one axis; at all others an element stays where it is.
pub(super) fn elements<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let along = axis(site.int("axis", 0), site.rank())?;
    if !site.is_whole(along) {
        return Err(format!("its indices are along axis {along}"));
    }
    let mut way = site.way()?;
    for other in (0..site.rank()).filter(|&other| !site.is_whole(other)) {
        for operand in 0..site.op.inputs.len() {
            // Indices of a scatter may be fewer than the rows.
            let is_like_result = site.dims(operand)?.get(other) == Some(&site.out[other]);
            if !is_like_result && (operand > 0 || site.op.op_type == "ScatterElements") {
                return Err("its shapes do not fit".to_owned());
            }
            way = way.with_axis(operand, other, &site.part[other]);
        }
    }
    Ok(way)
}
