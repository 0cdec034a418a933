//! Einstein's sum, by its definition.

use std::collections::BTreeMap;

use super::Call;
use super::array::{Array, each};

impl Call<'_> {
    /// With or without ellipsis; a result that is not stated has the letters that stand once.
    pub(super) fn einsum(&self) -> Array {
        let equation = self.text("equation").unwrap_or_default().replace(' ', "");
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left.to_owned(), Some(right.to_owned())),
            None => (equation, None),
        };
        let arrays: Vec<&Array> = self.operands.iter().flatten().copied().collect();
        let terms: Vec<Vec<char>> = left
            .split(',')
            .zip(&arrays)
            .map(|(term, array)| spelled(term, array.dims.len()))
            .collect();
        let mut extents: BTreeMap<char, usize> = BTreeMap::new();
        for (term, array) in terms.iter().zip(&arrays) {
            for (&letter, &dim) in term.iter().zip(&array.dims) {
                let extent = extents.entry(letter).or_insert(dim);
                *extent = (*extent).max(dim);
            }
        }
        let result = match right {
            Some(right) => spelled(&right, right.replace("...", "").len() + ellipsis(&extents)),
            None => {
                let times = |letter: &char| terms.iter().flatten().filter(|&other| other == letter).count();
                let under = extents.keys().rev().filter(|letter| letter.is_ascii_digit());
                let alone = extents
                    .keys()
                    .filter(|letter| !letter.is_ascii_digit() && times(letter) == 1);
                under.chain(alone).copied().collect()
            }
        };
        let summed: Vec<char> = extents
            .keys()
            .copied()
            .filter(|letter| !result.contains(letter))
            .collect();
        let summed_dims: Vec<usize> = summed.iter().map(|letter| extents[letter]).collect();
        Array::from_fn(result.iter().map(|letter| extents[letter]).collect(), |at| {
            let mut sum = 0_i64;
            each(&summed_dims, |inner| {
                let place = |letter: char| match result.iter().position(|&other| other == letter) {
                    Some(axis) => at[axis],
                    None => inner[summed.iter().position(|&other| other == letter).unwrap_or(0)],
                };
                let factors = terms.iter().zip(&arrays).map(|(term, array)| {
                    let own: Vec<usize> = term.iter().map(|&letter| place(letter)).collect();
                    array.at_right(&own)
                });
                sum = sum.wrapping_add(factors.fold(1, i64::wrapping_mul));
            });
            sum
        })
    }
}

/// How many axes stand under the ellipsis.
fn ellipsis(extents: &BTreeMap<char, usize>) -> usize {
    extents.keys().filter(|letter| letter.is_ascii_digit()).count()
}

/// A letter for each axis: those under the ellipsis are digits, the last one 0.
fn spelled(term: &str, rank: usize) -> Vec<char> {
    let under = rank - term.replace("...", "").len();
    let digits: String = (0..under)
        .rev()
        .filter_map(|place| char::from_digit(place as u32, 10))
        .collect();
    term.replace("...", &digits).chars().collect()
}
