//! Ways to write the model, as data: the model of a strategy, the plan on it, and what its file may have in it.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::time::Duration;

use remat::{Model, Solution, SolveRequest};
use remat_onnxruntime_predict::Prediction;

use crate::layout::LaidOut;
use crate::strategy::Strategy;

/// The model of a strategy, opened: the same for all files that are made of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) strategy: Strategy,
    pub(crate) model: Model,
    /// The nodes that it is written with, where the runtime laid it out.
    pub(crate) laid_out: Option<LaidOut>,
    /// What is asked of solvers.
    pub(crate) solve: SolveRequest,
    /// The peak by estimate of its tiles, in bytes; 0 where it has none or they are given.
    pub(crate) estimated_peak: u64,
    /// Bytes that the ops are estimated to take that its tiles add.
    pub(crate) op_bytes: u64,
    /// How many other models with tiles may be measured after it.
    pub(crate) others: usize,
    /// What making a file of it and simulating that is expected to take.
    pub(crate) file: Duration,
    /// Whether the runtime changes the layout of its files when it loads them.
    pub(crate) loads_to_simulate: bool,
    /// Whether a file was no better with all shapes static: then that is not looked at again.
    pub(crate) static_is_worse: Cell<bool>,
    /// What it is predicted to take without a plan, once that was asked for.
    pub(crate) without_plan: OnceCell<Prediction>,
}

impl Opened {
    /// The model whose nodes are written.
    pub(crate) fn written(&self) -> &Model {
        self.laid_out.as_ref().map_or(&self.model, |laid_out| &laid_out.model)
    }

    /// Whether it has fused chains that run tile by tile.
    pub(crate) fn is_tiled(&self) -> bool {
        self.strategy.recipe().tiles
    }
}

/// What a file may have in it that changes what the runtime makes of the model. A relaxation takes something out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lowering {
    /// All nodes in a branch.
    pub(crate) branch: bool,
    /// Static shapes where nothing is gained by making them dynamic.
    pub(crate) static_shapes: bool,
    /// Order anchors.
    pub(crate) anchors: bool,
    /// Room that is reserved for the arena.
    pub(crate) reserve: bool,
}

/// A file that is to be made and measured.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) opened: Rc<Opened>,
    /// The plan, where it is known; else one is searched for.
    pub(crate) plan: Option<Solution>,
    /// How many plans of the model were measured before.
    pub(crate) round: usize,
    /// Whether its search is given all of the time, because a shorter one found nothing.
    pub(crate) is_long: bool,
    /// Overhead that its plan may have, in millionths, where that is less than what is allowed of its model: plans of it were measured to take longer than
    /// estimated.
    pub(crate) max_overhead: Option<u64>,
    /// The calibration margin: bytes by which a measured peak was above its prediction.
    pub(crate) margin: u64,
    pub(crate) lowering: Lowering,
}

impl Candidate {
    /// The first one of a model.
    pub(crate) fn first(opened: Opened) -> Self {
        Self {
            opened: Rc::new(opened),
            plan: None,
            round: 0,
            is_long: false,
            max_overhead: None,
            margin: 0,
            lowering: Lowering {
                branch: true,
                static_shapes: true,
                anchors: true,
                reserve: true,
            },
        }
    }
}
