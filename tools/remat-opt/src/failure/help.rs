//! What the user can do about an error.

use remat::onnx::OnnxError;
use remat::ortools::LibraryError;
use remat::plan::{BudgetSpec, StopReason};
use remat::{Error, PlacementError, PlanError, ReadError, SaveError, SolveError};
use remat_files::shown;
use remat_onnxruntime_deploy::{DeployError, Strategy};
use remat_onnxruntime_run::RuntimeError;

use super::exceeded::LimitExceeded;
use super::pipeline::pipeline;
use crate::console::streams;

/// A sentence or two; `None` where the message says all there is.
pub(super) fn help(error: &anyhow::Error) -> Option<String> {
    if let Some(DeployError::FusedPlan { .. }) = error.downcast_ref() {
        return Some("install it, or name it with `--ort-library`".to_owned());
    }
    if let Some(DeployError::Runtime(RuntimeError::TimedOut { .. })) = error.downcast_ref() {
        return Some(
            "one run of the model takes longer than the limit allows: give it more time (`--time-limit`)".to_owned(),
        );
    }
    if let Some(DeployError::Runtime(RuntimeError::Load { .. })) = error.downcast_ref() {
        return Some(
            "name a runtime that has its operators with `--ort-library`; `remat-opt MODEL -o OUT --no-measure` plans without a run"
                .to_owned(),
        );
    }
    if let Some(DeployError::NoTime { rejected } | DeployError::AllRejected { rejected }) = error.downcast_ref()
        && rejected
            .iter()
            .any(|one| one.strategy == Strategy::Untouched && one.reason.is_about_bits())
    {
        return Some(
            "with sizes that are fixed ONNX Runtime itself may round otherwise: leave them open with `--dim` instead of `--fix-dim`, or permit it with `--fission close`"
                .to_owned(),
        );
    }
    if error.is::<LimitExceeded>() {
        return Some("`remat-opt MODEL -o OUT --budget min` writes one that takes less, if there is one".to_owned());
    }
    if error.is::<&'static LibraryError>() {
        return Some(
            "name a library of OR-Tools 9, or leave out the option and the variable `REMAT_ORTOOLS_LIBRARY`".to_owned(),
        );
    }
    let text = match pipeline(error)? {
        Error::Read(error) => reading(error)?,
        Error::Plan(PlanError::OtherModel { .. }) => {
            "name the model that the plan was made for, or make a plan for this one".to_owned()
        }
        Error::Plan(PlanError::Schedule(_)) => {
            "name the model that the device program was made for; where that runs in tiles, `--tiles-from PLAN` says in which".to_owned()
        }
        Error::Plan(error) if error.rejection().is_some() => "`remat-opt explain CODE` explains a rule".to_owned(),
        Error::Plan(PlanError::Pages { .. }) => {
            "name the device and how it moves them, `--device NAME --paging sync|dma`".to_owned()
        }
        Error::Solve(error) => solving(error)?,
        Error::Placement(PlacementError::NotFound { .. }) => {
            "give it more time (`--time-limit`), or a larger block; without `--capacity` the lowest that is found is told".to_owned()
        }
        Error::Placement(PlacementError::Rejected(_)) => "please report it with the file of buffers".to_owned(),
        Error::Save(SaveError::Paged { .. }) => {
            "write it for ONNX Runtime (`--target ort`), as a plan (`--target plan`: `.json`, `.sched`) or as MLIR (`--target mlir --mlir-form remat`: `.mlir`), or leave out `--paging`"
                .to_owned()
        }
        _ => return None,
    };
    Some(text)
}

fn reading(error: &ReadError) -> Option<String> {
    let text = match error {
        ReadError::MlirModule { .. } => "only the main command, `remat-opt IN.mlir -o OUT.mlir`, takes a module",
        ReadError::Onnx(OnnxError::UnknownSizes { dims, .. }) => {
            let dims: Vec<String> = dims.iter().map(|dim| format!("{}=N", shown(dim))).collect();
            return Some(match dims.as_slice() {
                [] => "give single sizes with `--size TENSOR=BYTES`".to_owned(),
                dims => format!(
                    "give the sizes of a typical run, `--dim {}`, or single sizes with `--size TENSOR=BYTES`",
                    dims.join(",")
                ),
            });
        }
        ReadError::ForeignFormat { what, .. } => what.remedy(),
        ReadError::Onnx(OnnxError::ExternalData { .. }) if streams::stdin_is_held() => {
            "data files lie in the folder of their model, and stdin has none: name the model's file instead of `-`"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Budgets in bytes that are more likely shares without their sign.
const PERCENT: u64 = 100;

fn solving(error: &SolveError) -> Option<String> {
    let text = match error {
        SolveError::Refused(refusal) => match refusal.asked {
            BudgetSpec::Bytes(bytes) if bytes <= PERCENT => {
                format!("a number without a unit is one of bytes: did you mean {bytes}%?")
            }
            _ => return None,
        },
        SolveError::Infeasible(infeasible) => format!(
            "an op holds its operands, its results and its workspace together: no plan of whole ops keeps a budget below {} bytes",
            infeasible.need
        ),
        SolveError::Unavailable { .. } => {
            "install it (`pip install ortools`), or name its library with `--ortools-library`; `--solver auto` goes without".to_owned()
        }
        SolveError::NoPlan {
            stop: StopReason::Refused,
            ..
        } => "the solver cannot work on this problem, `-v` shows why; `--solver auto` can".to_owned(),
        SolveError::NoPlanOfItsKind { .. } => "`--solver auto` looks among all plans".to_owned(),
        SolveError::NoPlan { reached, .. } => {
            format!("give it more time (`--time-limit`), or a budget of at least {reached} bytes")
        }
        SolveError::BeyondDevice { .. } => {
            "name another device, its true memory (`--device-memory`), or no limit (`--device-memory none`)".to_owned()
        }
        _ => return None,
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use remat_onnxruntime_deploy::{Rejected, Rejection};

    use super::*;

    #[test]
    fn where_a_model_as_it_came_rounds_otherwise_fixed_sizes_are_why() {
        let rejected = |strategy: Strategy, reason: Rejection| {
            let rejected = vec![Rejected { strategy, reason }];
            help(&anyhow::Error::new(DeployError::NoTime { rejected }))
        };
        let differs = || Rejection::OutputDiffers {
            output: "y".to_owned(),
            seed: 0,
        };
        insta::assert_snapshot!(rejected(Strategy::Untouched, differs()).expect("it helps"), @"with sizes that are fixed ONNX Runtime itself may round otherwise: leave them open with `--dim` instead of `--fix-dim`, or permit it with `--fission close`");
        assert_eq!(rejected(Strategy::Fused, differs()), None);
        assert_eq!(rejected(Strategy::Untouched, Rejection::TooSlow), None);
    }
}
