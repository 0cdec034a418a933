//! What ends a run early, sorted by what the user can do about it.

use std::path::PathBuf;

use remat_files::shown;
use remat_plan::{BoundCovers, Certificate, Infeasible, Plan, PlanFileError, Problem, ProblemError, StopReason};
use remat_verify::Rejection;
use thiserror::Error;

use crate::refusal::exact;
use crate::{Refusal, Room};

/// Which of the documented outcomes an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// No plan exists, or a given plan is wrong: a finding, not a failure.
    Negative,
    /// The input, or the way it was asked for, is at fault.
    Input,
    /// The checker rejected a plan of ours, or refuted what we claim: a bug of ours.
    Internal,
    /// A limit was reached before a plan was found.
    Limit,
}

/// An answer of ours that the checker rejected, with the problem it answers.
#[derive(Debug)]
pub struct BugReport {
    /// The problem.
    pub problem: Problem,
    /// The plan that is wrong, or that refutes a claim.
    pub plan: Option<Plan>,
    /// What was claimed; a claim that is refuted first, then what is claimed of the plan.
    pub certificates: Vec<Certificate>,
    /// Name of the solver.
    pub solver: String,
    /// What the checker found.
    pub rejection: Rejection,
}

/// Why the pipeline stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or written.
    #[error("cannot {action} `{path}`: {source}", path = shown(.path.display()))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The output is an input, or no regular file.
    #[error(transparent)]
    Output(#[from] remat_files::OutputError),
    /// The file is none of the formats that are read.
    #[error("`{path}` is neither an ONNX model nor a node-link graph nor a problem nor a log: {why}", path = shown(.path.display()), why = shown(.why))]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The input is a module of MLIR where one model is wanted.
    #[error("`{path}` is a module of MLIR, whose functions are models each: only the main job, `remat-opt IN.mlir -o OUT.mlir`, takes it", path = shown(.path.display()))]
    MlirModule {
        /// The file.
        path: PathBuf,
    },
    /// The ONNX model is broken or lacks something.
    #[error(transparent)]
    Onnx(#[from] remat_onnx::OnnxError),
    /// The model cannot be written as MLIR.
    #[error(transparent)]
    Mlir(#[from] remat_onnx_mlir::ExportError),
    /// The node-link graph is broken.
    #[error(transparent)]
    NodeLink(#[from] remat_nodelink::NodeLinkError),
    /// The profile does not fit the model.
    #[error(transparent)]
    Profile(#[from] remat_cost::ProfileError),
    /// No problem can be built from the model.
    #[error(transparent)]
    Build(#[from] remat_cost::ProblemBuildError),
    /// The problem file is malformed.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The log is malformed.
    #[error(transparent)]
    Log(#[from] remat_dtr::LogError),
    /// The plan file does not fit the model.
    #[error(transparent)]
    PlanFile(#[from] PlanFileError),
    /// The table of devices is malformed.
    #[error("`{path}`: {source}", path = shown(.path.display()))]
    DeviceFile {
        /// The file.
        path: PathBuf,
        /// Line, key, and what is wrong.
        source: remat_cost::DeviceTableError,
    },
    /// There is no device of this name.
    #[error("there is no device `{name}`; known are {}", quoted(.known), name = shown(.name))]
    UnknownDevice {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Paging is asked for, but there is nowhere to move anything to.
    #[error("{} states no second memory; those that do: {known}", device.as_ref().map_or_else(|| "the input".to_owned(), |device| format!("device `{device}`")), known = shown(.known))]
    NoSecondMemory {
        /// The device; absent where the input is no model.
        device: Option<String>,
        /// The devices that have one.
        known: String,
    },
    /// Energy is the objective, but nothing says what runs take.
    #[error("nothing says what energy the ops take: choose a device that states it; `{known}` do", known = shown(.known))]
    NoEnergy {
        /// The devices that state it.
        known: String,
    },
    /// There is no solver of this name.
    #[error("there is no solver `{name}`; known are {}", quoted(.known), name = shown(.name))]
    UnknownSolver {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The input has no model to rewrite, only a problem.
    #[error("`{path}` cannot be written: the input is {input}, which has no model to rewrite; write a plan (`.json`) instead", path = shown(.path.display()))]
    NothingToRewrite {
        /// The output.
        path: PathBuf,
        /// What the input is.
        input: &'static str,
    },
    /// The plan moves storages, which ONNX cannot say.
    #[error("`{path}` cannot be written: the plan moves {storages} times to the second memory and back, and ONNX has no words for that; \
         write the plan (`--target plan`: `.json`, `.sched`) or MLIR (`--target mlir --mlir-form remat`: `.mlir`), or leave out `--paging`", path = shown(.path.display()))]
    Paged {
        /// The output.
        path: PathBuf,
        /// How often storages come back.
        storages: usize,
    },
    /// The file is no schedule for devices.
    #[error("not a schedule that can be read: {0}")]
    ScheduleFormat(#[from] remat_schedule::FormatError),
    /// The plan has no schedule, or the schedule is that of another model.
    #[error(transparent)]
    Schedule(#[from] remat_schedule::WriteError),
    /// The extension of the output names no format.
    #[error("`{path}` has no extension that names an output format: use .onnx, .mlir, .json (plan), .sched (plan for devices), .remat (readable text) or .dot", path = shown(.path.display()))]
    UnknownOutput {
        /// The output.
        path: PathBuf,
    },
    /// The budget is below what one op needs.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// The solver proved that no plan exists.
    #[error(
        "no plan{} can meet the budget of {budget} bytes: `{}` proved it",
        if .claim.bound_covers == BoundCovers::FixedOrder { " in the given order" } else { "" },
        shown(&.claim.solver)
    )]
    ProvedInfeasible {
        /// The budget.
        budget: u64,
        /// The proof.
        claim: Box<Certificate>,
    },
    /// The solver proved that none of the plans exists that its model covers.
    #[error("`{}` has no plan of its kind within {budget} bytes: {}; others may exist", .claim.solver, kind_text(.claim.bound_covers))]
    NoPlanOfItsKind {
        /// The budget.
        budget: u64,
        /// The proof.
        claim: Box<Certificate>,
    },
    /// A given plan breaks a rule.
    #[error(transparent)]
    PlanRejected(#[from] Rejection),
    /// No plan was found in time.
    #[error("no plan within {budget} bytes was found ({}){}", format!("{stop:?}").to_lowercase(), reached_text(*.reached))]
    NoPlan {
        /// The budget.
        budget: u64,
        /// Lowest peak that was reached; 0 where nothing was tried.
        reached: u64,
        /// Why the search stopped.
        stop: StopReason,
    },
    /// A plan of ours was rejected.
    #[error("the checker rejected a plan of solver `{}`: this is a bug of remat-opt", .0.solver)]
    Rejected(Box<BugReport>),
    /// A claim of ours was refuted.
    #[error("what solver `{}` claims is refuted by the checker: this is a bug of remat-opt", .0.solver)]
    FalseClaim(Box<BugReport>),
    /// A budget is refused; what is known of those that are not comes with it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A plan keeps the budget and takes longer than allowed.
    #[error("the shortest plan found adds {:.2} %, {:.2} % are allowed; {}", added(*.found, *.baseline), added(*.allowed, *.baseline),
        if .bound > .allowed { format!("no plan adds less than {:.2} %, that is proved", added(*.bound, *.baseline)) }
        else { "there may be a shorter one".to_owned() })]
    TooLong {
        /// Duration of the plan.
        found: u64,
        /// Duration of running every op once.
        baseline: u64,
        /// Longest duration that is allowed.
        allowed: u64,
        /// No plan within the budget is shorter.
        bound: u64,
    },
    /// A budget, or a plan, beyond the memory of the device.
    #[error(
        "{what} is {}, and {room}: name another device, its true memory (`--device-memory`), or no limit (`--device-memory none`)",
        exact(*.bytes)
    )]
    BeyondDevice {
        /// What is beyond it.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
        /// What the device leaves.
        room: Room,
    },
    /// A setting that the plan contradicts.
    #[error("{setting} `{given}` contradicts the plan, which was made with {plan}")]
    Contradiction {
        /// The setting.
        setting: crate::Setting,
        /// Its value.
        given: String,
        /// What the plan says.
        plan: String,
    },
    /// A plan breaks rules because it is one for another model.
    #[error(
        "the plan is for another model, `{plan_model}` (graph {plan_graph}); this one is `{model}` (graph {graph})"
    )]
    OtherModel {
        /// Name of the plan's model.
        plan_model: String,
        /// Digest of its graph.
        plan_graph: String,
        /// Name of the model at hand.
        model: String,
        /// Digest of its graph.
        graph: String,
        /// The rules that the plan breaks here.
        rejection: Box<Rejection>,
    },
    /// A plan moves storages, and the model was read without a second memory.
    #[error(
        "the plan moves results {moves} times, to a second memory or back, and does not say which: name the device and how it moves them, \
         `--device NAME --paging sync|dma`"
    )]
    PlanPages {
        /// Its steps that move something.
        moves: usize,
    },
    /// A budget that does not stand for a number of bytes.
    #[error("`{budget}` is no budget to sweep over: name shares, sizes or `min`")]
    NotSwept {
        /// The budget.
        budget: remat_plan::BudgetSpec,
    },
    /// A budget that cannot be compared over.
    #[error("`{budget}` is no budget to compare solvers under: name shares or sizes")]
    NotCompared {
        /// The budget.
        budget: remat_plan::BudgetSpec,
    },
    /// No budget of a sweep has a plan.
    #[error("none of the {budgets} budgets has a plan; {impossible} of them are impossible")]
    EmptyFront {
        /// How many budgets there are.
        budgets: usize,
        /// How many of them no plan can meet.
        impossible: usize,
    },
    /// Not even the smallest size fits.
    #[error("not even a size of {size} fits into {budget} bytes: {reason}", reason = shown(.reason))]
    NoBatch {
        /// The size.
        size: u64,
        /// Bytes that the peak may reach.
        budget: u64,
        /// Why it does not fit.
        reason: String,
        /// Whether that is proved.
        proved: bool,
    },
    /// The front to continue does not fit.
    #[error(transparent)]
    Front(#[from] crate::FrontFileError),
    /// The plan cannot be applied.
    #[error(transparent)]
    Rewrite(#[from] remat_rewrite::RewriteError),
}

/// Time beyond the baseline, in per cent.
fn added(duration: u64, baseline: u64) -> f64 {
    crate::Overhead { duration, baseline }.percent()
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn reached_text(reached: u64) -> String {
    if reached == 0 {
        String::new()
    } else {
        format!("; the lowest peak reached is {reached} bytes")
    }
}

fn kind_text(covers: BoundCovers) -> &'static str {
    match covers {
        BoundCovers::AllPlans => "it covers all plans",
        BoundCovers::FixedOrder => "it covers the plans whose first runs keep the order of the model",
        BoundCovers::StageForm => "it covers the plans in stage form, in which reruns keep the order of the model",
        BoundCovers::CandidateSet => "it covers the plans that its model can express",
    }
}

impl Error {
    pub(crate) fn unknown_solver(name: &str) -> Self {
        Self::UnknownSolver {
            name: name.to_owned(),
            known: crate::solvers().map(|solver| solver.name().to_owned()).collect(),
        }
    }

    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EmptyFront { budgets, impossible } if budgets == impossible => ErrorKind::Negative,
            Self::NoBatch { proved: true, .. } => ErrorKind::Negative,
            Self::Refused(refusal) => refusal.kind(),
            Self::TooLong { bound, allowed, .. } if bound > allowed => ErrorKind::Negative,
            Self::Infeasible(_) | Self::ProvedInfeasible { .. } | Self::PlanRejected(_) | Self::OtherModel { .. } => {
                ErrorKind::Negative
            }
            Self::Rejected(_) | Self::FalseClaim(_) | Self::Rewrite(_) => ErrorKind::Internal,
            Self::NoPlan { .. }
            | Self::TooLong { .. }
            | Self::NoPlanOfItsKind { .. }
            | Self::EmptyFront { .. }
            | Self::NoBatch { .. } => ErrorKind::Limit,
            Self::Io { .. }
            | Self::Output(_)
            | Self::Mlir(_)
            | Self::UnknownFormat { .. }
            | Self::MlirModule { .. }
            | Self::Onnx(_)
            | Self::NodeLink(_)
            | Self::Profile(_)
            | Self::Build(_)
            | Self::Problem(_)
            | Self::Log(_)
            | Self::PlanFile(_)
            | Self::ScheduleFormat(_)
            | Self::Schedule(_)
            | Self::DeviceFile { .. }
            | Self::UnknownDevice { .. }
            | Self::UnknownSolver { .. }
            | Self::NoSecondMemory { .. }
            | Self::NoEnergy { .. }
            | Self::BeyondDevice { .. }
            | Self::Contradiction { .. }
            | Self::PlanPages { .. }
            | Self::Paged { .. }
            | Self::NothingToRewrite { .. }
            | Self::NotSwept { .. }
            | Self::NotCompared { .. }
            | Self::Front(_)
            | Self::UnknownOutput { .. } => ErrorKind::Input,
        }
    }
}
