//! The names and numbers of an error, so that programs need not read its message.

use std::fmt;

use remat::dtr::{Heuristic, UnknownHeuristic};
use remat::formula::Within;
use remat::onnx::OnnxError;
use remat::plan::{PlanFileError, StopReason};
use remat::verify::Violation;
use remat::{BaselineOf, Error, PlanError, ReadError, SetupError, ShapesMissed, SolveError};
use remat_onnxruntime_deploy::{DeployError, Missed, ProcessWithin};
use schemars::JsonSchema;
use serde::Serialize;

use super::exceeded::LimitExceeded;
use super::pipeline::pipeline;
use super::similar::similar;
use crate::again;

/// One object for each sort of error that has more to tell than a sentence; further sorts and fields may be added.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Details {
    /// A budget that was not met.
    Budget(Budget),
    /// A plan that keeps the budget and takes longer than allowed.
    Overhead {
        /// Duration of the shortest plan found.
        found: u64,
        /// Duration of running every op once.
        baseline: u64,
        /// Longest duration that is allowed.
        allowed: u64,
        /// Whether it is proved that no plan within the budget takes as little as is allowed.
        proved: bool,
        /// A command that finds a plan.
        command: Option<String>,
    },
    /// A budget, or a plan, beyond the memory of the device.
    DeviceMemory {
        /// Name of the device.
        device: String,
        /// Its memory.
        memory_bytes: u64,
        /// What the inputs take of it.
        inputs_bytes: u64,
        /// What the weights take of it; 0 where they lie in flash.
        weights_bytes: u64,
        /// The budget, or the peak of the plan.
        bytes: u64,
    },
    /// An option that the plan contradicts.
    Contradiction {
        /// The option.
        flag: &'static str,
        /// Its value.
        given: String,
        /// What the plan was made with.
        plan: String,
    },
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
    /// A budget that no file keeps, and what the closest one takes.
    BudgetMissed(Missed),
    /// A budget that does not hold in all shapes that are stated.
    ShapesMissed(Within),
    /// A process that takes more than its limit, whatever is dropped.
    ProcessTooLarge(ProcessWithin),
    /// Models that take more than they may.
    LimitExceeded(LimitExceeded),
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
    /// Who proved it, or that its own model has no plan.
    pub(crate) solver: Option<String>,
    /// The op that runs at the lowest peak.
    pub(crate) lowest_peak_op: Option<String>,
    /// Whether it is proved that no plan has a lower peak.
    pub(crate) lowest_is_proved: bool,
    /// What the model takes as it is: what shares are of.
    pub(crate) baseline_peak_bytes: Option<u64>,
    /// What says so.
    pub(crate) baseline_of: Option<BaselineOf>,
    /// A command that finds a plan.
    pub(crate) command: Option<String>,
}

impl Budget {
    /// What an error about a budget has to tell; nothing for others.
    fn of(error: &SolveError) -> Self {
        match error {
            SolveError::Infeasible(infeasible) => Self {
                budget_bytes: infeasible.budget,
                op: Some(infeasible.op.clone()),
                need_bytes: Some(infeasible.need),
                proved: true,
                ..Self::default()
            },
            SolveError::ProvedInfeasible { budget, claim } => Self {
                budget_bytes: *budget,
                proved: true,
                solver: Some(claim.solver.clone()),
                ..Self::default()
            },
            SolveError::NoPlanOfItsKind { budget, claim } => Self {
                budget_bytes: *budget,
                solver: Some(claim.solver.clone()),
                ..Self::default()
            },
            SolveError::NoPlan { budget, reached, stop } => Self {
                budget_bytes: *budget,
                lowest_peak_bytes: Some(*reached).filter(|&reached| reached > 0),
                stop: Some(*stop),
                ..Self::default()
            },
            SolveError::Refused(refusal) => Self {
                budget_bytes: refusal.budget,
                op: refusal.op.clone(),
                need_bytes: Some(refusal.need),
                lowest_peak_bytes: refusal.lowest.as_ref().map(|lowest| lowest.bytes),
                lowest_peak_op: refusal.lowest.as_ref().and_then(|lowest| lowest.op.clone()),
                lowest_is_proved: refusal.lowest.as_ref().is_some_and(|lowest| lowest.proved),
                baseline_peak_bytes: Some(refusal.baseline.bytes),
                baseline_of: Some(refusal.baseline.of),
                command: again::after(error),
                ..Self::of(&refusal.cause)
            },
            _ => Self::default(),
        }
    }
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
        let (what, name, known) = match pipeline(error)? {
            Error::Solve(SolveError::UnknownSolver { name, known }) => ("solver", name, known),
            Error::Setup(SetupError::UnknownDevice { name, known }) => ("device", name, known),
            Error::Read(ReadError::Onnx(OnnxError::UnknownDim { name, known })) => ("dimension", name, known),
            Error::Read(ReadError::Onnx(OnnxError::UnknownTensor { name, known })) => ("tensor", name, known),
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
    /// The command that does what was asked for with one option changed, where one is known.
    pub(super) fn command(&self) -> Option<&str> {
        match self {
            Self::Budget(budget) => budget.command.as_deref(),
            Self::Overhead { command, .. } => command.as_deref(),
            _ => None,
        }
    }

    /// What an error has to tell.
    pub(super) fn of(error: &anyhow::Error) -> Option<Self> {
        if let Some(unknown) = UnknownName::of(error) {
            return Some(Self::UnknownName(unknown));
        }
        if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
            return Some(Self::LimitExceeded(exceeded.clone()));
        }
        if let Some(error) = error.downcast_ref().and_then(Self::of_deployment) {
            return Some(error);
        }
        match pipeline(error)? {
            Error::Read(ReadError::Onnx(OnnxError::UnknownSizes { tensors, dims, .. })) => Some(Self::UnknownSizes {
                tensors: tensors.clone(),
                dims: dims.clone(),
            }),
            Error::Shapes(ShapesMissed(within)) => Some(Self::ShapesMissed(within.clone())),
            Error::Plan(error) => Self::of_plan(error),
            Error::Solve(error) => Self::of_search(error),
            _ => None,
        }
    }

