//! Why a deployment ends without a file, or with one that is not as predicted, and why a lowering strategy is rejected.

use std::collections::BTreeMap;
use std::path::PathBuf;

use remat::{ErrorKind, SolveError};
use remat_files::shown;
use remat_onnx::OnnxError;
use remat_onnxruntime_observe::{ArenaPlanError, ProcessWithin};
use remat_onnxruntime_predict::PredictError;
use remat_onnxruntime_run::{CloseFault, InputKind, RuntimeError, SizeOutcome, dims_text};
use thiserror::Error;

use crate::peaks::HigherPeak;
use crate::{Missed, Strategy};

/// An error of a deployment, or of a comparison of models in the runtime.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The model cannot be read, planned or written.
    #[error(transparent)]
    Pipeline(#[from] remat::Error),
    /// ONNX Runtime refuses the model, or is not what it should be.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Something was to run, and there is nothing to run it in.
    #[error("ONNX Runtime was not found: nothing can be measured")]
    NoRuntime,
    /// Only ONNX models run in ONNX Runtime.
    #[error("`{path}` is not an ONNX model: there is nothing to write for ONNX Runtime", path = shown(.path.display()))]
    NotForRuntime {
        /// The input.
        path: PathBuf,
    },
    /// The plan is one for what a runtime makes of the model, and there is no runtime.
    #[error("the plan is for the graph that {by} makes of the model, and ONNX Runtime was not found")]
    FusedPlan {
        /// The runtime with its version.
        by: String,
    },
    /// A plan on what the runtime lays out cannot be written with the nodes of the model.
    #[error("the graph that the runtime lays out cannot be traced back to its nodes: {why}")]
    NotPortable {
        /// What is wrong with the plan on the nodes.
        why: String,
    },
    /// Nothing that was written has the bits of the input.
    #[error("every lowering strategy was rejected: {}", texts(.rejected))]
    AllRejected {
        /// What was tried.
        rejected: Vec<Rejected>,
    },
    /// The time was over before a file was there that has the bits of the input.
    #[error("time limit reached before all lowering strategies were tried; rejected: {}", texts(.rejected))]
    NoTime {
        /// What was tried.
        rejected: Vec<Rejected>,
    },
    /// It was said that everything is to end, before a file was measured.
    #[error("no file was verified yet, so nothing is written")]
    Interrupted,
    /// The time was over while a file was simulated, and there is another one.
    #[error("time limit reached while a file was simulated")]
    CutOff,
    /// The memory of a file cannot be planned, or its runs do not follow the plan.
    #[error(transparent)]
    ArenaPlan(ArenaPlanError),
    /// No file keeps the budget.
    #[error("no file keeps the budget of {} bytes: the closest takes {} bytes in ONNX Runtime with the memory arena off ({})", .0.budget, .0.reached, if .0.is_measured { "measured" } else { "predicted" })]
    BudgetMissed(Missed),
    /// A process takes more than its limit, whatever is dropped.
    #[error("a process in {} takes at least {} bytes, because of its {}, and {} are the limit", .0.program, .0.least_bytes, .0.forbidden_by.unwrap_or("runs"), .0.limit_bytes)]
    ProcessTooLarge(ProcessWithin),
    /// A measured peak lies above the predicted one.
    #[error("the measured peak of {measured} bytes exceeds the predicted peak of {predicted} bytes")]
    PredictionExceeded {
        /// The predicted peak.
        predicted: u64,
        /// The measured peak.
        measured: u64,
    },
    /// Two models that should compute the same do not.
    #[error("`{rewritten}` does not compute what `{base}` does: output `{output}` differs in {differing} of {elements} elements{} (seed {seed})", form_text(.form.as_deref()), base = shown(.base.display()), rewritten = shown(.rewritten.display()), output = shown(.output))]
    ModelsDiffer {
        /// The first model.
        base: PathBuf,
        /// The second model.
        rewritten: PathBuf,
        /// The first output that differs.
        output: String,
        /// Elements whose bits differ.
        differing: u64,
        /// Elements of the output.
        elements: u64,
        /// What else differs: type, shape or presence.
        form: Option<String>,
        /// Seed of the inputs.
        seed: u64,
    },
    /// Two models that should compute the same do not at another size of a dimension that is not fixed.
    #[error("`{rewritten}` does not compute what `{base}` does: with {} it {outcome}", dims_text(.dims), base = shown(.base.display()), rewritten = shown(.rewritten.display()))]
    OtherAtSize {
        /// The first model.
        base: PathBuf,
        /// The second model.
        rewritten: PathBuf,
        /// The size.
        dims: BTreeMap<String, u64>,
        /// What the second model does there.
        outcome: SizeOutcome,
    },
}

