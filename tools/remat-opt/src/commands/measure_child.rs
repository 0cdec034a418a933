//! `remat-opt measure-child`: runs a model for another command, which started this process to measure it.

/// Answers one request on standard input.
pub(crate) fn run() -> anyhow::Result<()> {
    Ok(remat_onnxruntime_run::serve(
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )?)
}
