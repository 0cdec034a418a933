//! Operators that look at one element of each operand for an element of the result.

use super::{Cut, Need, Reason, Site};

/// Operands broadcast to the result: the same rows, or all where an operand has one row or does not have the axis.
pub(super) fn broadcast(site: &Site<'_>) -> Result<Cut, Reason> {
    let needs = (0..site.op.inputs.len()).map(|place| site.aligned(place));
    Ok(Cut {
        needs: needs.collect::<Result<_, _>>()?,
        ..Cut::default()
    })
}

/// Scale and zero point are one number, or one each along `axis`; blocks along an axis have no rule.
pub(super) fn quantize(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.int("block_size", 0) != 0 {
        return Err(Reason::Attribute("block_size"));
    }
    let channel = site.axis_of(site.int("axis", 1), site.out.len().max(2));
    let mut cut = site.same_rows(site.axis);
    for place in 1..site.op.inputs.len() {
        if site.operand(place).is_none() {
            continue;
        }
        let is_vector = match site.dims(place)?.as_slice() {
            [] | [1] => false,
            [_] => true,
            _ => return Err(Reason::Attribute("axis")),
        };
        if is_vector && channel? == site.axis {
            cut.needs[place] = Need::Rows {
                axis: 0,
                rows: site.rows.clone(),
            };
        }
    }
    Ok(cut)
}