impl DeployError {
    /// The lowest peak that is known of a model for which a budget is refused, in bytes.
    pub(crate) fn lowest_known(&self) -> u64 {
        match self {
            Self::Pipeline(remat::Error::Solve(SolveError::Refused(refusal))) => {
                refusal.lowest.as_ref().map_or(u64::MAX, |lowest| lowest.bytes)
            }
            _ => u64::MAX,
        }
    }

    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Pipeline(error) => error.kind(),
            Self::BudgetMissed(_)
            | Self::ProcessTooLarge(_)
            | Self::PredictionExceeded { .. }
            | Self::ModelsDiffer { .. }
            | Self::OtherAtSize { .. } => ErrorKind::Negative,
            Self::ArenaPlan(error) => error.kind(),
            Self::AllRejected { .. } | Self::NotPortable { .. } => ErrorKind::Internal,
            Self::NoTime { .. }
            | Self::Interrupted
            | Self::CutOff
            | Self::Runtime(RuntimeError::TimedOut { .. } | RuntimeError::Cancelled { .. }) => ErrorKind::Limit,
            Self::Runtime(_) | Self::NoRuntime | Self::NotForRuntime { .. } | Self::FusedPlan { .. } => {
                ErrorKind::Input
            }
        }
    }
}

impl From<PredictError> for DeployError {
    fn from(error: PredictError) -> Self {
        match error {
            PredictError::Pipeline(error) => Self::Pipeline(error),
            PredictError::CutOff => Self::CutOff,
            // Others are told before anything is predicted.
            _ => Self::NoRuntime,
        }
    }
}

impl From<ArenaPlanError> for DeployError {
    fn from(error: ArenaPlanError) -> Self {
        match error {
            ArenaPlanError::Pipeline(error) => Self::Pipeline(error),
            ArenaPlanError::Runtime(error) => Self::Runtime(error),
            error => Self::ArenaPlan(error),
        }
    }
}

impl From<OnnxError> for DeployError {
    fn from(error: OnnxError) -> Self {
        Self::Pipeline(error.into())
    }
}

fn texts(rejected: &[Rejected]) -> String {
    let texts: Vec<String> = rejected
        .iter()
        .map(|one| format!("{}: {}", one.strategy, one.reason))
        .collect();
    texts.join("; ")
}

fn form_text(form: Option<&str>) -> String {
    form.map_or_else(String::new, |form| format!(", {form}"))
}

fn apart_text(fault: &CloseFault, difference: &f64) -> String {
    match fault {
        CloseFault::Form => "has another type or shape".to_owned(),
        CloseFault::NotFinite => "is NaN or infinite where that of the original is not".to_owned(),
        CloseFault::Apart => {
            format!("differs by {difference:.1e} of its largest magnitude, more than rounding explains")
        }
    }
}

/// What is wrong with the file of a strategy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The runtime does not fuse the model, or makes something of it that cannot be read.
    #[error(transparent)]
    NotFused(Box<DeployError>),
    /// The file does not load or run.
    #[error(transparent)]
    DoesNotRun(RuntimeError),
    /// An output has other bits than that of the original model.
    #[error("output `{output}` differs bitwise on inputs of seed {seed}")]
    OutputDiffers {
        /// The first output that differs.
        output: String,
        /// Seed of the inputs.
        seed: u64,
    },
    /// An output differs from that of the original model by more than rounding explains.
    #[error("output `{output}` {}, on {inputs}", apart_text(.fault, .difference))]
    OutputApart {
        /// The output.
        output: String,
        /// What is wrong with it.
        fault: CloseFault,
        /// The relative difference.
        difference: f64,
        /// What inputs it was found on.
        inputs: InputKind,
    },
    /// The file is not as the original model at another size of a dimension that is not fixed.
    #[error("with {} it {outcome}, and the original model runs", dims_text(.dims))]
    OtherAtSize {
        /// The size.
        dims: BTreeMap<String, u64>,
        /// What the file does there.
        outcome: SizeOutcome,
    },
    /// No plan for its model keeps the budget, as far as is known.
    #[error(transparent)]
    Refused(Box<DeployError>),
    /// The best file takes more memory than the budget.
    #[error("it takes {peak} bytes, the budget is {budget} bytes")]
    OverBudget {
        /// The budget.
        budget: u64,
        /// Measured peak of the file, else the predicted one.
        peak: u64,
    },
    /// The file was estimated to take longer than allowed, and was not measured to take less.
    #[error("it takes longer than allowed")]
    TooSlow,
    /// The file takes more memory than the original model.
    #[error(transparent)]
    HigherPeak(#[from] HigherPeak),
}

impl Rejection {
    /// Whether an output has other bits than that of the original model.
    #[must_use]
    pub fn is_about_bits(&self) -> bool {
        matches!(self, Self::OutputDiffers { .. })
    }
}

/// A strategy that was rejected.
#[derive(Debug)]
pub struct Rejected {
    /// The strategy.
    pub strategy: Strategy,
    /// What was wrong with it.
    pub reason: Rejection,
}

/// Of the budgets that were refused, the refusal with the lowest peak that is known, taken out of what was rejected. What is proved of one strategy is
/// not of all: one that was looked for in vain comes first.
pub(crate) fn least_refusal(rejected: &mut Vec<Rejected>) -> Option<DeployError> {
    let refusals = rejected
        .iter()
        .enumerate()
        .filter_map(|(place, one)| match &one.reason {
            Rejection::Refused(error) => Some((error.kind() != ErrorKind::Limit, error.lowest_known(), place)),
            _ => None,
        });
    let (.., place) = refusals.min()?;
    match rejected.swap_remove(place).reason {
        Rejection::Refused(error) => Some(*error),
        _ => None,
    }
}
