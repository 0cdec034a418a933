//! Members that find their own rows by their place in the batch: `data[place, ...]`, as exporters write masks.

use remat_ir::{Attribute, OpId};
use remat_operators::{Split, operator};

use super::known::integers;
use super::{BatchSample, FEW, Role, Walk};

/// The operand that has the indices.
const INDICES: usize = 1;

/// Whether an operand of this family may be a place: it says where rows lie, and is no part of the result.
pub(super) fn are_indices(family: Split, place: usize) -> bool {
    matches!(family, Split::Gather | Split::GatherTuples) && place == INDICES
}

/// Whether an op picks rows of a member from all members, the batch being this axis of the operand at this place: every index along the batch is the member's
/// own place, and all other indices are the same for every member and at every size of the batch.
pub(super) fn names_itself(
    walk: &Walk,
    sample: &BatchSample,
    op: OpId,
    (place, axis): (usize, usize),
    member: u64,
) -> bool {
    // A sample with many members may have too many indices to know them.
    let knows = |other: &BatchSample| {
        let indices = other.graph.ops[op].inputs.get(INDICES).copied().flatten();
        indices.is_some_and(|indices| other.known.contains_key(&indices))
    };
    let mut others = walk
        .samples
        .iter()
        .filter(|other| other.setting == sample.setting && (other.members <= FEW || knows(other)));
    if place != 0 || sample.members > FEW && !knows(sample) {
        return place == 0;
    }
    tuples(walk, sample, op, axis, member)
        .is_some_and(|own| others.all(|other| tuples(walk, other, op, axis, 0).is_some_and(|first| first == own)))
}

/// The indices of a member without those along the batch; none where those are not its own place.
fn tuples(walk: &Walk, sample: &BatchSample, op: OpId, axis: usize, member: u64) -> Option<Vec<i64>> {
    let entry = &sample.graph.ops[op];
    let data = sample.graph.tensors[entry.inputs.first().copied()??].ty.known_shape()?;
    let indices = entry.inputs.get(INDICES).copied()??;
    let shape = sample.graph.tensors[indices].ty.known_shape()?;
    let Role::Places(batch) = walk.roles[indices] else {
        return None;
    };
    // How many axes of the data an index names, and which of them is the batch.
    let (length, own) = match operator(&entry.domain, &entry.op_type).split {
        Split::GatherTuples if batch + 1 < shape.len() => (usize::try_from(*shape.last()?).ok()?, axis),
        Split::Gather => {
            let stated = entry.attributes.get("axis").and_then(Attribute::as_int).unwrap_or(0);
            let rank = i64::try_from(data.len()).ok()?;
            let gathered = usize::try_from(if stated < 0 { stated + rank } else { stated }).ok()?;
            if gathered != axis {
                return None;
            }
            (1, 0)
        }
        _ => return None,
    };
    // A member is one row of the data.
    let rows = *data.get(axis)?;
    if own >= length || rows != sample.members {
        return None;
    }
    let elements = integers(sample, indices)?;
    let each = usize::try_from(shape.get(batch)?.checked_div(sample.members)?).ok()?;
    let inner: u64 = shape.get(batch + 1..)?.iter().product();
    let size = usize::try_from(inner).ok()?.checked_mul(each)?;
    let members = usize::try_from(sample.members).ok()?;
    let member_place = usize::try_from(member).ok()?;
    if size == 0 || length == 0 {
        return None;
    }
    let runs = elements.chunks(size).skip(member_place).step_by(members);
    let mut others = Vec::new();
    for tuple in runs.flat_map(|run| run.chunks(length)) {
        let place = *tuple.get(own)?;
        let place = if place < 0 {
            place.checked_add_unsigned(rows)?
        } else {
            place
        };
        if u64::try_from(place).ok()? != member {
            return None;
        }
        others.extend(
            tuple
                .iter()
                .enumerate()
                .filter(|&(at, _)| at != own)
                .map(|(_, &index)| index),
        );
    }
    Some(others)
}
