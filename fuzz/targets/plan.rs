#![no_main]

remat_fuzz_targets::fuzz!("plan");
