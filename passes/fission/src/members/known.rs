//! Roles of what is known before a run.

use remat_ir::{ElementType, TensorId};

use super::{BatchSample, FEW, Role, Walk};

impl Walk {
    /// The role that the elements of a tensor say, where all samples with few members know them. `axis` is the one that is the batch.
    pub(super) fn role_of_elements(&self, tensor: TensorId, axis: Option<usize>) -> Option<Role> {
        // Of each setting what the first sample has, and the first member in it.
        let mut firsts: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut is_same = true;
        for sample in &self.samples {
            let Some(bytes) = sample.known.get(&tensor) else {
                if sample.members > FEW {
                    continue;
                }
                return None;
            };
            let parts = match axis {
                None => vec![bytes.clone()],
                Some(axis) => (0..sample.members)
                    .map(|member| rows_of(sample, tensor, axis, member))
                    .collect::<Option<_>>()?,
            };
            for part in parts {
                match firsts.iter().find(|(setting, _)| *setting == sample.setting) {
                    Some((_, first)) => is_same &= *first == part,
                    None => firsts.push((sample.setting, part)),
                }
            }
        }
        Some(match (axis, is_same) {
            (None, true) => Role::Same,
            (None, false) => Role::Size,
            (Some(axis), true) => Role::Members(axis),
            (Some(axis), false) => Role::Places(axis),
        })
    }

    /// Gives a tensor its role. Rules read the integers of what has no batch only: those of others differ from member to member.
    pub(super) fn settle(&mut self, tensor: TensorId, role: Role) {
        self.roles[tensor] = role;
        for sample in &mut self.samples {
            let found = match role {
                Role::Same | Role::Size => integers(sample, tensor),
                Role::Members(_) | Role::Places(_) => {
                    sample.graph.values.remove(&tensor);
                    None
                }
            };
            if let Some(found) = found {
                sample.graph.values.insert(tensor, found);
            }
        }
    }
}

/// Elements of a tensor of integers, where they are known.
pub(super) fn integers(sample: &BatchSample, tensor: TensorId) -> Option<Vec<i64>> {
    let bytes = sample.known.get(&tensor)?;
    match sample.graph.tensors[tensor].ty.element()? {
        ElementType::Int64 => Some(bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()),
        ElementType::Int32 => {
            let numbers = bytes.as_chunks().0.iter();
            Some(numbers.map(|&b| i64::from(i32::from_le_bytes(b))).collect())
        }
        _ => None,
    }
}

/// The bytes of a member's rows along an axis, one after the other.
fn rows_of(sample: &BatchSample, tensor: TensorId, axis: usize, member: u64) -> Option<Vec<u8>> {
    let bytes = sample.known.get(&tensor)?;
    let shape = sample.graph.tensors[tensor].ty.known_shape()?;
    let outer: u64 = shape.get(..axis)?.iter().product();
    if outer == 0 || sample.members == 0 {
        return Some(Vec::new());
    }
    let (outer, members) = (usize::try_from(outer).ok()?, usize::try_from(sample.members).ok()?);
    // Elements of less than a byte have no rows of whole bytes.
    let size = bytes.len().checked_div(outer)?.checked_div(members)?;
    if size * outer * members != bytes.len() {
        return None;
    }
    let member = usize::try_from(member).ok()?;
    let starts = (0..outer).map(|outer| (outer * members + member) * size);
    let parts: Option<Vec<&[u8]>> = starts.map(|start| bytes.get(start..start + size)).collect();
    Some(parts?.concat())
}
