//! How far above the load very large numbers of buffers end within a time limit, draw by draw, and whether the limit is kept.
//!
//! `cargo bench -p remat-place --bench limits`. Prints a row for each kind; seconds are those of the longest.

#![expect(clippy::print_stdout, reason = "a bench prints what it finds")]

use std::time::{Duration, Instant};

use remat_place::{load, place};
use remat_plan::Blocks;
use remat_solve::SolveControl;

mod workloads;

use workloads::{WORKLOADS, buffers};

/// Numbers of buffers, seconds for them, and how many draws of them.
const LIMITS: [(usize, u64, u64); 3] = [(100_000, 1, 6), (100_000, 2, 6), (1_000_000, 20, 2)];

fn main() {
    println!("| buffers | lives | limit, s | took, s | above the load, % |");
    println!("|---:|---|---:|---:|---|");
    for (count, seconds, draws) in LIMITS {
        for (name, workload) in WORKLOADS {
            let mut longest: f64 = 0.0;
            let mut above = Vec::new();
            for seed in 0..draws {
                let buffers = buffers(count, workload, seed);
                let load = load(&buffers);
                let began = Instant::now();
                let control = SolveControl::new().time_limit(Duration::from_secs(seconds));
                let outcome = place(&buffers, &Blocks::Lowest, None, &control).expect("they can be placed");
                longest = longest.max(began.elapsed().as_secs_f64());
                let height = outcome.certificate.height.unwrap_or_default();
                above.push(format!("{:.2}", 100.0 * (height - load) as f64 / load as f64));
            }
            println!("| {count} | {name} | {seconds} | {longest:.2} | {} |", above.join(" "));
        }
    }
}
