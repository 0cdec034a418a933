//! Lets binaries and tests find OR-Tools and MLIR where they link them.

#[path = "../../dialect/mlir/rpath.rs"]
mod mlir;
#[path = "../../passes/ortools/rpath.rs"]
mod ortools;

fn main() {
    mlir::main();
    ortools::main();
}
