//! Ops that move rows: `Concat`, `Split`, `Slice`, `Pad`, `Transpose`.

use remat_ir::Attribute;

use super::super::site::{Elements, Need, NoWay, Site, Way, axis, rows, signed};

/// All operands are cut along the other axes.
pub(super) fn concat<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let along = axis(site.int("axis", 1), site.rank())?;
    if !site.is_whole(along) {
        return Err(format!("it joins along axis {along}"));
    }
    let mut way = site.way()?;
    for operand in 0..site.op.inputs.len() {
        if site.dims(operand)?.len() != site.rank() {
            return Err("its shapes do not fit".to_owned());
        }
        for other in (0..site.rank()).filter(|&other| other != along) {
            way = way.with_axis(operand, other, &site.part[other]);
        }
    }
    Ok(way)
}

/// Operands: scale and zero point of the result, then pieces with theirs.
pub(super) fn quantized_concat<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let along = axis(site.int("axis", 1), site.rank())?;
    if !site.op.attributes.contains_key("axis") || !site.is_whole(along) {
        return Err(format!("it joins along axis {along}"));
    }
    let mut way = site.way()?;
    for piece in (0..site.op.inputs.len()).filter(|operand| operand % 3 == 2) {
        if site.dims(piece)?.len() != site.rank() {
            return Err("its shapes do not fit".to_owned());
        }
        for other in (0..site.rank()).filter(|&other| other != along) {
            way = way.with_axis(piece, other, &site.part[other]);
        }
    }
    Ok(way)
}

/// Operands: data, a shape that it is broadcast to.
pub(super) fn expand<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let data = site.broadcast(0)?;
    let result: Vec<i64> = site.part.iter().map(|rows| signed(rows.end - rows.start)).collect();
    let held: Vec<i64> = data.iter().map(|rows| signed(rows.end - rows.start)).collect();
    let mut way = site.way()?.with(0, data);
    let plain = result.clone();
    // An axis of one row in the shape takes that of the data.
    let test = move |shape: &[i64]| {
        let missing = result.len() - held.len();
        let own = |axis: usize| axis.checked_sub(missing).map_or(1, |axis| held[axis]);
        let fits = |(axis, &dim): (usize, &i64)| result[axis] == if dim == 1 { own(axis) } else { dim };
        shape.iter().enumerate().all(fits)
    };
    *way.operands.get_mut(1).ok_or("it has no shape")? = Need::Elements(Elements {
        plain,
        test: Box::new(test),
        // A one takes the size of the data.
        open: site.open(2),
    });
    Ok(way)
}

/// Operands: data, numbers of copies.
pub(super) fn tile<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let copies = site.integers(1)?;
    if copies.len() != site.rank() || site.dims(0)?.len() != site.rank() {
        return Err("its shapes do not fit".to_owned());
    }
    let mut way = site.way()?;
    for (axis, &copies) in copies.iter().enumerate() {
        if copies == 1 {
            way = way.with_axis(0, axis, &site.part[axis]);
        } else if !site.is_whole(axis) {
            return Err(format!("it repeats axis {axis}"));
        }
    }
    Ok(way)
}

/// The operand is cut along the other axes.
pub(super) fn split<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let along = axis(site.int("axis", 0), site.rank())?;
    if !site.is_whole(along) {
        return Err(format!("it splits along axis {along}"));
    }
    let mut way = site.way()?;
    for other in (0..site.rank()).filter(|&other| other != along) {
        way = way.with_axis(0, other, &site.part[other]);
    }
    Ok(way)
}

/// Bounds as operands (starts, ends, axes, steps) or attributes. Along an axis that is cut, a tile begins with the first row of its operand;
/// so it may along others.
pub(super) fn slice<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    let mut ways = Vec::new();
    let mut why = String::new();
    for choice in 0..1_u32 << site.rank().min(6) {
        let chosen = |axis: usize| axis < 6 && choice >> axis & 1 == 1;
        if (0..site.rank()).any(|axis| chosen(axis) && !site.is_whole(axis)) {
            continue;
        }
        match sliced(site, |axis| chosen(axis) || !site.is_whole(axis)) {
            Ok(way) => ways.push(way),
            Err(reason) => why = reason,
        }
    }
    if ways.is_empty() { Err(why) } else { Ok(ways) }
}

