//! Buffers in flat arrays: sections of time instead of times, units instead of bytes.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::dense::{Id, Lists, Table, dense_id};
use crate::place::buffer::Buffer;

dense_id!(
    /// A buffer of an [`Instance`].
    Item
);

/// Sections of time, as positions in lists of sections.
pub(crate) type Span = Range<usize>;

/// Buffers that are placed together.
///
/// A *section* stands for the times at which a largest set of buffers takes bytes: at every other time only some of these do. Sections
/// follow each other in time. A buffer without gaps takes its bytes in consecutive ones.
///
/// A *unit* divides all sizes, pinned offsets and alignments, but alignments that divide it themselves. Where every buffer lies as low as
/// those below it allow, all offsets are multiples of it.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Bytes of a unit.
    pub(crate) unit: u64,
    /// In units.
    pub(crate) size: Table<Item, i64>,
    /// In units, at least 1.
    pub(crate) alignment: Table<Item, i64>,
    /// In units.
    pub(crate) pinned: Table<Item, Option<i64>>,
    /// The sections in which it takes its bytes, ascending and apart.
    pub(crate) spans: Lists<Item, Span>,
    /// How long it takes its bytes, in units of time.
    pub(crate) life: Table<Item, u64>,
    /// In units, what is taken in each section.
    pub(crate) load: Vec<i64>,
    /// In units: no placement is lower.
    pub(crate) bound: i64,
}

impl Instance {
    /// Sizes are not 0. Takes time `n log n`.
    pub(crate) fn new(buffers: &[Buffer]) -> Self {
        let unit = unit(buffers.iter());
        let units = |bytes: u64| i64::try_from(bytes / unit).unwrap_or(i64::MAX);
        let (spans, sections) = sections(buffers);
        let size: Table<Item, i64> = buffers.iter().map(|buffer| units(buffer.size)).collect();
        let alignment: Table<Item, i64> = buffers.iter().map(|buffer| units(buffer.alignment).max(1)).collect();
        let pinned: Table<Item, Option<i64>> = buffers.iter().map(|buffer| buffer.pinned.map(units)).collect();
        let life = |buffer: &Buffer| buffer.taken().map(|times| times.end - times.start).sum();
        let load = loads(&spans, &size, sections);
        let ends = pinned
            .iter()
            .zip(&size)
            .filter_map(|(pinned, size)| Some((*pinned)? + size));
        let bound = padded_bound(&spans, &size, &alignment, sections)
            .max(load.iter().max().copied().unwrap_or(0))
            .max(ends.max().unwrap_or(0));
        Self {
            unit,
            size,
            alignment,
            pinned,
            spans,
            life: buffers.iter().map(life).collect(),
            load,
            bound,
        }
    }

    /// Number of buffers.
    pub(crate) fn len(&self) -> usize {
        self.size.len()
    }

    /// Number of sections.
    pub(crate) fn sections(&self) -> usize {
        self.load.len()
    }

    /// From its first section to its last, gaps included.
    pub(crate) fn hull(&self, item: Item) -> Span {
        let spans = &self.spans[item];
        spans[0].start..spans[spans.len() - 1].end
    }

    /// The section in which these buffers take most together, the first of such.
    pub(crate) fn fullest(&self, items: &[Item]) -> usize {
        let mut change = vec![0; self.sections() + 1];
        for &item in items {
            let hull = self.hull(item);
            change[hull.start] += self.size[item];
            change[hull.end] -= self.size[item];
        }
        let (mut load, mut most, mut fullest) = (0, 0, 0);
        for (section, change) in change.into_iter().enumerate() {
            load += change;
            if load > most {
                (most, fullest) = (load, section);
            }
        }
        fullest
    }

    /// The lowest offset from `from` on that the buffer may have.
    pub(crate) fn aligned(&self, item: Item, from: i64) -> i64 {
        let alignment = self.alignment[item];
        if alignment == 1 {
            from
        } else {
            (from + alignment - 1) / alignment * alignment
        }
    }

