//! The largest or smallest numbers along an axis, and their places.
#![expect(clippy::cast_possible_wrap, reason = "the shapes of tests are small")]

use std::cmp::Ordering;

use remat_ir::{Attribute, Op};

use super::rows::{Numbers, concat, places};

/// Which numbers are found, and in which order.
struct Ranking {
    axis: usize,
    count: usize,
    is_largest: bool,
    /// Of equal numbers the last one first.
    is_last: bool,
}

/// Numbers and their places, which are `known` or those along the axis.
fn ranked(numbers: &Numbers, known: Option<&Numbers>, ranking: &Ranking) -> [Numbers; 2] {
    let axis = ranking.axis;
    let at = |place: &[usize], row: usize| {
        let mut place = place.to_vec();
        place[axis] = row;
        place
    };
    let order = |place: &[usize]| {
        let mut rows: Vec<usize> = (0..numbers.dims[axis]).collect();
        if ranking.is_last {
            rows.reverse();
        }
        // Stable: of equal numbers those that stood first stay first.
        rows.sort_by(|&a, &b| {
            let order = numbers.at(&at(place, a)).partial_cmp(&numbers.at(&at(place, b)));
            let order = order.unwrap_or(Ordering::Equal);
            if ranking.is_largest { order.reverse() } else { order }
        });
        rows
    };
    let mut dims = numbers.dims.clone();
    dims[axis] = dims[axis].min(ranking.count);
    let found = |value: &dyn Fn(&[usize], usize) -> f64| {
        Numbers::from_fn(&dims, |place| value(&place, order(&place)[place[axis]]))
    };
    let values = found(&|place, row| numbers.at(&at(place, row)));
    let places = found(&|place, row| known.map_or(row as f64, |known| known.at(&at(place, row))));
    [values, places]
}

/// `ArgMax`, `ArgMin`, and `TopK` for so many: values and places, of the former places only.
pub(super) fn of_onnx(op: &Op, numbers: &Numbers, count: Option<i64>) -> Vec<Numbers> {
    let int = |name: &str, default: i64| op.attributes.get(name).and_then(Attribute::as_int).unwrap_or(default);
    let (rank, default) = (numbers.dims.len() as i64, if count.is_some() { -1 } else { 0 });
    let ranking = Ranking {
        axis: int("axis", default).rem_euclid(rank) as usize,
        count: count.unwrap_or(1) as usize,
        is_largest: op.op_type == "ArgMax" || count.is_some() && int("largest", 1) != 0,
        is_last: int("select_last_index", 0) != 0,
    };
    let [values, mut places] = ranked(numbers, None, &ranking);
    if count.is_some() {
        return vec![values, places];
    }
    if int("keepdims", 1) == 0 {
        places.dims.remove(ranking.axis);
    }
    vec![places]
}

/// `Best` of a part, and `CombineBest` of several: each number beside its place.
pub(super) fn best(op: &Op, operands: &[&Numbers]) -> Numbers {
    let int = |name: &str| op.attributes.get(name).and_then(Attribute::as_int).unwrap_or(0);
    let ranking = Ranking {
        axis: int("axis") as usize,
        count: int("count") as usize,
        is_largest: int("largest") != 0,
        is_last: int("last") != 0,
    };
    let found = match op.op_type.as_str() {
        "Best" => {
            let [values, mut places] = ranked(operands[0], None, &ranking);
            places.data.iter_mut().for_each(|place| *place += int("from") as f64);
            [values, places]
        }
        _ => {
            let [values, places] = [0, 1].map(|which| {
                let halves: Vec<Numbers> = operands.iter().map(|part| half(part, which)).collect();
                concat(&halves.iter().collect::<Vec<_>>(), ranking.axis)
            });
            ranked(&values, Some(&places), &ranking)
        }
    };
    let dims = [&found[0].dims[..], &[2]].concat();
    Numbers::from_fn(&dims, |mut place| {
        let which = place.pop().unwrap_or(0);
        found[which].at(&place)
    })
}

/// The numbers (0) or the places (1) of the best.
pub(super) fn half(best: &Numbers, which: usize) -> Numbers {
    let dims = &best.dims[..best.dims.len() - 1];
    let data = places(dims);
    Numbers {
        dims: dims.to_vec(),
        data: data
            .iter()
            .map(|place| best.at(&[&place[..], &[which]].concat()))
            .collect(),
    }
}
