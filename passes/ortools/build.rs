//! Lets the tests of this crate find OR-Tools' libraries where they run.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ORTOOLS_PREFIX");
    let linked = std::env::var_os("CARGO_FEATURE_CP_SAT").is_some();
    if let (true, Ok(prefix)) = (linked, std::env::var("ORTOOLS_PREFIX")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{prefix}/lib");
    }
}