    /// What the refusal of a given plan has to tell.
    fn of_plan(error: &PlanError) -> Option<Self> {
        if let PlanError::Contradiction { setting, given, plan } = error {
            return Some(Self::Contradiction {
                flag: super::flags::flag(*setting),
                given: given.clone(),
                plan: plan.clone(),
            });
        }
        error.rejection().map(|rejection| Self::Violations {
            violations: rejection.violations.iter().map(ViolationRecord::from).collect(),
            suppressed: rejection.suppressed,
        })
    }

    /// What a search without a plan has to tell.
    fn of_search(error: &SolveError) -> Option<Self> {
        Some(match error {
            SolveError::Infeasible(_)
            | SolveError::ProvedInfeasible { .. }
            | SolveError::NoPlanOfItsKind { .. }
            | SolveError::NoPlan { .. }
            | SolveError::Refused(_) => Self::Budget(Budget::of(error)),
            SolveError::TooLong {
                found,
                baseline,
                allowed,
                bound,
            } => Self::Overhead {
                found: *found,
                baseline: *baseline,
                allowed: *allowed,
                proved: bound > allowed,
                command: again::after(error),
            },
            SolveError::BeyondDevice { bytes, capacity, .. } => Self::DeviceMemory {
                device: capacity.device.clone(),
                memory_bytes: capacity.memory,
                inputs_bytes: capacity.inputs,
                weights_bytes: capacity.weights,
                bytes: *bytes,
            },
            _ => return None,
        })
    }

    /// What an error of a deployment itself has to tell.
    fn of_deployment(error: &DeployError) -> Option<Self> {
        match error {
            DeployError::ModelsDiffer {
                output,
                differing,
                elements,
                seed,
                ..
            } => Some(Self::OutputDiffers {
                output: output.clone(),
                differing: *differing,
                elements: *elements,
                seed: *seed,
            }),
            DeployError::PredictionExceeded { predicted, measured } => Some(Self::PredictionExceeded {
                predicted_bytes: *predicted,
                measured_bytes: *measured,
            }),
            DeployError::ProcessTooLarge(within) => Some(Self::ProcessTooLarge(*within)),
            DeployError::BudgetMissed(missed) => Some(Self::BudgetMissed(*missed)),
            _ => None,
        }
    }
}

/// The op or tensor that an error is about.
pub(super) fn node(error: &anyhow::Error) -> Option<String> {
    if let Some(DeployError::ModelsDiffer { output, .. }) = error.downcast_ref() {
        return Some(output.clone());
    }
    if let Some(LimitExceeded { models }) = error.downcast_ref() {
        return models.first().map(|over| over.op.clone());
    }
    let name = match pipeline(error)? {
        Error::Solve(SolveError::Infeasible(infeasible)) => &infeasible.op,
        Error::Solve(SolveError::Refused(refusal)) => return refusal.op.clone(),
        Error::Plan(PlanError::File(PlanFileError::UnknownNode { node, .. })) => node,
        Error::Plan(PlanError::File(PlanFileError::UnknownTensor { tensor, .. })) => tensor,
        Error::Read(ReadError::Onnx(error)) => return onnx_node(error),
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