    /// The highest offset up to `to` that the buffer may have; below 0 where `to` is.
    pub(crate) fn aligned_down(&self, item: Item, to: i64) -> i64 {
        let alignment = self.alignment[item];
        if alignment == 1 {
            to
        } else {
            to - to.rem_euclid(alignment)
        }
    }

    /// The end of the buffer that ends last.
    pub(crate) fn height(&self, offsets: &Table<Item, i64>) -> i64 {
        let ends = offsets.iter().zip(&self.size).map(|(offset, size)| offset + size);
        ends.max().unwrap_or(0)
    }

    /// Whether two buffers take bytes in the same section.
    pub(crate) fn meet(&self, a: Item, b: Item) -> bool {
        let (first, second) = (&self.spans[a], &self.spans[b]);
        let meet = |a: &Span, b: &Span| a.start < b.end && b.start < a.end;
        first.iter().any(|a| second.iter().any(|b| meet(a, b)))
    }

    /// The buffers that take bytes in the same section as each buffer; `None` if there are more than `most` pairs.
    pub(crate) fn neighbours(&self, most: usize) -> Option<Table<Item, Vec<Item>>> {
        let mut order: Vec<Item> = self.size.keys().collect();
        order.sort_by_key(|&item| self.hull(item).start);
        let mut neighbours: Table<Item, Vec<Item>> = Table::filled(Vec::new(), self.len());
        let mut left = most;
        for (at, &item) in order.iter().enumerate() {
            let end = self.hull(item).end;
            let later = order[at + 1..]
                .iter()
                .take_while(|&&other| self.hull(other).start < end);
            for &other in later.filter(|&&other| self.meet(item, other)) {
                neighbours[item].push(other);
                neighbours[other].push(item);
                left = left.checked_sub(1)?;
            }
        }
        Some(neighbours)
    }
}

/// The largest number that divides all of these.
pub(crate) fn gcd(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let two = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    numbers.into_iter().fold(0, two)
}

/// The largest unit, in bytes.
pub(crate) fn unit<'a>(buffers: impl Iterator<Item = &'a Buffer> + Clone) -> u64 {
    let sizes = buffers.clone().map(|buffer| buffer.size);
    let pinned = buffers.clone().filter_map(|buffer| buffer.pinned);
    let mut unit = gcd(sizes.chain(pinned)).max(1);
    let mut alignments: Vec<u64> = buffers.map(|buffer| buffer.alignment).collect();
    alignments.sort_unstable();
    alignments.dedup();
    // An alignment that changes the unit may make others change it again.
    while let Some(&other) = alignments
        .iter()
        .find(|&&alignment| !unit.is_multiple_of(alignment) && !alignment.is_multiple_of(unit))
    {
        unit = gcd([unit, other]);
    }
    unit
}

/// The sections of every buffer, and how many there are. Between the start of a buffer and the next end of one there is a section.
fn sections(buffers: &[Buffer]) -> (Lists<Item, Span>, usize) {
    let mut starts: Vec<(u64, Item, usize)> = Vec::with_capacity(buffers.len());
    let mut ends: Vec<(u64, Item, usize)> = Vec::with_capacity(buffers.len());
    for (index, buffer) in buffers.iter().enumerate() {
        for (piece, times) in buffer.taken().enumerate() {
            starts.push((times.start, Item::at(index), piece));
            ends.push((times.end, Item::at(index), piece));
        }
    }
    starts.sort_unstable();
    ends.sort_unstable();
    let mut spans: Lists<Item, Span> = Lists::of(buffers.iter().map(|buffer| buffer.taken().map(|_| 0..0)));
    let (mut sections, mut has_started) = (0, false);
    let mut starts = starts.into_iter().peekable();
    for (end, item, piece) in ends {
        while let Some((_, started, piece)) = starts.next_if(|&(start, ..)| start < end) {
            spans[started][piece].start = sections;
            has_started = true;
        }
        if core::mem::take(&mut has_started) {
            sections += 1;
        }
        spans[item][piece].end = sections;
    }
    (spans, sections)
}

