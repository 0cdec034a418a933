//! Which sections have no floor yet.

use alloc::vec::Vec;

use crate::place::instance::{Item, Span};

/// What estimating needs room for.
#[derive(Default)]
pub(super) struct Estimate {
    /// Buffers and offsets below which they cannot lie, ascending, where these are above those of the node.
    pub(super) raised: Vec<(i64, Item)>,
    pub(super) bare: Bare,
}

/// The sections without a floor, as bits.
#[derive(Default)]
pub(super) struct Bare {
    words: Vec<u64>,
    pub(super) left: u32,
}

impl Bare {
    pub(super) fn reset(&mut self, sections: &Span) {
        self.words.clear();
        self.words.resize(sections.end.div_ceil(64), 0);
        self.left = 0;
        for (word, mask) in words(sections) {
            self.words[word] = mask;
            self.left += mask.count_ones();
        }
    }

    pub(super) fn any(&self, span: &Span) -> bool {
        words(span).any(|(word, mask)| self.words[word] & mask != 0)
    }

    /// Calls `each` for those of the span, which get a floor.
    pub(super) fn cover(&mut self, span: &Span, mut each: impl FnMut(usize)) {
        for (word, mask) in words(span) {
            let mut found = self.words[word] & mask;
            self.words[word] &= !mask;
            self.left -= found.count_ones();
            while found != 0 {
                each(word * 64 + found.trailing_zeros() as usize);
                found &= found - 1;
            }
        }
    }
}

/// The words that hold the bits of a span, and which bits these are.
fn words(span: &Span) -> impl Iterator<Item = (usize, u64)> + use<> {
    let (start, end) = (span.start, span.end);
    (start / 64..end.div_ceil(64)).map(move |word| {
        let from = if word == start / 64 {
            u64::MAX << (start % 64)
        } else {
            u64::MAX
        };
        let to = if word == end / 64 {
            !(u64::MAX << (end % 64))
        } else {
            u64::MAX
        };
        (word, from & to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_get_one_floor() {
        let mut bare = Bare::default();
        bare.reset(&(3..130));
        assert_eq!(bare.left, 127);
        let mut covered = Vec::new();
        bare.cover(&(60..70), |section| covered.push(section));
        assert_eq!(covered, (60..70).collect::<Vec<_>>());
        bare.cover(&(62..66), |section| panic!("{section} has a floor"));
        assert!(bare.any(&(69..71)) && !bare.any(&(61..70)));
        covered.clear();
        bare.cover(&(64..128), |section| covered.push(section));
        assert_eq!(covered, (70..128).collect::<Vec<_>>());
        assert_eq!(bare.left, 57 + 2);
    }
}
