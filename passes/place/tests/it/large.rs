//! So many buffers that no pass over them is certain to end soon.

use std::time::{Duration, Instant};

use remat_plan::{Blocks, Buffer, BufferId, StopReason};
use remat_solve::{Rng, SolveControl};
use typed_index_collections::TiVec;

use crate::checked;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(whatever_the_limit_of_tries_there_is_a_placement_and_more_tries_lower_it),
        trial!(the_time_limit_is_kept),
    ]
}

const COUNT: usize = 60_000;

/// About 600 are alive at a time; some have alignments, gaps and pinned offsets.
fn buffers() -> TiVec<BufferId, Buffer> {
    let mut rng = Rng::new(3, 0);
    let buffer = |step: usize| {
        let life = 1 + (-(1.0 - rng.unit()).ln() * 600.0) as u64;
        let start = step as u64;
        let mut buffer = Buffer::new(
            step.to_string(),
            64 * (1 + (rng.unit() * 500.0) as u64),
            start..start + life,
        );
        buffer.alignment = if rng.unit() < 0.1 { 256 } else { 1 };
        if life > 10 && rng.unit() < 0.05 {
            buffer.gaps.push(start + 2..start + life - 2);
        }
        if step.is_multiple_of(10_000) {
            buffer.pinned = Some(4096);
        }
        buffer
    };
    (0..COUNT).map(buffer).collect()
}

fn whatever_the_limit_of_tries_there_is_a_placement_and_more_tries_lower_it() {
    let buffers = buffers();
    let height = |tries: u64| {
        let outcome = checked(&buffers, &Blocks::Lowest, &SolveControl::new().step_limit(tries));
        assert_eq!(outcome.certificate.stop, StopReason::StepLimit);
        outcome.certificate.height.expect("there is a placement")
    };
    let [first, some, all] = [1, 40_000, 600_000].map(height);
    assert_eq!(height(40_000), some);
    assert!(first >= some && some >= all && first > all, "{first} {some} {all}");
}

fn the_time_limit_is_kept() {
    let buffers = buffers();
    let limit = Duration::from_millis(1500);
    let started = Instant::now();
    let outcome = checked(&buffers, &Blocks::Lowest, &SolveControl::new().time_limit(limit));
    // It says why it ended; how long that took says how busy the machine is, and whether it went on without an end.
    assert_eq!(outcome.certificate.stop, StopReason::TimeLimit);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