fn loads(spans: &Lists<Item, Span>, size: &Table<Item, i64>, sections: usize) -> Vec<i64> {
    let mut change = vec![0; sections + 1];
    for (spans, size) in spans.iter().zip(size) {
        for span in spans {
            change[span.start] += size;
            change[span.end] -= size;
        }
    }
    let mut load = 0;
    change.pop();
    for change in &mut change {
        load += *change;
        *change = load;
    }
    change
}

/// Offsets are multiples of what all alignments have in common, so every buffer but the highest one of a section takes a multiple of it.
fn padded_bound(
    spans: &Lists<Item, Span>,
    size: &Table<Item, i64>,
    alignment: &Table<Item, i64>,
    sections: usize,
) -> i64 {
    let common = alignment.iter().map(|&alignment| alignment.unsigned_abs());
    let common = i64::try_from(gcd(common)).unwrap_or(1).max(1);
    let padded: Table<Item, i64> = size.iter().map(|size| (size + common - 1) / common * common).collect();
    let padding = padded.iter().zip(size).map(|(padded, size)| padded - size);
    let highest = loads(spans, &padded, sections).into_iter().max();
    highest.unwrap_or(0) - padding.max().unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "spans are ranges")]
mod tests {
    use super::*;

    fn buffer(size: u64, alignment: u64, taken: &[Range<u64>]) -> Buffer {
        Buffer {
            alignment,
            ..Buffer::at_times(size, taken)
        }
    }

    #[test]
    fn sections_are_the_times_at_which_most_is_alive() {
        let instance = Instance::new(&[
            buffer(8, 1, &[0..2]),
            buffer(8, 1, &[1..4]),
            buffer(8, 1, &[3..6]),
            buffer(8, 1, &[5..7]),
            buffer(8, 1, &[0..1, 6..7]),
        ]);
        let spans: Vec<_> = instance.spans.iter().map(<[Span]>::to_vec).collect();
        assert_eq!(
            spans,
            [vec![0..2], vec![1..3], vec![2..4], vec![3..5], vec![0..1, 4..5]]
        );
        assert_eq!(instance.load, [2, 2, 2, 2, 2]);
        assert_eq!((instance.unit, instance.bound), (8, 2));
    }

    #[test]
    fn neighbours_are_those_alive_together() {
        let instance = Instance::new(&[buffer(8, 1, &[0..2]), buffer(8, 1, &[1..4]), buffer(8, 1, &[2..6])]);
        let neighbours = instance.neighbours(2).unwrap();
        let ids: Vec<Vec<usize>> = neighbours
            .iter()
            .map(|items| items.iter().map(|item| item.position()).collect())
            .collect();
        assert_eq!(ids, [vec![1], vec![0, 2], vec![1]]);
        assert!(instance.neighbours(1).is_none());
    }

    #[test]
    fn a_unit_divides_sizes_and_alignments_that_are_larger() {
        let unit_of = |buffers: &[(u64, u64)]| {
            let buffers: Vec<_> = buffers
                .iter()
                .map(|&(size, alignment)| buffer(size, alignment, &[0..1]))
                .collect();
            unit(buffers.iter())
        };
        assert_eq!(unit_of(&[(128, 64), (192, 1)]), 64);
        assert_eq!(unit_of(&[(100, 64), (300, 1)]), 4);
        assert_eq!(unit_of(&[(12, 8), (24, 3)]), 1);
    }

    #[test]
    fn padding_raises_the_bound() {
        let instance = Instance::new(&[buffer(4, 64, &[0..1]), buffer(4, 64, &[0..1]), buffer(4, 64, &[0..1])]);
        assert_eq!(instance.bound * 4, 132);
    }
}
