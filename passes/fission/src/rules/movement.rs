//! Operators that move elements.

use std::ops::Range;

use remat_ir::Dim;

use super::{Cut, Integers, Need, Reason, Site};

/// Rows of another axis than the joined one.
pub(super) fn concat(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis_of(site.int("axis", 0), site.out.len())? == site.axis {
        return Err(Reason::Dependent);
    }
    let rows = Need::Rows {
        axis: site.axis,
        rows: site.rows.clone(),
    };
    Ok(Cut {
        needs: vec![rows; site.op.inputs.len()],
        ..Cut::default()
    })
}

/// Operands: scale and zero point of the result, then pieces, each with its own two.
pub(super) fn quantized_concat(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis_of(site.int("axis", 0), site.out.len())? == site.axis {
        return Err(Reason::Dependent);
    }
    let pieces = (2..site.op.inputs.len()).step_by(3);
    Ok(pieces.fold(site.whole(), |cut, piece| cut.with(piece, site.axis, site.rows.clone())))
}

/// Rows of another axis than the one that is divided.
pub(super) fn divide(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis_of(site.int("axis", 0), site.out.len())? == site.axis {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
}

/// Operands: data, starts, ends, axes, steps. The clone of a cut along a sliced axis starts at the first row that it gets.
pub(super) fn slice(site: &Site<'_>) -> Result<Cut, Reason> {
    let dims = site.dims(0)?;
    let (Some(starts), Some(ends)) = (site.integers(1)?, site.integers(2)?) else {
        return Err(Reason::Computed);
    };
    let axes: Vec<usize> = match site.integers(3)? {
        None => (0..starts.len()).collect(),
        Some(axes) => {
            let axes = axes.iter().map(|&axis| site.axis_of(axis, dims.len()));
            axes.collect::<Result<_, _>>()?
        }
    };
    let steps = site.integers(4)?;
    let cut = site.same_rows(site.axis);
    let Some(place) = axes.iter().position(|&axis| axis == site.axis) else {
        return Ok(cut);
    };
    let step = u64::try_from(
        steps
            .map_or(Some(1), |steps| steps.get(place).copied())
            .ok_or(Reason::Computed)?,
    )
    .ok();
    let step = step.filter(|&step| step > 0).ok_or(Reason::Attribute("steps"))?;
    let extent = dims[site.axis];
    let start = *starts.get(place).ok_or(Reason::Computed)?;
    let first = if start < 0 {
        extent.saturating_sub(start.unsigned_abs())
    } else {
        start.unsigned_abs().min(extent)
    };
    let needed = first + site.rows.start * step..first + (site.rows.end - 1) * step + 1;
    if needed.end > extent {
        return Err(Reason::Shapes);
    }
    let length = i64::try_from(needed.end - needed.start).map_err(|_| Reason::Shapes)?;
    let replaced = |list: &[i64], value: i64| {
        let mut list = list.to_vec();
        list[place] = value;
        Integers::list(list)
    };
    let mut cut = cut.with(0, site.axis, needed);
    cut.integers.insert(1, replaced(starts, 0));
    cut.integers.insert(2, replaced(ends, length));
    Ok(cut)
}

/// Operands: data, pads, value, axes. What is left of the padding of a tile is stated anew.
pub(super) fn pad(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.text("mode", "constant") != "constant" {
        return Err(Reason::Attribute("mode"));
    }
    let dims = site.dims(0)?;
    let rank = dims.len();
    let Some(pads) = site.integers(1)? else {
        return Err(Reason::Computed);
    };
    let axes: Vec<usize> = match site.integers(3)? {
        None => (0..rank).collect(),
        Some(axes) => {
            let axes = axes.iter().map(|&axis| site.axis_of(axis, rank));
            axes.collect::<Result<_, _>>()?
        }
    };
    let count = axes.len();
    if pads.len() != 2 * count {
        return Err(Reason::Attribute("axes"));
    }
    let Some(at) = axes.iter().position(|&axis| axis == site.axis) else {
        return Ok(site.same_rows(site.axis));
    };
    let stated = |place: usize| u64::try_from(pads[place]).map_err(|_| Reason::Attribute("pads"));
    let (before, after) = (stated(at)?, stated(at + count)?);
    let extent = dims[site.axis];
    if before + extent + after != site.extent() {
        return Err(Reason::Shapes);
    }
    let inside = |row: u64| row.saturating_sub(before).min(extent);
    let needed = inside(site.rows.start)..inside(site.rows.end);
    if needed.is_empty() {
        return Err(Reason::Padding);
    }
    let left = before.saturating_sub(site.rows.start);
    let right = site.rows.end.saturating_sub(before + extent);
    let mut pads = pads.to_vec();
    pads[at] = i64::try_from(left).map_err(|_| Reason::Shapes)?;
    pads[at + count] = i64::try_from(right).map_err(|_| Reason::Shapes)?;
    let mut cut = site.whole().with(0, site.axis, needed);
    cut.integers.insert(1, Integers::list(pads));
    Ok(cut)
}

/// Operands: data, the shape to broadcast it to. A tile states its own shape.
pub(super) fn expand(site: &Site<'_>) -> Result<Cut, Reason> {
    let mut cut = site.whole();
    cut.needs[0] = site.aligned(0)?;
    // A one takes the dimension of the data.
    let data = site.ty(0).dims();
    let missing = site.out.len().saturating_sub(data.len());
    let kept = |axis: usize, dim: &Dim| {
        let held = axis.checked_sub(missing).and_then(|axis| data.get(axis));
        let is_kept = matches!(dim, Dim::Free { name: Some(_), .. }) && held == Some(dim);
        is_kept.then_some(1)
    };
    cut.integers.insert(1, site.stated(kept)?);
    Ok(cut)
}

/// Operands: data, how often each axis is repeated.
pub(super) fn tile(site: &Site<'_>) -> Result<Cut, Reason> {
    match site.integers(1)?.and_then(|repeats| repeats.get(site.axis)) {
        Some(1) => Ok(site.same_rows(site.axis)),
        Some(_) => Err(Reason::Dependent),
        None => Err(Reason::Computed),
    }
}

/// Without `perm`, axes are reversed.
pub(super) fn transpose(site: &Site<'_>) -> Result<Cut, Reason> {
    let rank = site.out.len();
    let axis = match site.ints("perm").filter(|perm| !perm.is_empty()) {
        Some(perm) => site.axis_of(*perm.get(site.axis).ok_or(Reason::Attribute("perm"))?, rank)?,
        None => rank - 1 - site.axis,
    };
    Ok(site.same_rows(axis))
}

/// The rows between the smallest and the largest index, and indices counted from the first of them.
fn indexed(indices: &[i64]) -> Result<Range<u64>, Reason> {
    let (Some(&least), Some(&most)) = (indices.iter().min(), indices.iter().max()) else {
        return Err(Reason::Shapes);
    };
    let row = |index: i64| u64::try_from(index).map_err(|_| Reason::Attribute("indices"));
    Ok(row(least)?..row(most)? + 1)
}

/// Operands: data, indices, whose axes take the place of `axis`. Along them: rows of the data, where the indices are a known list, else
/// rows of the indices.
pub(super) fn gather(site: &Site<'_>) -> Result<Cut, Reason> {
    let (data, indices) = (site.dims(0)?, site.dims(1)?);
    let gathered = site.axis_of(site.int("axis", 0), data.len())?;
    let cut = site.whole();
    let rows = site.rows.clone();
    if site.axis < gathered {
        return Ok(cut.with(0, site.axis, rows));
    }
    if site.axis >= gathered + indices.len() {
        return Ok(cut.with(0, site.axis + 1 - indices.len(), rows));
    }
    let known = site.integers(1).ok().flatten();
    let Some(values) = known.filter(|values| indices.len() == 1 && values.iter().all(|&value| value >= 0)) else {
        return Ok(cut.with(1, site.axis - gathered, rows));
    };
    let bounds = |row: u64| usize::try_from(row).map_err(|_| Reason::Shapes);
    let part = values
        .get(bounds(rows.start)?..bounds(rows.end)?)
        .ok_or(Reason::Shapes)?;
    let needed = indexed(part)?;
    let first = i64::try_from(needed.start).map_err(|_| Reason::Shapes)?;
    let part = part.iter().map(|&index| index - first).collect();
    let mut cut = cut.with(0, gathered, needed);
    cut.integers.insert(1, Integers::list(part));
    Ok(cut)
}

/// Operands: data, indices, whose last axis is a position.
pub(super) fn gather_tuples(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.int("batch_dims", 0) != 0 {
        return Err(Reason::Attribute("batch_dims"));
    }
    if site.axis + 1 >= site.dims(1)?.len() {
        return Err(Reason::Dependent);
    }
    Ok(site.whole().with(1, site.axis, site.rows.clone()))
}

/// Operands: data, indices, and what is written there, if anything is: each element is looked up or written within its row of every other axis than the
/// one of the indices.
pub(super) fn elements(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis_of(site.int("axis", 0), site.out.len())? == site.axis {
        return Err(Reason::Dependent);
    }
    // Rows that have no indices would be left without.
    if site.dims(1)?.get(site.axis) != Some(&site.extent()) {
        return Err(Reason::Shapes);
    }
    let all = 0..site.op.inputs.len();
    Ok(all.fold(site.whole(), |cut, place| cut.with(place, site.axis, site.rows.clone())))
}
