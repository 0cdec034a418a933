//! Runs models for the tests of this crate, as `remat-opt measure-child` does for the command line.

fn main() -> std::io::Result<()> {
    remat_onnxruntime_run::serve(std::io::stdin().lock(), std::io::stdout().lock())
}
