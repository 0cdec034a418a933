//! What holds of a written model in ONNX Runtime, for JSON.

use std::path::PathBuf;

use remat_onnxruntime_deploy::{
    ArenaOff, ArenaPlanned, Check, Deployment, LeftOut, LowerLevelResult, Padding, Prediction, Rejected, Setting,
    SettingsTried, Strategy,
};
use remat_onnxruntime_run::OptimizationLevel;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::OptimizeArgs;
use super::session::SessionRecord;

/// What holds in ONNX Runtime.
#[derive(Serialize, JsonSchema)]
pub(super) struct InRuntime {
    /// `ort`.
    target: &'static str,
    /// The level at which the runtime optimizes the model when it loads it.
    pub(super) level: OptimizationLevel,
    /// Whether the model is made for sessions with the memory arena on.
    pub(super) arena: bool,
    /// How the model is written.
    pub(super) strategy: Strategy,
    /// The strategies that were tried before, and why each was rejected.
    pub(super) rejected: Vec<RejectedRecord>,
    /// A lower level at which a file gains, where none gains at this one.
    pub(super) lower_level_result: Option<LowerLevelResult>,
    /// Whether shapes of large results are made dynamic.
    dynamic_shapes: bool,
    /// How many results have a dynamic shape for that.
    pub(super) dynamic_results: usize,
    /// How many recomputes are marked, so that the runtime does not merge them.
    pub(super) marked_recomputes: usize,
    /// How many operands have a static shape, so that a kernel may overwrite them.
    pub(super) overwritten_operands: usize,
    /// How many nodes were added to fix the order.
    pub(super) order_anchors: usize,
    /// Whether all nodes stand in a branch, for which the runtime has no memory pattern.
    pub(super) in_branch: bool,
    /// Bytes that are allocated and freed at the start of a run, for the sake of the arena.
    pub(super) reserved_bytes: u64,
    /// Whether nodes run in the order of the plan.
    pub(super) follows_plan: bool,
    /// Predicted peak with the memory arena off.
    pub(super) predicted_peak_bytes: u64,
    /// How much of that was added after a measurement.
    pub(super) calibration_margin_bytes: u64,
    /// Predicted peak of the first run with the memory arena on.
    pub(super) predicted_arena_bytes: u64,
    /// Whether that peak was measured on this file; else it is predicted only.
    pub(super) arena_is_measured: bool,
    /// Predicted peak of later runs with the memory arena on.
    pub(super) predicted_arena_steady_bytes: u64,
    /// Whether that peak was measured on this file; else it is predicted only.
    pub(super) arena_steady_is_measured: bool,
    /// Nodes with subgraphs of which data decides what they take; the predicted peaks are without that.
    pub(super) unsimulated_nodes: Vec<String>,
    /// Estimated time beyond the baseline with memory arena and memory pattern off, in per cent.
    pub(super) estimated_arena_off_overhead_percent: f64,
    /// Bytes that each run allocates anew from the system with the memory arena off.
    pub(super) allocated_per_run_bytes: u64,
    /// Whether the measured peak is the predicted one, within its tolerance, and the growth of the process with a plan of memory.
    within_prediction: Option<bool>,
    /// What was measured.
    pub(super) measured: Option<Check>,
    /// What turning memory arena and memory pattern off changes; absent where it was not measured that the heap peak is lower then.
    pub(super) arena_off: Option<ArenaOffRecord>,
    /// Whether memory arena and memory pattern off are recommended: the process grows by no more, and the time is within the limit.
    recommends_arena_off: Option<bool>,
    /// What sessions of the written model need, or gain by.
    pub(super) session: SessionRecord,
    /// Whether nothing is written because results have data-dependent sizes.
    pub(super) is_left_to_data: bool,
    /// The number of threads with which tiles are to keep every bit, where fewer would permit more tiles.
    pub(super) limiting_threads: Option<u32>,
    /// What fills the memory because the runtime keeps it in blocks of channels; absent where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) padding: Option<Padding>,
    /// What there was no time for, in words.
    pub(super) left_out: Vec<String>,
    /// The library that every session of the written model needs, because it moves results to a second memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pages_library: Option<PathBuf>,
    /// The plan of the model's memory, where one was asked for.
    pub(super) arena_plan: Option<ArenaPlanned>,
    /// Why there is none, where one was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_arena_plan: Option<String>,
    /// The settings that were tried, where they were asked for.
    pub(super) settings: Option<SettingsTried>,
}

