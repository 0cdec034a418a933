//! Offsets by CP-SAT: every placement goes through the checker, and on tiny buffers every bound is true.

use std::time::Duration;

use proptest::prelude::*;
use remat_plan::{Blocks, Buffer, BufferId, Place, Placement, PlacementProof};
use remat_solve::{Packed, Packing, SolveControl};
use remat_testing::{Need, Trial, trial};
use remat_truth::offsets::{above_load, least_height};
use remat_verify::check_placement;
use typed_index_collections::TiVec;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_height_above_the_load_is_the_least, Need::OrTools),
        trial!(too_many_buffers_are_refused, Need::OrTools),
        trial!(heights_of_tiny_buffers_are_the_least, Need::OrTools),
    ]
}

/// What CP-SAT says of heights from `enough` up to below `end`; what is known is one buffer above the other.
fn packed(buffers: &TiVec<BufferId, Buffer>, enough: u64, end: u64) -> Packed {
    let mut top = 0;
    let stacked = buffers.iter().map(|buffer| {
        let offset = buffer.pinned.unwrap_or(top).next_multiple_of(buffer.alignment);
        top = offset + buffer.size;
        offset
    });
    let start: TiVec<BufferId, u64> = stacked.collect();
    let packing = Packing {
        buffers,
        heights: enough..end,
        start: &start,
    };
    let control = SolveControl::new().time_limit(Duration::from_secs(60));
    let packer = remat_ortools::packer().unwrap();
    assert_eq!(packer.proof(), PlacementProof::CpSat);
    packer.pack(&packing, &control).unwrap()
}

/// The height of what was found, after the checker accepted it.
fn height(buffers: &TiVec<BufferId, Buffer>, packed: &Packed) -> Option<u64> {
    let offsets = packed.offsets.as_ref()?;
    let places = offsets.iter().map(|&offset| Some(Place { block: 0, offset })).collect();
    let figures = check_placement(buffers, &Blocks::Lowest, &Placement { places });
    Some(figures.unwrap_or_else(|rejection| panic!("{rejection}")).height())
}

fn a_height_above_the_load_is_the_least() {
    let buffers = above_load();
    let lowest = packed(&buffers, 4, 20);
    assert_eq!((height(&buffers, &lowest), lowest.bound), (Some(5), 5));
    // Neither at the load, nor below a height that is known.
    assert_eq!(
        packed(&buffers, 4, 5),
        Packed {
            offsets: None,
            bound: 5
        }
    );
    let within = packed(&buffers, 5, 6);
    assert_eq!(height(&buffers, &within), Some(5));
}

fn too_many_buffers_are_refused() {
    let buffers: TiVec<BufferId, Buffer> = (0..2_001).map(|at| Buffer::new(at.to_string(), 1, 0..1)).collect();
    let start: TiVec<BufferId, u64> = (0..2_001).collect();
    let packing = Packing {
        buffers: &buffers,
        heights: 2_001..2_002,
        start: &start,
    };
    let packer = remat_ortools::packer().unwrap();
    assert_eq!(packer.pack(&packing, &SolveControl::new()), None);
}

fn buffers() -> impl Strategy<Value = TiVec<BufferId, Buffer>> {
    let buffer = (
        1..=4u64,
        0..6u64,
        1..6u64,
        1..=3u64,
        prop::option::weighted(0.2, 1..3u64),
    );
    let buffer = buffer.prop_map(|(size, start, life, alignment, gap)| {
        let mut buffer = Buffer::new("", size, start..start + life);
        buffer.alignment = alignment;
        buffer
            .gaps
            .extend(gap.filter(|gap| gap + 1 < life).map(|gap| start + gap..start + gap + 1));
        buffer
    });
    let pinned = prop::option::weighted(0.3, 0..3u64);
    (prop::collection::vec(buffer, 1..=6), pinned).prop_map(|(mut buffers, pinned)| {
        buffers[0].pinned = pinned.map(|offset| offset * buffers[0].alignment);
        buffers.into()
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(60))]

    fn heights_of_tiny_buffers_are_the_least(buffers in buffers()) {
        let truth = least_height(&buffers, 1, 64).unwrap();
        let lowest = packed(&buffers, 1, 65);
        prop_assert_eq!((height(&buffers, &lowest), lowest.bound), (Some(truth), truth));
        if truth > 1 {
            let none = packed(&buffers, truth - 1, truth);
            prop_assert_eq!(none, Packed { offsets: None, bound: truth });
        }
    }
}
