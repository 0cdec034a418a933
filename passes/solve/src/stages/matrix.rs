//! A square matrix of bits, one row for each stage.

use std::ops::Range;

use fixedbitset::FixedBitSet;

/// A square matrix of bits: rows are stages, columns are ops. Takes `T * T / 8` bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageMatrix(Vec<FixedBitSet>);

impl StageMatrix {
    /// The matrix of that many rows and columns, with no bit set.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self(vec![FixedBitSet::with_capacity(size); size])
    }

    /// Number of rows, and of columns.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Whether a bit is set. Rows and columns behind the end have none.
    #[must_use]
    pub fn get(&self, stage: usize, op: usize) -> bool {
        self.0.get(stage).is_some_and(|row| row.contains(op))
    }

    /// Sets a bit; says whether it was set before.
    ///
    /// # Panics
    /// If row or column is not below [`size`](Self::size).
    pub fn set(&mut self, stage: usize, op: usize) -> bool {
        self.0[stage].put(op)
    }

    /// Sets the bits of a row in a range of columns.
    ///
    /// # Panics
    /// As [`set`](Self::set).
    pub fn set_range(&mut self, stage: usize, ops: Range<usize>) {
        if !ops.is_empty() {
            self.0[stage].insert_range(ops);
        }
    }

    /// The columns whose bits are set in a row, ascending.
    pub fn row(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        self.0[stage].ones()
    }

    /// Sets in row `stage` what `other` has in row `stage + 1` and not in row `stage`.
    pub(super) fn add_gain(&mut self, stage: usize, other: &Self) {
        if let Some(after) = other.0.get(stage + 1) {
            let mut gain = after.clone();
            gain.difference_with(&other.0[stage]);
            self.0[stage].union_with(&gain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_give_back_what_was_set_across_words() {
        let mut matrix = StageMatrix::new(130);
        for op in [0, 63, 64, 127, 128, 129] {
            matrix.set(5, op);
        }
        assert_eq!(matrix.row(5).collect::<Vec<_>>(), [0, 63, 64, 127, 128, 129]);
        assert_eq!(matrix.row(4).count() + matrix.row(6).count(), 0);
        assert!(matrix.get(5, 64) && !matrix.get(5, 65) && !matrix.get(130, 0) && !matrix.get(5, 130));
    }

    #[test]
    fn a_range_is_set_to_its_ends_and_no_further() {
        for (start, end) in [
            (0, 0),
            (3, 2),
            (0, 1),
            (63, 64),
            (63, 65),
            (5, 130),
            (64, 128),
            (129, 130),
        ] {
            let mut matrix = StageMatrix::new(130);
            matrix.set_range(2, start..end);
            assert_eq!(matrix.row(2).collect::<Vec<_>>(), (start..end).collect::<Vec<_>>());
        }
    }
}
