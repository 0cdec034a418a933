//! What placing large numbers of buffers costs, and how far above the load it ends.
//!
//! `cargo bench -p remat-place --bench place -- --quick`. Heights do not depend on the machine; they are part of the names of the benchmarks, in per cent above the
//! load.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use remat_place::{load, place};
use remat_plan::{Blocks, Buffer, BufferId};
use remat_solve::Rng;
use remat_solve::SolveControl;
use typed_index_collections::TiVec;

/// How long buffers live.
#[derive(Clone, Copy)]
enum Workload {
    /// For a few steps, one in ten for about 60.
    Inference,
    /// Of those of the first half, three in ten until the mirror of the step that makes them.
    Training,
    /// For a hundredth of all steps on average.
    Random,
}

const WORKLOADS: [(&str, Workload); 3] = [
    ("inference", Workload::Inference),
    ("training", Workload::Training),
    ("random", Workload::Random),
];
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// One buffer begins at each step. Half of the sizes are powers of two, the others anything from 256 bytes to 512 KiB.
fn buffers(count: usize, workload: Workload) -> TiVec<BufferId, Buffer> {
    let mut rng = Rng::new(count as u64, workload as u64);
    let mut buffer = |step: usize| {
        let size = if rng.unit() < 0.5 {
            1 << (10 + (rng.unit() * 9.0) as u32)
        } else {
            ((8.0 + 10.0 * rng.unit()).exp2() * (1.0 + rng.unit())) as u64
        };
        let kind = rng.unit();
        let mut around = |mean: f64| 1 + (-(1.0 - rng.unit()).ln() * mean) as usize;
        let life = match workload {
            Workload::Training if step < count / 2 && kind < 0.3 => 2 * (count / 2 - step) + 1,
            Workload::Random => around(count as f64 / 100.0),
            _ if kind < 0.9 => around(3.0),
            _ => around(60.0),
        };
        let end = (step + life).min(count) as u64;
        Buffer::new(step.to_string(), size.div_ceil(64) * 64, step as u64..end)
    };
    (0..count).map(&mut buffer).collect()
}

fn first_pass(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first_pass");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(1));
    // No more than the first pass: the search would go on for as long as it is allowed.
    let control = SolveControl::new().step_limit(1);
    for count in SIZES {
        for (name, workload) in WORKLOADS {
            let buffers = buffers(count, workload);
            let load = load(&buffers);
            let outcome = place(&buffers, &Blocks::Lowest, None, &control).expect("they can be placed");
            let height = outcome.certificate.height.unwrap_or_default();
            let above = 100.0 * (height - load) as f64 / load as f64;
            group.bench_function(format!("{name}/{count}/+{above:.2} %"), |bencher| {
                bencher.iter(|| black_box(place(&buffers, &Blocks::Lowest, None, &control)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, first_pass);
criterion_main!(benches);
