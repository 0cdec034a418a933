//! What ends a run early, by the stage that it ends, and sorted by what the user can do about it. The errors of a stage stand beside the
//! code that meets them.

use thiserror::Error;

use crate::{
    CompareError, FissionError, NoBatch, PlacementError, PlanError, ReadError, SaveError, SetupError, ShapesMissed,
    SolveError, SweepError,
};

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

/// Why the pipeline stopped: the error of one of its stages.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An input cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No problem can be built from the input.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A given plan is refused.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no plan, or none that may be used.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A sweep has no result.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A comparison of solvers has no result.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// No size of the model fits.
    #[error(transparent)]
    Batch(#[from] NoBatch),
    /// No fused chain of the model can run tile by tile.
    #[error(transparent)]
    Fission(#[from] FissionError),
    /// Buffers are not placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A budget does not hold in all shapes.
    #[error(transparent)]
    Shapes(#[from] ShapesMissed),
    /// A result cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
}

impl Error {
    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Batch(NoBatch { proved: true, .. }) | Self::Shapes(_) => ErrorKind::Negative,
            Self::Plan(error) if error.rejection().is_some() => ErrorKind::Negative,
            Self::Solve(error) => error.kind(),
            Self::Placement(error) => error.kind(),
            Self::Fission(error) => error.kind(),
            Self::Sweep(SweepError::NoPlans(none)) | Self::Compare(CompareError::NoPlans(none)) => {
                if none.budgets == none.impossible {
                    ErrorKind::Negative
                } else {
                    ErrorKind::Limit
                }
            }
            Self::Batch(_) => ErrorKind::Limit,
            Self::Save(SaveError::Rewrite(_)) => ErrorKind::Internal,
            Self::Read(_) | Self::Setup(_) | Self::Plan(_) | Self::Sweep(_) | Self::Compare(_) | Self::Save(_) => {
                ErrorKind::Input
            }
        }
    }
}

/// The error of another crate is one of the stage that meets it.
macro_rules! met_by {
    ($($stage:ident: $($source:ty),+;)+) => {
        $($(impl From<$source> for Error {
            fn from(error: $source) -> Self {
                $stage::from(error).into()
            }
        })+)+
    };
}

met_by! {
    ReadError: remat_onnx::OnnxError, remat_nodelink::NodeLinkError, remat_plan::ProblemError, remat_dtr::LogError;
    SetupError: remat_cost::ProfileError, remat_cost::ProblemBuildError;
    PlanError: remat_plan::PlanFileError, remat_schedule::FormatError, remat_schedule::WriteError;
    SolveError: remat_plan::Infeasible;
    SaveError: remat_files::OutputError, remat_onnx_mlir::ExportError, remat_rewrite::RewriteError;
}

/// Names in quotes, separated by commas.
pub(crate) fn quoted(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Bytes exactly, and from a kibibyte on also in the unit that fits.
pub(crate) fn exact(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    format!("{} ({bytes} bytes)", bytesize::ByteSize(bytes).display().iec())
}
