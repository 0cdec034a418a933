//! What placing large numbers of buffers costs, and how far above the load it ends.
//!
//! `cargo bench -p remat-place --bench place -- --quick`. Heights do not depend on the machine; they are part of the names of the benchmarks, in per cent above the
//! load.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use remat_place::{load, place};
use remat_plan::Blocks;
use remat_solve::SolveControl;

mod workloads;

use workloads::{WORKLOADS, buffers};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

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
            let buffers = buffers(count, workload, 0);
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
