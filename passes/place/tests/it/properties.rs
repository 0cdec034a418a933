//! Random buffers: every placement is valid, and on tiny ones every claim is true.

use proptest::prelude::*;
use remat_place::{load, place, read_csv, write_csv};
use remat_plan::{Blocks, Buffer, BufferId, PlacementProof, Status};
use remat_solve::SolveControl;
use remat_truth::offsets::least_height;
use typed_index_collections::TiVec;

use crate::{checked, checked_from, lowest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(claims_about_tiny_buffers_are_true),
        trial!(large_buffers_with_tiny_ones_are_placed_as_low_as_they_can_be),
        trial!(many_large_and_tiny_buffers_are_placed_validly),
        trial!(placements_are_valid_whatever_ends_the_search),
        trial!(more_tries_and_a_warm_start_never_make_it_higher),
        trial!(what_is_written_is_read_with_every_offset_pinned),
    ]
}

/// Everything that a buffer may have but a pinned offset.
fn buffers(most: usize, times: u64, sizes: u64) -> impl Strategy<Value = TiVec<BufferId, Buffer>> {
    let alignment = prop_oneof![3 => Just(1u64), 1 => Just(2u64), 1 => Just(3u64)];
    let gap = prop::option::weighted(0.2, (1..times, 1..3u64));
    let buffer = (0..=sizes, 0..times, 1..times, alignment, gap);
    let buffer = buffer.prop_map(|(size, start, life, alignment, gap)| {
        let mut buffer = Buffer::new("", size, start..start + life);
        buffer.alignment = alignment;
        if let Some((after, length)) = gap
            && after + length < life
        {
            let gap = start + after..start + after + length;
            buffer.gaps.push(gap);
        }
        buffer
    });
    prop::collection::vec(buffer, 0..=most).prop_map(|buffers| {
        let mut buffers: TiVec<BufferId, Buffer> = buffers.into();
        buffers
            .iter_mut_enumerated()
            .for_each(|(id, buffer)| buffer.name = id.index().to_string());
        buffers
    })
}

/// Buffers of which the first may be pinned.
fn with_pin(most: usize, times: u64, sizes: u64) -> impl Strategy<Value = TiVec<BufferId, Buffer>> {
    (buffers(most, times, sizes), prop::option::of(0..4u64)).prop_map(|(mut buffers, pinned)| {
        if let Some(first) = buffers.raw.first_mut() {
            first.pinned = pinned.map(|offset| offset * first.alignment);
        }
        buffers
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(400))]

    fn claims_about_tiny_buffers_are_true(buffers in with_pin(6, 6, 4)) {
        let outcome = lowest(&buffers);
        let truth = least_height(&buffers, 1, 64).unwrap();
        prop_assert_eq!(outcome.certificate.status, Status::Optimal);
        prop_assert_eq!(outcome.certificate.height, Some(truth));
        // One byte less holds nothing.
        if truth > 0 {
            let none = checked(&buffers, &Blocks::Given(vec![truth - 1]), &SolveControl::new());
            prop_assert_eq!(none.certificate.status, Status::Infeasible);
        }
        let just = checked(&buffers, &Blocks::Given(vec![truth]), &SolveControl::new());
        prop_assert_eq!(just.certificate.status, Status::Optimal);
    }
}

/// Some large buffers, and tiny ones that take thousandths of what these do.
fn large_and_tiny(most: usize, times: u64) -> impl Strategy<Value = TiVec<BufferId, Buffer>> {
    let tiny = buffers(most, times, 6);
    (buffers(most, times, 9), tiny, prop::option::of(0..3u64)).prop_map(|(mut buffers, tiny, pinned)| {
        for buffer in &mut buffers {
            buffer.size *= 100_000;
        }
        if let Some(first) = buffers.raw.first_mut() {
            first.pinned = pinned.map(|offset| offset * first.alignment);
        }
        buffers.extend(tiny);
        buffers
            .iter_mut_enumerated()
            .for_each(|(id, buffer)| buffer.name = id.index().to_string());
        buffers
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(60))]

    fn large_buffers_with_tiny_ones_are_placed_as_low_as_they_can_be(buffers in large_and_tiny(4, 6)) {
        let outcome = lowest(&buffers);
        prop_assert_eq!(outcome.certificate.status, Status::Optimal);
        // The exact search alone, without tiny buffers in the way, says whether the large ones can be lower.
        let large: TiVec<BufferId, Buffer> = buffers.iter().filter(|buffer| buffer.size >= 100_000).cloned().collect();
        prop_assert!(lowest(&large).certificate.height <= outcome.certificate.height);
    }

    fn many_large_and_tiny_buffers_are_placed_validly(buffers in large_and_tiny(60, 30), tries in 0..20_000u64) {
        let control = SolveControl::new().seed(tries % 3).step_limit(tries);
        let outcome = checked(&buffers, &Blocks::Lowest, &control);
        prop_assert_eq!(place(&buffers, &Blocks::Lowest, None, &control).unwrap(), outcome.clone());
        let height = outcome.certificate.height.unwrap();
        let within = checked(&buffers, &Blocks::Given(vec![height]), &control);
        prop_assert!(within.certificate.status != Status::Infeasible);
    }

    fn placements_are_valid_whatever_ends_the_search(
        buffers in with_pin(60, 30, 40),
        seed in 0..4u64,
        tries in 0..2_000u64,
        blocks in prop::collection::vec(20..200u64, 0..4),
    ) {
        let blocks = if blocks.is_empty() { Blocks::Lowest } else { Blocks::Given(blocks) };
        let control = SolveControl::new().seed(seed).step_limit(tries);
        let outcome = checked(&buffers, &blocks, &control);
        prop_assert!(outcome.certificate.bound >= load(&buffers) || matches!(blocks, Blocks::Given(_)));
        // The same again.
        prop_assert_eq!(place(&buffers, &blocks, None, &control).unwrap(), outcome);
    }

    fn more_tries_and_a_warm_start_never_make_it_higher(buffers in buffers(40, 20, 30)) {
        let height = |control: &SolveControl<'_>| checked(&buffers, &Blocks::Lowest, control);
        let quick = height(&SolveControl::new().step_limit(1));
        let longer = height(&SolveControl::new().step_limit(5_000));
        let placement = longer.placement.clone().unwrap();
        let warm = checked_from(Some(&placement), &buffers, &Blocks::Lowest, &SolveControl::new().step_limit(1));
        prop_assert!(longer.certificate.height <= quick.certificate.height);
        prop_assert!(warm.certificate.height <= longer.certificate.height);
        prop_assert!(longer.certificate.proof == PlacementProof::Load || longer.certificate.bound > load(&buffers));
    }

    fn what_is_written_is_read_with_every_offset_pinned(buffers in buffers(20, 12, 9)) {
        let placement = lowest(&buffers).placement.unwrap();
        let file = read_csv(&write_csv(&buffers, &placement)).unwrap();
        for (id, buffer) in file.buffers.iter_enumerated() {
            let pinned = placement.places[id].map(|place| place.offset);
            let expected = Buffer { pinned, ..buffers[id].clone() };
            prop_assert_eq!(buffer, &expected);
        }
    }
}
