//! Tests of placing from outside; every placement goes through the checker.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod blocks;
mod large;
mod properties;
mod published;
mod small;

use std::process::ExitCode;

use remat_place::{Outcome, place};
use remat_plan::{Blocks, Buffer, BufferId, Placement};
use remat_solve::SolveControl;
use remat_verify::check_placement_certificate;
use typed_index_collections::TiVec;

fn main() -> ExitCode {
    remat_testing::run(remat_testing::within([
        ("blocks", blocks::trials()),
        ("large", large::trials()),
        ("properties", properties::trials()),
        ("published", published::trials()),
        ("small", small::trials()),
    ]))
}

/// Tries after which a search that is not done has failed.
const TRIES: u64 = 200_000;

/// The outcome, after placement and claims passed the checker.
#[track_caller]
fn checked(buffers: &TiVec<BufferId, Buffer>, blocks: &Blocks, control: &SolveControl<'_>) -> Outcome {
    checked_from(None, buffers, blocks, control)
}

/// The same from a warm start.
#[track_caller]
fn checked_from(
    warm_start: Option<&Placement>,
    buffers: &TiVec<BufferId, Buffer>,
    blocks: &Blocks,
    control: &SolveControl<'_>,
) -> Outcome {
    let outcome = place(buffers, blocks, warm_start, control).expect("the buffers are valid");
    let judged = check_placement_certificate(buffers, blocks, outcome.placement.as_ref(), &outcome.certificate);
    assert!(judged.is_ok(), "{}\n{buffers:#?}\n{outcome:?}", judged.unwrap_err());
    outcome
}

/// The same with a limit of tries only.
#[track_caller]
fn lowest(buffers: &TiVec<BufferId, Buffer>) -> Outcome {
    checked(buffers, &Blocks::Lowest, &SolveControl::new().step_limit(TRIES))
}
