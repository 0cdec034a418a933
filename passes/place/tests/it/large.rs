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
        trial!(many_buffers_of_which_few_are_alive_together_are_placed_at_their_load),
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

/// One buffer begins at each step and lives for three, one in ten for about 60; half of the sizes are powers of two.
fn short_lived(seed: u64) -> TiVec<BufferId, Buffer> {
    let mut rng = Rng::new(seed, 1);
    let buffer = |step: usize| {
        let class = 1 << (10 + rng.below(9));
        let size = if rng.chance(0.5) {
            class
        } else {
            class + rng.below(class as usize) as u64
        };
        let mean = if rng.chance(0.9) { 3.0 } else { 60.0 };
        let life = 1 + (-(1.0 - rng.unit()).ln() * mean) as u64;
        let start = step as u64;
        Buffer::new(step.to_string(), size.div_ceil(64) * 64, start..start + life)
    };
    (0..20_000).map(buffer).collect()
}

fn many_buffers_of_which_few_are_alive_together_are_placed_at_their_load() {
    for seed in 0..4 {
        let buffers = short_lived(seed);
        let outcome = checked(&buffers, &Blocks::Lowest, &SolveControl::new().step_limit(400_000));
        let load = remat_place::load(&buffers);
        assert_eq!(outcome.certificate.height, Some(load), "{seed}");
    }
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
