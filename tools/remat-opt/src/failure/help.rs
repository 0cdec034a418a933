//! What the user can do about an error.

use remat::Error;
use remat::onnx::OnnxError;
use remat::plan::StopReason;
use remat_onnxruntime_deploy::DeployError;

use crate::console::streams;

/// A sentence or two; `None` where the message says all there is.
pub(super) fn help(error: &anyhow::Error) -> Option<String> {
    if let Some(DeployError::FusedPlan { .. }) = error.downcast_ref() {
        return Some("install it, or name it with `--ort-library`".to_owned());
    }
    let text = match super::pipeline(error)? {
        Error::Infeasible(infeasible) => format!(
            "an op holds its operands, its results and its workspace together: no budget below {} bytes can be met",
            infeasible.need
        ),
        Error::NoPlan {
            stop: StopReason::Refused,
            ..
        } => "the solver cannot work on this problem, `-v` shows why; `--solver auto` can".to_owned(),
        Error::NoPlanOfItsKind { .. } => "`--solver auto` looks among all plans".to_owned(),
        Error::NoPlan { reached, .. } => {
            format!("give it more time (`--time-limit`), or a budget of at least {reached} bytes")
        }
        Error::Onnx(OnnxError::UnknownSizes { .. }) => {
            "give the dimensions with `--dim NAME=N`, or single sizes with `--size TENSOR=BYTES`".to_owned()
        }
        Error::Onnx(OnnxError::ExternalData { .. }) if streams::stdin_is_held() => {
            "data files lie in the folder of their model, and stdin has none: name the model's file instead of `-`"
                .to_owned()
        }
        Error::OtherModel { .. } => "name the model that the plan was made for, or make a plan for this one".to_owned(),
        Error::PlanRejected(_) => "`remat-opt explain CODE` explains a rule".to_owned(),
        _ => return None,
    };
    Some(text)
}
