//! A second opinion: another method is asked where the search gets no further. Its placements are checked, its bounds are believed.

use remat_plan::{Buffer, BufferId};
use remat_solve::{Packer, Packing, SolveControl};
use typed_index_collections::TiVec;

use crate::instance::{Instance, Item};

/// The share of the time that is left which the other method has.
const SHARE: f64 = 0.5;
/// The most steps that it has: what ends it where time is not limited.
const STEPS: u64 = 400_000;

/// Somebody to ask.
#[derive(Clone, Copy)]
pub(crate) struct Second<'a> {
    pub(crate) packer: &'a dyn Packer,
    pub(crate) control: &'a SolveControl<'a>,
}

/// What the other method says of a part, in units.
pub(crate) struct Opinion {
    /// A placement whose height is of use.
    pub(crate) offsets: Option<TiVec<Item, i64>>,
    /// No placement is lower; 0 where nothing is said.
    pub(crate) bound: i64,
}

impl Second<'_> {
    /// Asks for a placement below `end`; one of the height `enough` is as good as any lower one. What is known are these offsets.
    pub(crate) fn ask(
        self,
        instance: &Instance,
        neighbours: &TiVec<Item, Vec<Item>>,
        offsets: &TiVec<Item, i64>,
        enough: i64,
        end: i64,
    ) -> Option<Opinion> {
        let buffers: TiVec<BufferId, Buffer> = instance.size.keys().map(|item| buffer(instance, item)).collect();
        let start: TiVec<BufferId, u64> = offsets.iter().map(|offset| offset.unsigned_abs()).collect();
        let packing = Packing {
            buffers: &buffers,
            heights: enough.unsigned_abs()..end.unsigned_abs(),
            start: &start,
        };
        let mut control = self.control.share_of_time(SHARE);
        control.step_limit = Some(STEPS);
        let packed = self.packer.pack(&packing, &control)?;
        let found = packed
            .offsets
            .and_then(|offsets| valid(instance, neighbours, &offsets, end));
        Some(Opinion {
            offsets: found,
            bound: i64::try_from(packed.bound)
                .ok()
                .filter(|&bound| bound > enough)
                .unwrap_or(0),
        })
    }
}

/// A buffer in units and sections.
fn buffer(instance: &Instance, item: Item) -> Buffer {
    let hull = instance.hull(item);
    let mut buffer = Buffer::new(
        item.index().to_string(),
        instance.size[item].unsigned_abs(),
        hull.start as u64..hull.end as u64,
    );
    buffer.alignment = instance.alignment[item].unsigned_abs();
    buffer.pinned = instance.pinned[item].map(i64::unsigned_abs);
    let pairs = instance.spans[item].windows(2);
    let gaps = pairs.map(|pair| pair[0].end as u64..pair[1].start as u64);
    buffer.gaps = gaps.filter(|gap| !gap.is_empty()).collect();
    buffer
}

/// The offsets, if they are a placement below `end`.
fn valid(
    instance: &Instance,
    neighbours: &TiVec<Item, Vec<Item>>,
    offsets: &TiVec<BufferId, u64>,
    end: i64,
) -> Option<TiVec<Item, i64>> {
    let offsets: TiVec<Item, i64> = offsets
        .iter()
        .map(|&offset| i64::try_from(offset).ok())
        .collect::<Option<_>>()?;
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
#[expect(clippy::single_range_in_vec_init, reason = "a span is a range")]
mod tests {
    use remat_plan::PlacementProof;
    use remat_solve::Packed;

    use super::*;
    use crate::instance::Demand;

    /// Gives an answer that was made up.
    struct Says(Packed);

    impl Packer for Says {
        fn proof(&self) -> PlacementProof {
            PlacementProof::CpSat
        }

        fn pack(&self, packing: &Packing<'_>, _: &SolveControl<'_>) -> Option<Packed> {
            assert_eq!((packing.buffers.len(), packing.heights.clone()), (2, 5..9));
            Some(self.0.clone())
        }
    }

    /// Two buffers of 3 and 2 at the same time, the second at even offsets.
    fn answer(offsets: [u64; 2], bound: u64) -> Opinion {
        let demand = |size, alignment| Demand {
            size,
            alignment,
            taken: [0..1].into_iter().collect(),
            pinned: None,
        };
        let instance = Instance::new(&[demand(3, 1), demand(2, 2)]);
        let neighbours = instance.neighbours(1).unwrap();
        let offsets = Some(offsets.into_iter().collect());
        let control = SolveControl::new();
        let second = Second {
            packer: &Says(Packed { offsets, bound }),
            control: &control,
        };
        let known = [0, 6].into_iter().collect();
        second.ask(&instance, &neighbours, &known, 5, 9).unwrap()
    }

    #[test]
    fn only_placements_are_taken_and_only_bounds_that_say_something() {
        let taken = |offsets, bound| {
            let opinion = answer(offsets, bound);
            (opinion.offsets.is_some(), opinion.bound)
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
        let demand = Demand {
            size: 4,
            alignment: 1,
            taken: [0..2, 4..6].into_iter().collect(),
            pinned: Some(8),
        };
        let other = Demand {
            taken: [1..5].into_iter().collect(),
            pinned: None,
            ..demand.clone()
        };
        let between = Demand {
            taken: [2..4].into_iter().collect(),
            ..other.clone()
        };
        let instance = Instance::new(&[demand, other, between]);
        let buffer = buffer(&instance, Item::new(0));
        assert_eq!(buffer.validate(), Ok(()));
        assert_eq!((buffer.size, buffer.pinned, buffer.gaps.len()), (1, Some(2), 1));
    }
}
