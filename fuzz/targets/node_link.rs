#![no_main]

remat_fuzz_targets::fuzz!("node_link");
