//! What sessions of a model that was made for ONNX Runtime need.

use remat_onnxruntime_deploy::{Deployment, SettingsTried, Shapes, Strategy};
use remat_onnxruntime_run::OptimizationLevel;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::OptimizeArgs;

/// Session options of ONNX Runtime that the written model was made for: where they differ from the runtime's defaults, its memory depends
/// on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct SessionRecord {
    /// `graph_optimization_level`, in the words of `--level`.
    level: OptimizationLevel,
    /// Whether `execution_order` has to be `PRIORITY_BASED`.
    pub(super) priority_based_order: bool,
    /// `enable_mem_reuse`.
    pub(super) enable_mem_reuse: bool,
    /// `enable_cpu_mem_arena`.
    enable_cpu_mem_arena: bool,
    /// `enable_mem_pattern`.
    enable_mem_pattern: bool,
}

impl SessionRecord {
    /// What the model needs, or gains by; the runtime's defaults where none was written.
    pub(super) fn of(
        args: &OptimizeArgs,
        found: &Deployment,
        has_plan: bool,
        settings: Option<&SettingsTried>,
    ) -> Self {
        let default = Self {
            level: args.target.level,
            priority_based_order: false,
            enable_mem_reuse: true,
            enable_cpu_mem_arena: true,
            enable_mem_pattern: true,
        };
        if !found.is_written {
            return default;
        }
        let order = found.model.setup().and_then(|setup| setup.order_hint.as_deref());
        // Of a strategy that makes shapes dynamic where that gains, static ones are a choice.
        let is_choice = found.strategy != Strategy::StaticShapes && found.lowering.shapes == Shapes::Static;
        let is_original = found.strategy == Strategy::Untouched;
        let (enable_cpu_mem_arena, enable_mem_pattern) = memory(args, found, has_plan, settings);
        Self {
            priority_based_order: order == Some("priority"),
            enable_mem_reuse: found.lowering.hides_shapes || is_choice || is_original,
            enable_cpu_mem_arena,
            enable_mem_pattern,
            ..default
        }
    }

    /// The options without which the model does not take what is said, as they are set; `arena`: whether it is made for the memory arena.
    pub(super) fn needed(&self, arena: bool) -> Vec<String> {
        let mut needed = Vec::new();
        let level = level_option(self.level);
        needed.extend(level.map(|level| format!("graph_optimization_level = {level}")));
        let mut add = |is_needed: bool, option: &str| needed.extend(is_needed.then(|| option.to_owned()));
        add(self.priority_based_order, "execution_order = PRIORITY_BASED");
        // Shapes could not be made dynamic.
        add(!self.enable_mem_reuse, "enable_mem_reuse = False");
        add(!arena, "enable_cpu_mem_arena = False");
        add(!arena, "enable_mem_pattern = False");
        needed
    }
}

/// The runtime's word for a level, where it is not the default.
fn level_option(level: OptimizationLevel) -> Option<&'static str> {
    match level {
        OptimizationLevel::All => None,
        OptimizationLevel::Extended => Some("ORT_ENABLE_EXTENDED"),
        OptimizationLevel::Basic => Some("ORT_ENABLE_BASIC"),
        OptimizationLevel::Off => Some("ORT_DISABLE_ALL"),
    }
}

/// Whether the memory arena and the memory pattern are to be on.
fn memory(args: &OptimizeArgs, found: &Deployment, has_plan: bool, settings: Option<&SettingsTried>) -> (bool, bool) {
    if let Some(settings) = settings {
        let best = settings.of(settings.recommended).map(|best| &best.options);
        return best.map_or((true, true), |best| {
            (best.enable_cpu_mem_arena, best.enable_mem_pattern)
        });
    }
    if has_plan {
        // The library sets what its plan needs.
        return (true, true);
    }
    let is_off = !args.target.arena || found.arena_off().is_some_and(|off| off.is_recommended());
    (!is_off, !is_off)
}
