#![no_main]

remat_fuzz_targets::fuzz!("arena_plan");
