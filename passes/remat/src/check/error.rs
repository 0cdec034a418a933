//! Why a given plan is refused.

use std::fmt;

use remat_files::shown;
use remat_plan::PlanFileError;
use remat_schedule::{FormatError, WriteError};
use remat_verify::Rejection;
use thiserror::Error;

/// Why a given plan is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The plan file does not fit the model.
    #[error(transparent)]
    File(#[from] PlanFileError),
    /// The file is no schedule for devices.
    #[error("not a schedule that can be read: {0}")]
    ScheduleFormat(#[from] FormatError),
    /// The plan has no schedule, or the schedule is that of another model.
    #[error(transparent)]
    Schedule(#[from] WriteError),
    /// The plan breaks a rule.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The plan breaks rules because it is one for another model.
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
    /// A setting that the plan contradicts.
    #[error("{setting} `{given}` contradicts the plan, which was made with {plan}")]
    Contradiction {
        /// The setting.
        setting: Setting,
        /// Its value.
        given: String,
        /// What the plan says.
        plan: String,
    },
    /// The plan moves storages, and the model was read without a second memory.
    #[error("the plan moves results {moves} times, to a second memory or back, and does not say which one")]
    Pages {
        /// Its steps that move something.
        moves: usize,
    },
    /// A part of the plan is for a subgraph that the model does not have.
    #[error("the plan has one for subgraph `{body}` of node `{node}`, and the model has no such subgraph", node = shown(.node), body = shown(.body))]
    NoBody {
        /// The node.
        node: String,
        /// The attribute that should hold the subgraph.
        body: String,
    },
    /// The plan of a subgraph is refused.
    #[error("in the plan of subgraph `{body}` of node `{node}`: {error}", node = shown(.node), body = shown(.body))]
    InBody {
        /// The node.
        node: String,
        /// The attribute that holds the subgraph.
        body: String,
        /// Why.
        error: Box<PlanError>,
    },
}

impl PlanError {
    /// The error of the plan around, whose part for subgraph `body` of `node` has this one.
    #[must_use]
    pub fn in_body(self, node: &str, body: &str) -> Self {
        Self::InBody {
            node: node.to_owned(),
            body: body.to_owned(),
            error: Box::new(self),
        }
    }

    /// The rules that the plan breaks.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::OtherModel { rejection, .. } => Some(rejection),
            Self::InBody { error, .. } => error.rejection(),
            _ => None,
        }
    }
}

/// Something that a plan was made with and that the caller may set, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// [`LoadOptions::accounting`](crate::LoadOptions::accounting).
    Accounting,
    /// [`LoadOptions::order`](crate::LoadOptions::order).
    Order,
    /// [`LoadOptions::max_computes`](crate::LoadOptions::max_computes).
    MaxComputes,
    /// [`LoadOptions::device`](crate::LoadOptions::device).
    Device,
    /// [`LoadOptions::device_file`](crate::LoadOptions::device_file).
    DeviceFile,
    /// [`LoadOptions::dims`](crate::LoadOptions::dims).
    Dim,
    /// [`LoadOptions::sizes`](crate::LoadOptions::sizes).
    Size,
    /// [`LoadOptions::second_memory`](crate::LoadOptions::second_memory).
    Paging,
    /// [`Goal::objective`](crate::Goal::objective).
    Objective,
    /// [`Goal::deadline`](crate::Goal::deadline).
    Deadline,
    /// The execution orders that a file for ONNX Runtime is made for.
    OrderHint,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accounting => "the accounting",
            Self::Order => "the order",
            Self::MaxComputes => "the limit on runs of one op",
            Self::Device => "the device",
            Self::DeviceFile => "the table of devices with",
            Self::Dim => "the dimension",
            Self::Size => "the size",
            Self::Paging => "paging",
            Self::Objective => "the objective",
            Self::Deadline => "the deadline",
            Self::OrderHint => "the execution order",
        })
    }
}
