//! A second opinion: another method is asked where the search gets no further. Its placements are checked, its bounds are believed.

use alloc::vec::Vec;
use core::ops::Range;

use crate::dense::Table;
use crate::place::buffer::Buffer;
use crate::place::instance::{Instance, Item};

/// What another method is asked.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Valid buffers with sizes above 0, connected in time.
    pub buffers: &'a [Buffer],
    /// Heights that are of use: a placement of the first is as good as any lower one, and only one below the end is better than what is known.
    pub heights: Range<u64>,
    /// The offsets of a placement whose height is that end or, where a capacity is sought, more.
    pub start: &'a [u64],
}

/// What another method found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opinion {
    /// Offsets of a placement whose height is of use.
    pub offsets: Option<Vec<u64>>,
    /// No placement is lower, unless this is the first height of use: then nothing is said.
    pub bound: u64,
}

/// Another method to find offsets of buffers in one block, and to prove that there are no lower ones.
pub trait Second {
    /// Seeks a placement; `None` where the buffers are too many for it.
    fn ask(&mut self, question: &Question<'_>) -> Option<Opinion>;
}

/// What the other method says of a part, in units.
pub(crate) struct Heard {
    /// A placement whose height is of use.
    pub(crate) offsets: Option<Table<Item, i64>>,
    /// No placement is lower; 0 where nothing is said.
    pub(crate) bound: i64,
}

/// Asks for a placement below `end`; one of the height `enough` is as good as any lower one. What is known are these offsets.
pub(crate) fn ask(
    second: &mut dyn Second,
    instance: &Instance,
    neighbours: &Table<Item, Vec<Item>>,
    offsets: &Table<Item, i64>,
    enough: i64,
    end: i64,
) -> Option<Heard> {
    let buffers: Vec<Buffer> = instance.size.keys().map(|item| buffer(instance, item)).collect();
    let start: Vec<u64> = offsets.iter().map(|offset| offset.unsigned_abs()).collect();
    let opinion = second.ask(&Question {
        buffers: &buffers,
        heights: enough.unsigned_abs()..end.unsigned_abs(),
        start: &start,
    })?;
    let found = opinion
        .offsets
        .and_then(|offsets| valid(instance, neighbours, &offsets, end));
    Some(Heard {
        offsets: found,
        bound: i64::try_from(opinion.bound)
            .ok()
            .filter(|&bound| bound > enough)
            .unwrap_or(0),
    })
}

/// A buffer in units and sections.
fn buffer(instance: &Instance, item: Item) -> Buffer {
    let hull = instance.hull(item);
    let pairs = instance.spans[item].windows(2);
    let gaps = pairs.map(|pair| pair[0].end as u64..pair[1].start as u64);
    Buffer {
        size: instance.size[item].unsigned_abs(),
        alignment: instance.alignment[item].unsigned_abs(),
        lifetime: hull.start as u64..hull.end as u64,
        gaps: gaps.filter(|gap| !gap.is_empty()).collect(),
        pinned: instance.pinned[item].map(i64::unsigned_abs),
    }
}

/// The offsets, if they are a placement below `end`.
fn valid(
    instance: &Instance,
    neighbours: &Table<Item, Vec<Item>>,
    offsets: &[u64],
    end: i64,
) -> Option<Table<Item, i64>> {
    let offsets: Table<Item, i64> = offsets
        .iter()
        .map(|&offset| i64::try_from(offset).ok())
        .collect::<Option<Vec<i64>>>()?
        .into();
    if offsets.len() != instance.len() {
        return None;
    }
    let top = |item: Item| offsets[item].saturating_add(instance.size[item]);
    let is_valid = |item: Item| {
        let offset = offsets[item];
        let is_apart = |&other: &Item| top(item) <= offsets[other] || top(other) <= offset;
        let is_own = instance.pinned[item].is_none_or(|pinned| pinned == offset);
        is_own && top(item) < end && offset % instance.alignment[item] == 0 && neighbours[item].iter().all(is_apart)
    };
    instance.size.keys().all(is_valid).then_some(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;
    use crate::place::buffer::validate;

    /// Gives an answer that was made up.
    struct Says(Opinion);

    impl Second for Says {
        fn ask(&mut self, question: &Question<'_>) -> Option<Opinion> {
            assert_eq!((question.buffers.len(), question.heights.clone()), (2, 5..9));
            Some(self.0.clone())
        }
    }

    /// Two buffers of 3 and 2 at the same time, the second at even offsets.
    fn answer(offsets: [u64; 2], bound: u64) -> Heard {
        let even = Buffer {
            alignment: 2,
            ..Buffer::new(2, 0..1)
        };
        let instance = Instance::new(&[Buffer::new(3, 0..1), even]);
        let neighbours = instance.neighbours(1).unwrap();
        let offsets = Some(offsets.into_iter().collect());
        let known = [0, 6].into_iter().collect();
        let mut says = Says(Opinion { offsets, bound });
        ask(&mut says, &instance, &neighbours, &known, 5, 9).unwrap()
    }

    #[test]
    fn only_placements_are_taken_and_only_bounds_that_say_something() {
        let taken = |offsets, bound| {
            let heard = answer(offsets, bound);
            (heard.offsets.is_some(), heard.bound)
        };
        assert_eq!(taken([2, 0], 5), (true, 0));
        assert_eq!(taken([0, 4], 6), (true, 6));
        assert_eq!(taken([0, 2], 5), (false, 0), "they overlap");
        assert_eq!(taken([0, 3], 5), (false, 0), "3 is odd");
        assert_eq!(taken([0, 8], 9), (false, 9), "no lower than what is known");
        assert_eq!(taken([u64::MAX, 0], 5), (false, 0));
    }

    #[test]
    fn buffers_keep_their_gaps() {
        let with_gap = Buffer {
            pinned: Some(8),
            ..Buffer::at_times(4, &[0..2, 4..6])
        };
        let instance = Instance::new(&[with_gap, Buffer::new(4, 1..5), Buffer::new(4, 2..4)]);
        let buffer = buffer(&instance, Item::at(0));
        assert_eq!(validate(core::slice::from_ref(&buffer)), Ok(()));
        assert_eq!((buffer.size, buffer.pinned, buffer.gaps.len()), (1, Some(2), 1));
    }
}