/// A lowering strategy that was rejected.
#[derive(Serialize, JsonSchema)]
pub(super) struct RejectedRecord {
    /// The strategy.
    pub(super) strategy: Strategy,
    /// What was wrong with it.
    pub(super) reason: String,
    /// Whether outputs had other bits.
    #[serde(skip)]
    pub(super) has_other_bits: bool,
}

/// A written model with memory arena and memory pattern off, beside the same model in a default session.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct ArenaOffRecord {
    #[serde(flatten)]
    pub(super) off: ArenaOff,
    /// Whether the process grows by more with the arena off; absent where it was not measured.
    pub(super) grows: Option<bool>,
    /// Whether the added time is beyond the limit.
    pub(super) is_slow: bool,
    /// Whether it is recommended.
    pub(super) is_recommended: bool,
}

impl From<&Rejected> for RejectedRecord {
    fn from(rejected: &Rejected) -> Self {
        Self {
            strategy: rejected.strategy,
            reason: rejected.reason.to_string(),
            has_other_bits: rejected.reason.is_about_bits(),
        }
    }
}

impl From<ArenaOff> for ArenaOffRecord {
    fn from(off: ArenaOff) -> Self {
        Self {
            grows: off.grows(),
            is_slow: off.is_slow(),
            is_recommended: off.is_recommended(),
            off,
        }
    }
}

impl InRuntime {
    pub(super) fn of(
        args: &OptimizeArgs,
        found: &Deployment,
        arena: &Result<ArenaPlanned, String>,
        settings: Option<&SettingsTried>,
    ) -> Self {
        let off = found.arena_off();
        let exceeds = found.missed.is_some() || found.exceeded_prediction().is_some();
        let lowering = &found.lowering;
        let Prediction {
            peak_bytes,
            arena_bytes,
            arena_steady_bytes,
            fresh_bytes,
            calibration_bytes,
            follows_plan,
            ref open_nodes,
            ..
        } = found.prediction;
        Self {
            target: "ort",
            level: args.target.level,
            arena: args.target.arena,
            strategy: found.strategy,
            rejected: found.rejected.iter().map(RejectedRecord::from).collect(),
            lower_level_result: found.lower_level_result,
            dynamic_shapes: lowering.hides_shapes,
            dynamic_results: lowering.hidden,
            marked_recomputes: lowering.clones,
            overwritten_operands: lowering.overwritten,
            order_anchors: lowering.readers,
            in_branch: lowering.in_branch,
            reserved_bytes: lowering.reserved,
            follows_plan,
            predicted_peak_bytes: peak_bytes,
            calibration_margin_bytes: calibration_bytes,
            predicted_arena_bytes: arena_bytes,
            arena_is_measured: found.arena_is_measured(),
            predicted_arena_steady_bytes: arena_steady_bytes,
            arena_steady_is_measured: found.arena_steady_is_measured(),
            unsimulated_nodes: open_nodes.clone(),
            estimated_arena_off_overhead_percent: found.arena_off_overhead_percent(),
            allocated_per_run_bytes: fresh_bytes,
            within_prediction: (found.check.is_some() || arena.is_ok()).then_some(!exceeds),
            measured: found.check.clone(),
            recommends_arena_off: match settings {
                Some(settings) => Some(settings.recommended == Setting::ArenaOff),
                None => off.map(|off| off.is_recommended()),
            },
            arena_off: off.map(ArenaOffRecord::from),
            session: SessionRecord::of(args, found, arena.is_ok(), settings),
            is_left_to_data: found.is_left_to_data(),
            limiting_threads: args.limiting_threads(&found.model, found.solution.replay.peak),
            padding: found.padding.clone(),
            left_out: found.left_out.iter().map(LeftOut::to_string).collect(),
            pages_library: args
                .pages_library()
                .filter(|_| found.is_written && lowering.transfers > 0),
            arena_plan: arena.as_ref().ok().cloned(),
            no_arena_plan: arena.as_ref().err().filter(|why| !why.is_empty()).cloned(),
            settings: settings.cloned(),
        }
    }

    /// The measured time beyond the original in sessions like those that the model is made for, in per cent; none where it is the original.
    pub(super) fn measured_overhead_percent(&self) -> Option<f64> {
        let measured = self
            .measured
            .as_ref()
            .filter(|_| self.strategy != Strategy::Untouched)?;
        let ratio = if self.arena {
            measured.time_ratio
        } else {
            measured.arena_off_time_ratio
        };
        ratio.map(|ratio| 100.0 * (ratio - 1.0))
    }
}
