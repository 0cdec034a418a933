//! A square matrix of bits, one row for each stage.

use std::ops::Range;

/// Bits in a word.
const WORD: usize = u64::BITS as usize;

/// A square matrix of bits: rows are stages, columns are ops. Takes `T * T / 8` bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageMatrix {
    size: usize,
    row_words: usize,
    words: Vec<u64>,
}

impl StageMatrix {
    /// The matrix of that many rows and columns, with no bit set.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let row_words = size.div_ceil(WORD);
        Self {
            size,
            row_words,
            words: vec![0; size * row_words],
        }
    }

    /// Number of rows, and of columns.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether a bit is set. Rows and columns behind the end have none.
    #[must_use]
    pub fn get(&self, stage: usize, op: usize) -> bool {
        stage < self.size && op < self.size && self.words[stage * self.row_words + op / WORD] >> (op % WORD) & 1 == 1
    }

    /// Sets a bit.
    ///
    /// # Panics
    /// If row or column is not below [`size`](Self::size).
    pub fn set(&mut self, stage: usize, op: usize) {
        assert!(stage < self.size && op < self.size, "({stage}, {op}) of {}", self.size);
        self.words[stage * self.row_words + op / WORD] |= 1 << (op % WORD);
    }

    /// Sets the bits of a row in a range of columns.
    ///
    /// # Panics
    /// As [`set`](Self::set).
    pub fn set_range(&mut self, stage: usize, ops: Range<usize>) {
        let Some(last) = ops.end.checked_sub(1).filter(|&last| last >= ops.start) else {
            return;
        };
        assert!(
            stage < self.size && last < self.size,
            "({stage}, {last}) of {}",
            self.size
        );
        let row = &mut self.words[stage * self.row_words..(stage + 1) * self.row_words];
        for (index, word) in row.iter_mut().enumerate().take(last / WORD + 1).skip(ops.start / WORD) {
            let from = ops.start.saturating_sub(index * WORD);
            let to = (last - index * WORD).min(WORD - 1);
            *word |= u64::MAX << from & u64::MAX >> (WORD - 1 - to);
        }
    }

    /// The columns whose bits are set in a row, ascending.
    pub fn row(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        self.words_of(stage).iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(index * WORD + bit)
            })
        })
    }

    /// The last column before `end` whose bit is set in a row.
    pub(super) fn last_before(&self, stage: usize, end: usize) -> Option<usize> {
        let words = self.words_of(stage);
        let last = end.checked_sub(1)?;
        let mask = u64::MAX >> (WORD - 1 - last % WORD);
        let first_look = words[last / WORD] & mask;
        let looks = words[..last / WORD].iter().enumerate().rev();
        std::iter::once((last / WORD, &first_look))
            .chain(looks)
            .find(|&(_, &word)| word != 0)
            .map(|(index, &word)| index * WORD + WORD - 1 - word.leading_zeros() as usize)
    }

    /// Sets in row `stage` what `other` has in row `stage + 1` and not in row `stage`.
    pub(super) fn add_gain(&mut self, stage: usize, other: &Self) {
        if stage + 1 >= self.size {
            return;
        }
        let own = &mut self.words[stage * self.row_words..(stage + 1) * self.row_words];
        for ((own, &before), &after) in own.iter_mut().zip(other.words_of(stage)).zip(other.words_of(stage + 1)) {
            *own |= after & !before;
        }
    }

    fn words_of(&self, stage: usize) -> &[u64] {
        &self.words[stage * self.row_words..(stage + 1) * self.row_words]
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

    #[test]
    fn the_last_before_an_end_is_found_in_the_same_word_and_in_earlier_ones() {
        let mut matrix = StageMatrix::new(130);
        matrix.set(1, 3);
        matrix.set(1, 64);
        let last = |end| matrix.last_before(1, end);
        assert_eq!(
            [last(130), last(65), last(64), last(4), last(3), last(0)],
            [Some(64), Some(64), Some(3), Some(3), None, None]
        );
    }
}
