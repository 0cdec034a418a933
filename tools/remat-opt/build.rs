//! Lets binaries and tests find MLIR where they link it.

fn main() {
    remat_build::rpath();
}
