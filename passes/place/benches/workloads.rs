//! Made-up buffers in large numbers.

use remat_plan::{Buffer, BufferId};
use remat_solve::Rng;
use typed_index_collections::TiVec;

/// How long buffers live.
#[derive(Clone, Copy)]
pub(crate) enum Workload {
    /// For a few steps, one in ten for about 60.
    Inference,
    /// Of those of the first half, three in ten until the mirror of the step that makes them.
    Training,
    /// For a hundredth of all steps on average.
    Random,
    /// From any step to any other.
    Spread,
}

pub(crate) const WORKLOADS: [(&str, Workload); 4] = [
    ("inference", Workload::Inference),
    ("training", Workload::Training),
    ("random", Workload::Random),
    ("spread", Workload::Spread),
];

/// One buffer begins at each step, but where lives are spread. Half of the sizes are powers of two, the others anything from 256 bytes to 512 KiB.
pub(crate) fn buffers(count: usize, workload: Workload, seed: u64) -> TiVec<BufferId, Buffer> {
    let mut rng = Rng::new(count as u64 + (seed << 32), workload as u64);
    let mut buffer = |at: usize| {
        let size = if rng.unit() < 0.5 {
            1 << (10 + (rng.unit() * 9.0) as u32)
        } else {
            ((8.0 + 10.0 * rng.unit()).exp2() * (1.0 + rng.unit())) as u64
        };
        let kind = rng.unit();
        let step = match workload {
            Workload::Spread => rng.below(count),
            _ => at,
        };
        let mut around = |mean: f64| 1 + (-(1.0 - rng.unit()).ln() * mean) as usize;
        let life = match workload {
            Workload::Training if step < count / 2 && kind < 0.3 => 2 * (count / 2 - step) + 1,
            Workload::Random => around(count as f64 / 100.0),
            Workload::Spread => 1 + (kind * (count - step) as f64) as usize,
            _ if kind < 0.9 => around(3.0),
            _ => around(60.0),
        };
        let end = (step + life).min(count) as u64;
        Buffer::new(at.to_string(), size.div_ceil(64) * 64, step as u64..end)
    };
    (0..count).map(&mut buffer).collect()
}
