//! Small buffers whose best placement is known.

#![expect(clippy::single_range_in_vec_init, reason = "a gap is a range")]

use remat_place::{PlaceError, load, place};
use remat_plan::{Blocks, Buffer, BufferError, BufferId, Place, Placement, PlacementProof, Status, StopReason};
use remat_solve::SolveControl;
use remat_truth::offsets::above_load;
use typed_index_collections::TiVec;

use crate::{checked, checked_from, lowest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(nothing_and_buffers_without_bytes_take_nothing),
        trial!(a_height_above_the_load_is_proved_by_refutation),
        trial!(a_block_below_the_load_needs_no_search),
        trial!(parts_that_never_meet_are_as_low_as_the_highest_of_them),
        trial!(gaps_are_used_by_others),
        trial!(offsets_keep_alignments_and_pins),
        trial!(what_cannot_be_placed_anywhere_is_named),
        trial!(limits_end_the_search_with_what_is_there),
        trial!(a_warm_start_is_never_left_for_something_higher),
    ]
}

/// Buffers named by their numbers, from sizes and lifetimes.
pub(crate) fn named(buffers: &[(u64, std::ops::Range<u64>)]) -> TiVec<BufferId, Buffer> {
    let named = buffers.iter().enumerate();
    named
        .map(|(index, (size, lifetime))| Buffer::new(index.to_string(), *size, lifetime.clone()))
        .collect()
}

fn nothing_and_buffers_without_bytes_take_nothing() {
    let outcome = lowest(&TiVec::new());
    assert_eq!(
        (outcome.certificate.height, outcome.certificate.status),
        (Some(0), Status::Optimal)
    );
    let outcome = lowest(&named(&[(0, 0..3), (0, 1..2)]));
    assert_eq!(outcome.certificate.height, Some(0));
}

fn a_height_above_the_load_is_proved_by_refutation() {
    let buffers = above_load();
    assert_eq!(load(&buffers), 4);
    let certificate = lowest(&buffers).certificate;
    assert_eq!((certificate.height, certificate.bound), (Some(5), 5));
    assert_eq!(
        (certificate.status, certificate.proof),
        (Status::Optimal, PlacementProof::Refutation)
    );
    assert_eq!(certificate.stop, StopReason::Proved);
    let none = checked(&buffers, &Blocks::Given(vec![4]), &SolveControl::new());
    assert_eq!(none.placement, None);
    assert_eq!(none.certificate.status, Status::Infeasible);
    assert_eq!(
        (none.certificate.bound, none.certificate.proof),
        (5, PlacementProof::Refutation)
    );
}

fn a_block_below_the_load_needs_no_search() {
    let none = checked(&above_load(), &Blocks::Given(vec![3]), &SolveControl::new());
    assert_eq!(
        (none.certificate.status, none.certificate.proof),
        (Status::Infeasible, PlacementProof::Load)
    );
}

fn parts_that_never_meet_are_as_low_as_the_highest_of_them() {
    let mut buffers = above_load();
    let mut later = above_load();
    later.iter_mut().for_each(|buffer| {
        buffer.name += "'";
        buffer.lifetime = buffer.lifetime.start + 100..buffer.lifetime.end + 100;
    });
    buffers.append(&mut later);
    buffers.push(Buffer::new("large", 7, 50..51));
    let certificate = lowest(&buffers).certificate;
    assert_eq!(
        (certificate.height, certificate.bound, certificate.proof),
        (Some(7), 7, PlacementProof::Load)
    );
}

fn gaps_are_used_by_others() {
    let mut buffers = named(&[(64, 0..9), (64, 3..6), (32, 0..9)]);
    assert_eq!(lowest(&buffers).certificate.height, Some(160));
    buffers[BufferId::new(0)].gaps = vec![2..7];
    assert_eq!(lowest(&buffers).certificate.height, Some(96));
}

fn offsets_keep_alignments_and_pins() {
    let mut buffers = named(&[(4, 0..9), (4, 0..9), (4, 0..9), (100, 0..9)]);
    buffers[BufferId::new(0)].alignment = 64;
    buffers[BufferId::new(1)].alignment = 64;
    buffers[BufferId::new(2)].pinned = Some(8);
    let outcome = lowest(&buffers);
    // The small ones that are aligned lie at 0 and 128, the large one between them.
    assert_eq!(outcome.certificate.height, Some(132));
    let offset = outcome.placement.unwrap().places[BufferId::new(2)];
    assert_eq!(offset, Some(Place { block: 0, offset: 8 }));
}

fn what_cannot_be_placed_anywhere_is_named() {
    let mut buffers = named(&[(4, 0..3), (4, 2..5)]);
    buffers[BufferId::new(0)].pinned = Some(8);
    buffers[BufferId::new(1)].pinned = Some(6);
    let control = SolveControl::new();
    let error = place(&buffers, &Blocks::Lowest, None, &control).unwrap_err();
    assert_eq!(
        error.to_string(),
        "buffers `0` and `1` are pinned to the same bytes at the same time"
    );
    buffers[BufferId::new(1)].pinned = None;
    assert_eq!(
        place(&buffers, &Blocks::Given(vec![]), None, &control),
        Err(PlaceError::NoBlock)
    );
    let outside = checked(&buffers, &Blocks::Given(vec![11]), &control);
    assert_eq!(
        (outside.certificate.status, outside.certificate.bound),
        (Status::Infeasible, 12)
    );
    buffers[BufferId::new(1)].alignment = 0;
    let error = place(&buffers, &Blocks::Lowest, None, &control).unwrap_err();
    assert!(matches!(error, PlaceError::Buffers(BufferError::Malformed { .. })));
}

fn limits_end_the_search_with_what_is_there() {
    let buffers = above_load();
    for (control, stop) in [
        (SolveControl::new().step_limit(1), StopReason::StepLimit),
        (
            SolveControl::new().time_limit(std::time::Duration::ZERO),
            StopReason::TimeLimit,
        ),
        (
            SolveControl::new().cancel(&std::sync::atomic::AtomicBool::new(true)),
            StopReason::Cancelled,
        ),
    ] {
        let certificate = checked(&buffers, &Blocks::Lowest, &control).certificate;
        assert_eq!((certificate.status, certificate.stop), (Status::Feasible, stop));
        let given = checked(&buffers, &Blocks::Given(vec![4]), &control);
        assert_eq!((given.certificate.status, given.placement), (Status::Unknown, None));
    }
}

fn a_warm_start_is_never_left_for_something_higher() {
    let buffers = above_load();
    let best = lowest(&buffers).placement.unwrap();
    let control = SolveControl::new().step_limit(1);
    assert_eq!(
        checked_from(Some(&best), &buffers, &Blocks::Lowest, &control)
            .certificate
            .height,
        Some(5)
    );
    // One that is not valid, or says nothing, does no harm.
    for wrong in [
        Placement::default(),
        Placement {
            places: TiVec::from(vec![
                Some(Place {
                    block: 7,
                    offset: u64::MAX
                });
                7
            ]),
        },
    ] {
        let control = SolveControl::new();
        assert_eq!(
            checked_from(Some(&wrong), &buffers, &Blocks::Lowest, &control)
                .certificate
                .height,
            Some(5)
        );
    }
}
