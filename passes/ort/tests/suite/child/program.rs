//! Runs models for the tests of this crate, as `remat-opt measure-child` does for the command line.

fn main() -> std::io::Result<()> {
    remat_ort::serve(std::io::stdin().lock(), std::io::stdout().lock())
}
