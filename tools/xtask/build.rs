//! Lets binaries and tests find MLIR where they link it.

#[path = "../../dialect/mlir/rpath.rs"]
mod mlir;

fn main() {
    mlir::main();
}
