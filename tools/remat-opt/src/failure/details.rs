//! The names and numbers of an error, so that programs need not read its message.

use std::fmt;

use remat::Error;
use remat::dtr::{Heuristic, UnknownHeuristic};
use remat::onnx::OnnxError;
use remat::plan::{PlanFileError, StopReason};
use remat::verify::Violation;
use schemars::JsonSchema;
use serde::Serialize;

use super::similar::similar;

/// One object for each sort of error that has more to tell than a sentence; further sorts and fields may be added.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Details {
    /// A budget that was not met.
    Budget(Budget),
    /// A name that does not exist.
    UnknownName(UnknownName),
    /// Sizes that do not follow from the model.
    UnknownSizes {
        /// The tensors.
        tensors: Vec<String>,
        /// The dimensions that would settle some of them.
        dims: Vec<String>,
    },
    /// Rules of the checker that a plan breaks.
    Violations {
        /// The violations.
        violations: Vec<ViolationRecord>,
        /// How many more there are.
        suppressed: usize,
    },
    /// Outputs that differ.
    OutputDiffers {
        /// The output.
        output: String,
        /// Elements whose bits differ.
        differing: u64,
        /// Elements of the output.
        elements: u64,
        /// Seed of the inputs.
        seed: u64,
    },
    /// A measured peak above the predicted one.
    PredictionExceeded {
        /// The predicted peak.
        predicted_bytes: u64,
        /// The measured peak.
        measured_bytes: u64,
    },
}

/// A budget that was not met, and what is known about budgets that can be.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Budget {
    /// The budget.
    pub(crate) budget_bytes: u64,
    /// The op that needs most memory at once.
    pub(crate) op: Option<String>,
    /// Bytes that every plan needs: no budget below can be met.
    pub(crate) need_bytes: Option<u64>,
    /// The lowest peak that was found.
    pub(crate) lowest_peak_bytes: Option<u64>,
    /// Whether it is proved that no plan meets the budget.
    pub(crate) proved: bool,
    /// Why the search stopped, where it is not proved.
    pub(crate) stop: Option<StopReason>,
    /// Who proved it.
    pub(crate) solver: Option<String>,
    /// A command that finds a plan.
    pub(crate) command: Option<String>,
}

/// A name that does not exist.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UnknownName {
    /// What it should name: `solver`, `device`, `dimension`, `tensor`, `rule` or `heuristic`.
    pub(crate) what: &'static str,
    /// The name.
    pub(crate) name: String,
    /// The names there are.
    pub(crate) known: Vec<String>,
    /// The one most like it, if one is.
    similar: Option<String>,
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, name: &str, known: Vec<String>) -> Self {
        Self {
            what,
            similar: similar(name, known.iter().map(String::as_str)).map(str::to_owned),
            name: name.to_owned(),
            known,
        }
    }

    /// The names that an error is about, if it is one of these.
    fn of(error: &anyhow::Error) -> Option<Self> {
        if let Some(unknown) = error.downcast_ref::<Self>() {
            return Some(unknown.clone());
        }
        if let Some(UnknownHeuristic(name)) = error.downcast_ref() {
            return Some(Self::new(
                "heuristic",
                name,
                Heuristic::NAMES.map(str::to_owned).to_vec(),
            ));
        }
        let (what, name, known) = match error.downcast_ref::<Error>()? {
            Error::UnknownSolver { name, known } => ("solver", name, known),
            Error::UnknownDevice { name, known } => ("device", name, known),
            Error::Onnx(OnnxError::UnknownDim { name, known }) => ("dimension", name, known),
            Error::Onnx(OnnxError::UnknownTensor { name, known }) => ("tensor", name, known),
            _ => return None,
        };
        Some(Self::new(what, name, known.clone()))
    }

    /// What the user may have meant.
    pub(super) fn suggestion(&self) -> Option<String> {
        self.similar
            .as_ref()
            .map(|similar| format!("did you mean `{similar}`?"))
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {} `{}`", self.what, self.name)
    }
}

