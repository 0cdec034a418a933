//! What comes of a deployment.

use remat::{Model, Solution};
use remat_onnxruntime_lower::LoweringReport;
use remat_onnxruntime_predict::Prediction;
use remat_onnxruntime_run::OptimizationLevel;
use schemars::JsonSchema;
use serde::Serialize;

use crate::check::{Check, tolerated};
use crate::clock::LeftOut;
use crate::error::Rejected;
use crate::layout::Padding;
use crate::original::data_decides;
use crate::peaks::{BeforeAfter, Missed};
use crate::strategy::Strategy;

/// What a file takes at a lower level, with the memory arena off. Its bits are those of the original at that level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LowerLevelResult {
    /// The level.
    pub level: OptimizationLevel,
    /// Peaks at that level.
    #[serde(flatten)]
    pub peak: BeforeAfter,
}

/// A model on its way to the runtime, and what is known of it.
#[derive(Debug)]
pub struct Deployment {
    /// The model that was planned on: what the runtime made of the input, or the input.
    pub model: Model,
    /// The plan.
    pub solution: Solution,
    /// The budget that was asked for, where it is a number of bytes.
    pub budget: Option<u64>,
    /// The most time that may be added, in millionths of that of the original model, where there is a limit.
    pub most_overhead: Option<u64>,
    /// How it was written.
    pub strategy: Strategy,
    /// By how much the budget is missed, where no file keeps it: then this is the file that comes closest, and it is written only where that
    /// was forced.
    pub missed: Option<Missed>,
    /// Whether there is a file: none where no file takes less than the original model, or keeps the budget.
    pub is_written: bool,
    /// Whether it is written for the plan of its memory alone: without one it takes no less than the original model.
    pub is_for_a_plan: bool,
    /// What was tried before.
    pub rejected: Vec<Rejected>,
    /// What was done for the runtime.
    pub lowering: LoweringReport,
    /// What the simulation of the runtime says.
    pub prediction: Prediction,
    /// What was measured.
    pub check: Option<Check>,
    /// A lower level at which a file gains, where none gains at the one that was asked for.
    pub lower_level_result: Option<LowerLevelResult>,
    /// What fills the memory because the runtime keeps it in blocks of channels, where that is so for what is written.
    pub padding: Option<Padding>,
    /// What there was no time for.
    pub left_out: Vec<LeftOut>,
}

impl Deployment {
    /// The predicted peak, in bytes, where the measured one exceeds it by more than the model of the runtime leaves out.
    #[must_use]
    pub fn exceeded_prediction(&self) -> Option<u64> {
        let measured = self.check.as_ref().and_then(|check| check.after.arena_off)?;
        let predicted = self.prediction.peak_bytes;
        (measured > tolerated(predicted)).then_some(predicted)
    }

    /// Whether nothing is written because the data decides much of what a run takes, however little the file takes on the inputs that it was
    /// measured on.
    #[must_use]
    pub fn is_left_to_data(&self) -> bool {
        !self.is_written && self.strategy.recipe().rewrites && data_decides(&self.model, self.prediction.peak_bytes)
    }

    /// Whether the peak of the first run with the memory arena was measured.
    #[must_use]
    pub fn arena_is_measured(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.after.first_run.is_some())
    }

    /// Whether the peak of later runs with the memory arena was measured.
    #[must_use]
    pub fn arena_steady_is_measured(&self) -> bool {
        self.check
            .as_ref()
            .is_some_and(|check| check.after.later_runs.is_some())
    }
}