/// The way in which the operand is cut along these axes.
fn sliced<'a>(site: &Site<'a>, is_cut: impl Fn(usize) -> bool) -> Result<Way<'a>, NoWay> {
    let dims = site.dims(0)?;
    let rank = site.rank();
    if dims.len() != rank {
        return Err("its shapes do not fit".to_owned());
    }
    let is_attribute = site.op.attributes.contains_key("starts");
    let list = |operand: usize, name: &str| match is_attribute {
        true => site.ints(name).ok_or_else(|| format!("`{name}` is not known")),
        false => site.integers(operand),
    };
    let (starts, ends) = (list(1, "starts")?, list(2, "ends")?);
    let named = match is_attribute {
        true => site.ints("axes"),
        false => site.has(3).then(|| site.integers(3)).transpose()?,
    };
    let axes = match named {
        Some(axes) => axes
            .iter()
            .map(|&named| axis(named, rank))
            .collect::<Result<Vec<usize>, _>>()?,
        None => (0..starts.len()).collect(),
    };
    let steps = match site.has(4) && !is_attribute {
        true => site.integers(4)?.to_vec(),
        false => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err("its bounds are not understood".to_owned());
    }
    let mut way = site.way()?;
    // By bound: how many rows it spans in the tile, where its axis is cut.
    let mut spans: Vec<Option<i64>> = vec![None; starts.len()];
    for at in (0..rank).filter(|&at| is_cut(at)) {
        let Some(bound) = axes.iter().position(|&axis| axis == at) else {
            way = way.with_axis(0, at, &site.part[at]);
            continue;
        };
        let (extent, step) = (signed(dims[at]), steps[bound]);
        if !(1..=1 << 31).contains(&step) || axes.iter().filter(|&&axis| axis == at).count() > 1 {
            return Err("it goes backwards".to_owned());
        }
        let start = if starts[bound] < 0 {
            starts[bound].saturating_add(extent)
        } else {
            starts[bound]
        }
        .clamp(0, extent);
        let first = start + signed(site.part[at].start) * step;
        let end = start + (signed(site.part[at].end) - 1) * step + 1;
        if end > extent {
            return Err("its shapes do not fit".to_owned());
        }
        spans[bound] = Some(end - first);
        way = way.with_axis(0, at, &rows(first, end)?);
    }
    if spans.iter().all(Option::is_none) {
        return Ok(way);
    }
    let new = |old: &[i64], of_span: fn(i64) -> i64| -> Vec<i64> {
        let pairs = old.iter().zip(&spans);
        pairs.map(|(&old, span)| span.map_or(old, of_span)).collect()
    };
    let (new_starts, new_ends) = (new(starts, |_| 0), new(ends, |span| span));
    if is_attribute {
        let right = |list: Vec<i64>| vec![Some(Attribute::Ints(list))];
        return Ok(way.allow("starts", right(new_starts)).allow("ends", right(new_ends)));
    }
    way.operands[1] = Need::exactly(new_starts);
    // An end may lie behind the last row of the tile.
    let is_cut: Vec<bool> = spans.iter().map(Option::is_some).collect();
    let plain = new_ends.clone();
    let test = move |elements: &[i64]| {
        let ends = elements.iter().zip(&new_ends).zip(&is_cut);
        ends.into_iter()
            .all(|((&end, &right), &cut)| end == right || cut && end > right)
    };
    way.operands[2] = Need::Elements(Elements {
        plain,
        test: Box::new(test),
        open: Vec::new(),
    });
    Ok(way)
}

/// Operands: image, pads, value, axes; or the pads are an attribute.
pub(super) fn pad<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let dims = site.dims(0)?;
    let rank = site.rank();
    let is_attribute = site.op.attributes.contains_key("pads");
    let pads = match site.ints("pads") {
        Some(pads) => pads,
        None => site.integers(1)?,
    };
    let axes = match site.has(3) && !is_attribute {
        true => site
            .integers(3)?
            .iter()
            .map(|&named| axis(named, rank))
            .collect::<Result<Vec<usize>, _>>()?,
        false => (0..rank).collect(),
    };
    let mut seen = vec![false; rank];
    let is_sound = dims.len() == rank
        && pads.len() == 2 * axes.len()
        && axes.iter().all(|&axis| !std::mem::replace(&mut seen[axis], true));
    if !is_sound {
        return Err("its pads are not understood".to_owned());
    }
    let mut way = site.way()?;
    let mut new = pads.to_vec();
    for at in (0..rank).filter(|&at| !site.is_whole(at)) {
        let bound = axes.iter().position(|&axis| axis == at);
        let (begin, end) = bound.map_or((0, 0), |bound| (pads[bound], pads[bound + axes.len()]));
        if begin < 0 || end < 0 || (begin, end) != (0, 0) && !matches!(site.text("mode"), None | Some("constant")) {
            return Err("what it pads with depends on other rows".to_owned());
        }
        let (first, last) = (
            signed(site.part[at].start).checked_sub(begin),
            signed(site.part[at].end).checked_sub(begin),
        );
        let (Some(first), Some(last)) = (first, last) else {
            return Err("its pads are not understood".to_owned());
        };
        let needed = rows(first.max(0), last.min(signed(dims[at])))?;
        if let Some(bound) = bound {
            new[bound] = signed(needed.start) - first;
            new[bound + axes.len()] = last - signed(needed.end);
        }
        way = way.with_axis(0, at, &needed);
    }
    if new == pads {
        return Ok(way);
    }
    if is_attribute {
        return Ok(way.allow("pads", vec![Some(Attribute::Ints(new))]));
    }
    way.operands[1] = Need::exactly(new);
    Ok(way)
}

/// Axis `a` of the result is axis `perm[a]` of the operand.
pub(super) fn transpose<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let rank = site.rank();
    let mut way = site.way()?;
    let mut seen = vec![false; rank];
    for of in 0..rank {
        let from = match site.ints("perm") {
            Some(perm) => axis(*perm.get(of).ok_or("its axes are not understood")?, rank)?,
            None => rank - 1 - of,
        };
        if std::mem::replace(&mut seen[from], true) {
            return Err("its axes are not understood".to_owned());
        }
        way = way.with_axis(0, from, &site.part[of]);
    }
    Ok(way)
}