impl std::error::Error for UnknownName {}

/// A rule of the checker that a plan breaks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ViolationRecord {
    /// Code of the rule, `V006` for instance.
    code: String,
    /// Position of the step that breaks it, from 0; absent where it is the plan as a whole.
    step: Option<usize>,
    /// What is wrong.
    message: String,
}

impl From<&Violation> for ViolationRecord {
    fn from(violation: &Violation) -> Self {
        Self {
            code: violation.code.to_string(),
            step: violation.step,
            message: violation.message.clone(),
        }
    }
}

impl Details {
    /// What an error has to tell.
    pub(super) fn of(error: &anyhow::Error) -> Option<Self> {
        if let Some(unknown) = UnknownName::of(error) {
            return Some(Self::UnknownName(unknown));
        }
        Some(match error.downcast_ref::<Error>()? {
            Error::Infeasible(infeasible) => Self::Budget(Budget {
                budget_bytes: infeasible.budget,
                op: Some(infeasible.op.clone()),
                need_bytes: Some(infeasible.need),
                proved: true,
                ..Budget::default()
            }),
            Error::ProvedInfeasible { budget, claim } => Self::Budget(Budget {
                budget_bytes: *budget,
                proved: true,
                solver: Some(claim.solver.clone()),
                ..Budget::default()
            }),
            Error::NoPlanOfItsKind { budget, claim } => Self::Budget(Budget {
                budget_bytes: *budget,
                solver: Some(claim.solver.clone()),
                ..Budget::default()
            }),
            Error::NoPlan { budget, reached, stop } => Self::Budget(Budget {
                budget_bytes: *budget,
                lowest_peak_bytes: Some(*reached).filter(|&reached| reached > 0),
                stop: Some(*stop),
                ..Budget::default()
            }),
            Error::Onnx(OnnxError::UnknownSizes { tensors, dims, .. }) => Self::UnknownSizes {
                tensors: tensors.clone(),
                dims: dims.clone(),
            },
            Error::PlanRejected(rejection) => Self::Violations {
                violations: rejection.violations.iter().map(ViolationRecord::from).collect(),
                suppressed: rejection.suppressed,
            },
            Error::ModelsDiffer {
                output,
                differing,
                elements,
                seed,
                ..
            } => Self::OutputDiffers {
                output: output.clone(),
                differing: *differing,
                elements: *elements,
                seed: *seed,
            },
            Error::BrokenPromise { promised, measured } => Self::PredictionExceeded {
                predicted_bytes: *promised,
                measured_bytes: *measured,
            },
            _ => return None,
        })
    }
}

/// The op or tensor that an error is about.
pub(super) fn node(error: &Error) -> Option<String> {
    let name = match error {
        Error::Infeasible(infeasible) => &infeasible.op,
        Error::ModelsDiffer { output, .. } => output,
        Error::PlanFile(PlanFileError::UnknownNode { node, .. }) => node,
        Error::PlanFile(PlanFileError::UnknownTensor { tensor, .. }) => tensor,
        Error::Onnx(error) => return onnx_node(error),
        _ => return None,
    };
    Some(name.clone())
}

fn onnx_node(error: &OnnxError) -> Option<String> {
    let name = match error {
        OnnxError::UndefinedInput { node, .. } | OnnxError::ShapeOverflow { node, .. } => node,
        OnnxError::UndefinedOutput { tensor }
        | OnnxError::BadTensor { tensor, .. }
        | OnnxError::ExternalData { tensor, .. } => tensor,
        OnnxError::DuplicateName { name, .. }
        | OnnxError::UnknownTensor { name, .. }
        | OnnxError::Unsupported { name, .. } => name,
        OnnxError::Foreign { op, .. } => op,
        OnnxError::Cycle { nodes } => nodes.first()?,
        OnnxError::UnknownSizes { tensors, .. } => tensors.first()?,
        _ => return None,
    };
    Some(name.clone())
}
