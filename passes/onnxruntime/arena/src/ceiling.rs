//! What runs of any sizes within ranges need at most, with a proof.
//!
//! In a box of sizes, intervals bound every buffer, and buffers of these sizes have a block. A run of a shape in the box takes that block's
//! offsets where its own block would be higher, so the block bounds all of the box. Where sizes grow with the dimensions, each bound is the size in
//! the largest shape, and one box is all. Else the boxes that need most are halved, which makes intervals tighter.

use crate::formula::{Derived, Formula, intervals, values};
use crate::lines::MOST_BYTES;
use crate::need::{Need, bytes};
#[cfg(not(arena_library))]
use crate::parts::Proof;
use crate::parts::{Bound, Part, parts};
use crate::placement::{Layout, Placed};

/// Most boxes of a plan, and most pairs of buffers that are looked at for all of them.
const MOST_BOXES: usize = 64;
const MOST_PAIRS: usize = 1 << 26;

/// The boxes of a plan.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Ceilings(Vec<Part<Ceiling>>);

/// What runs of a box of sizes need.
#[derive(PartialEq, Eq, Debug)]
struct Ceiling {
    /// The largest size of each buffer.
    most: Vec<u64>,
    placed: Placed,
    /// Whether a shape has all of these sizes.
    is_reached: bool,
}

impl Bound for Ceiling {
    fn most(&self) -> u64 {
        self.placed.block_bytes
    }

    fn is_reached(&self) -> bool {
        self.is_reached
    }
}

impl Ceilings {
    /// Those of a plan, of whose buffers these are the sizes; they depend on `used` dimensions, as bits.
    pub(crate) fn new(
        ranges: &[(u64, u64)],
        derived: &[Derived],
        sizes: &[&Formula],
        used: u64,
        layout: &Layout,
    ) -> Self {
        let of = |ranges: &[(u64, u64)]| {
            let bounds = intervals(ranges, derived);
            let corner: Vec<u64> = ranges.iter().map(|&(_, most)| most).collect();
            let corner = values(&corner, derived);
            let most = sizes.iter().map(|size| size.bounds(&bounds).1);
            let is_reached = corner.is_some_and(|corner| {
                let mut pairs = sizes.iter().zip(most.clone());
                pairs.all(|(size, most)| size.value(&corner).is_some_and(|value| value.max(0) == most.max(0)))
            });
            let most: Vec<u64> = most.map(|most| bytes(most).unwrap_or(MOST_BYTES)).collect();
            Ceiling {
                placed: layout.place(&most, &[]),
                most,
                is_reached,
            }
        };
        let pairs = sizes.len().saturating_mul(sizes.len()).max(1);
        Self(parts(ranges.to_vec(), used, MOST_BOXES.min(MOST_PAIRS / pairs), of))
    }

    /// The lowest block of a box in which buffers of these sizes fit.
    pub(crate) fn lowest(&self, sizes: &[u64]) -> Option<&Placed> {
        let fits = |one: &&Ceiling| sizes.iter().zip(&one.most).all(|(size, most)| size <= most);
        let fitting = self
            .0
            .iter()
            .map(|part| &part.known)
            .filter(fits)
            .map(|one| &one.placed);
        fitting.min_by_key(|placed| placed.block_bytes)
    }

    /// What a run of any sizes needs at most.
    pub(crate) fn most(&self, layout: &Layout) -> Need {
        let need = |part: &Part<Ceiling>| Need {
            block: part.known.placed.block_bytes,
            outside: layout.load_outside(&part.known.most),
        };
        self.0.iter().map(need).fold(Need::default(), Need::max)
    }

    #[cfg(not(arena_library))]
    pub(crate) fn proof(&self) -> Proof {
        Proof::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::ArenaPlanFile;
    use crate::plans::Plans;

    fn plans(buffers: &[String]) -> Plans {
        let text = format!(
            "remat-arena 2\nmodel m\nruntime r\nlevel all\ndim 1 40 n\ndim 3 60 s\nlet floor d1+1 2\n\
             plan buffers {} orders 2 first 0\n{}\n",
            buffers.len(),
            buffers.join("\n")
        );
        Plans::new(&ArenaPlanFile::parse(&text).expect("it is well-formed"))
    }

    #[test]
    fn sizes_that_grow_need_most_in_the_largest_shape() {
        let plans = plans(&["64*d0*d1 0 2 0,0".to_owned(), "64*d2 1 3 1,1".to_owned()]);
        assert_eq!(
            (plans.block_bytes(), plans.proof()),
            (64 * (40 * 60 + 30), Proof::LargestShape)
        );
    }

    #[test]
    fn sizes_that_shrink_are_bounded_in_boxes() {
        // Together they are the same for all sizes; intervals of the whole range allow both to be the largest.
        let plans = plans(&["6400*d1 0 2 0,0".to_owned(), "640000-6400*d1 1 3 1,1".to_owned()]);
        assert!(matches!(plans.proof(), Proof::Intervals(_)));
        assert!(
            plans.block_bytes() >= 640_000 && plans.block_bytes() < 660_000,
            "{}",
            plans.block_bytes()
        );
    }

    proptest! {
        #[test]
        fn no_shape_needs_more_than_the_bound(
            sizes in prop::collection::vec((1i64..9, -4i64..9, -4i64..9, 0i64..5000), 2..9),
            lives in prop::collection::vec(1u64..6, 9),
            ranks in prop::collection::vec((0u32..9, 0u32..9), 9),
            dims in prop::collection::vec((1u64..=40, 3u64..=60), 40),
        ) {
            let buffer = |(place, &(a, b, c, d)): (usize, &(i64, i64, i64, i64))| {
                let size = Formula::sum([(64 * a, vec![(0, 1), (1, 1)]), (64 * b, vec![(1, 2)]), (64 * c, vec![(2, 1)]), (d, vec![])]);
                let (first, (one, other)) = (place as u64 * 2, ranks[place]);
                format!("{size} {first} {} {one},{other}", first + lives[place])
            };
            let buffers: Vec<String> = sizes.iter().enumerate().map(buffer).collect();
            let plans = plans(&buffers);
            for (n, s) in dims {
                let shape = plans.shape(0, &[n, s]).expect("it is small");
                prop_assert!(shape.block_bytes() <= plans.block_bytes());
                prop_assert!(shape.load_bytes(&plans) <= shape.block_bytes());
            }
        }
    }
}
