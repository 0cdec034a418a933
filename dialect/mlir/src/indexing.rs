//! How ops index what they read and write, as attributes from which tiles of them follow.
//!
//! `extents` are those of the loops; `result_map` and, for operand `n`, `map{n}` have for each axis a coefficient for each loop, then a constant.
//! An operand without a map is read whole: a scalar, or an empty tensor. Operands of the parts of an op, which prepare its destination, are
//! indexed through the destination.

use melior::ir::ValueLike;
use remat_ir::Attribute;

use crate::ffi::tiles::{self, Indexing};
use crate::types::value_type;
use crate::units::{Role, Table};

/// The attributes of the op that ends with the operation at `position`; `None` where nothing is known.
pub(crate) fn indexing(table: &Table<'_>, position: usize) -> Option<Vec<(String, Attribute)>> {
    let entry = &table.entries[position];
    let own = tiles::indexing(entry.op)?;
    let width = own.extents.len() + 1;
    let mut maps = own.operands.clone();
    // In the order in which the op reads: the operands of its last operation, then those that its parts have from outside.
    for &member in table.members(position).iter().filter(|&&member| member != position) {
        let part = tiles::indexing(table.entries[member].op)?;
        if !writes_in_order(&part) || shape(&part) != shape_of_result(&own, table, position) {
            return None;
        }
        for (number, &operand) in table.entries[member].operands.iter().enumerate() {
            let maker = operand.and_then(|value| table.values[value].maker);
            let is_inside =
                maker.is_some_and(|maker| matches!(table.entries[maker].role, Role::PartOf(of) if of == member));
            let is_empty = maker.is_some_and(|maker| table.entries[maker].is_empty_tensor());
            let inner = part.operands.get(number).filter(|_| !is_empty);
            if operand.is_some() && !is_inside {
                let map = inner.map(|map| through(map, part.extents.len() + 1, &own.result, width));
                maps.push(map.unwrap_or_default());
            }
        }
    }
    let empties = |operand: usize| table.empties(position).any(|(index, _)| index == operand);
    let mut attributes = vec![
        ("extents".to_owned(), Attribute::Ints(own.extents)),
        ("result_map".to_owned(), Attribute::Ints(own.result)),
    ];
    for (operand, map) in maps.into_iter().enumerate() {
        if !map.is_empty() && !empties(operand) {
            attributes.push((format!("map{operand}"), Attribute::Ints(map)));
        }
    }
    Some(attributes)
}

/// Whether loop `n` is axis `n` of the result.
fn writes_in_order(part: &Indexing) -> bool {
    let width = part.extents.len() + 1;
    let mut rows = part.result.chunks(width).enumerate();
    part.result.len() == width * (width - 1)
        && rows.all(|(axis, row)| row.iter().enumerate().all(|(at, &by)| by == i64::from(at == axis)))
}

fn shape(part: &Indexing) -> Option<Vec<u64>> {
    part.extents.iter().map(|&extent| u64::try_from(extent).ok()).collect()
}

fn shape_of_result(own: &Indexing, table: &Table<'_>, position: usize) -> Option<Vec<u64>> {
    let value = table.values[table.entries[position].first_result].value;
    let dims = value_type(value.r#type(), None).known_shape()?;
    (own.result.len() == dims.len() * (own.extents.len() + 1)).then_some(dims)
}

/// The map of an operand of a part, whose loops are the axes of the destination, in the loops of the op, which indexes the destination by `outer`.
fn through(map: &[i64], inner_width: usize, outer: &[i64], width: usize) -> Vec<i64> {
    let mut rows = Vec::new();
    for row in map.chunks(inner_width) {
        let mut sum = vec![0; width];
        let (coefficients, constant) = row.split_at(inner_width - 1);
        for (&by, outer) in coefficients.iter().zip(outer.chunks(width)) {
            for (sum, &outer) in sum.iter_mut().zip(outer) {
                *sum += by * outer;
            }
        }
        if let (Some(last), Some(&constant)) = (sum.last_mut(), constant.first()) {
            *last += constant;
        }
        rows.extend(sum);
    }
    rows
}
