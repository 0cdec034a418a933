//! Lets the plugin find the libraries that it is linked with.

#[path = "../../../dialect/mlir/rpath.rs"]
mod mlir;

fn main() {
    // What is missing is found now, not when the plugin is loaded.
    println!("cargo::rustc-link-arg=-Wl,-z,defs");
    mlir::main();
}
