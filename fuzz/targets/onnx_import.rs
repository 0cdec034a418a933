#![no_main]

remat_fuzz_targets::fuzz!("onnx_import");
