//! Lets the plugin find the libraries that it is linked with.

#[path = "../../dialect/mlir/rpath.rs"]
mod mlir;
#[path = "../ortools/rpath.rs"]
mod ortools;

fn main() {
    mlir::main();
    ortools::main();
}
