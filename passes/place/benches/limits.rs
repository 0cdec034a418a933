//! How far above the load very large numbers of buffers end within a time limit, and whether the limit is kept.
//!
//! `cargo bench -p remat-place --bench limits`. Prints a row for each.

#![expect(clippy::print_stdout, reason = "a bench prints what it finds")]

use std::time::{Duration, Instant};

use remat_place::{load, place};
use remat_plan::Blocks;
use remat_solve::SolveControl;

mod workloads;

use workloads::{WORKLOADS, buffers};

/// Numbers of buffers, and seconds for them.
const LIMITS: [(usize, u64); 4] = [(100_000, 2), (100_000, 8), (1_000_000, 8), (1_000_000, 20)];

fn main() {
    println!("| buffers | lives | limit, s | took, s | above the load, % |");
    println!("|---:|---|---:|---:|---:|");
    for (count, seconds) in LIMITS {
        for (name, workload) in WORKLOADS {
            let buffers = buffers(count, workload);
            let load = load(&buffers);
            let began = Instant::now();
            let control = SolveControl::new().time_limit(Duration::from_secs(seconds));
            let outcome = place(&buffers, &Blocks::Lowest, None, &control).expect("they can be placed");
            let took = began.elapsed().as_secs_f64();
            let height = outcome.certificate.height.unwrap_or_default();
            let above = 100.0 * (height - load) as f64 / load as f64;
            println!("| {count} | {name} | {seconds} | {took:.2} | {above:.2} |");
        }
    }
}
