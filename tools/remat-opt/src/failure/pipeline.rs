//! The pipeline's errors among those of the program.

use remat::Error;
use remat_onnxruntime_deploy::DeployError;

/// The error of the pipeline that it is, also where a deployment met it.
pub(crate) fn pipeline(error: &anyhow::Error) -> Option<&Error> {
    match error.downcast_ref() {
        Some(DeployError::Pipeline(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}
