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
    pub(super) fn of(args: &OptimizeArgs, found: &Deployment, settings: Option<&SettingsTried>) -> Self {
        let stock = Self {
            level: args.target.level,
            priority_based_order: false,
            enable_mem_reuse: true,
            enable_cpu_mem_arena: true,
            enable_mem_pattern: true,
        };
        if !found.is_written {
            return stock;
        }
        let order = found.model.setup().and_then(|setup| setup.order_hint.as_deref());
        // Of a strategy that makes shapes dynamic where that gains, static ones are a choice.
        let is_choice = found.strategy != Strategy::StaticShapes && found.lowering.shapes == Shapes::Static;
        let (enable_cpu_mem_arena, enable_mem_pattern) = memory(args, found, settings);
        Self {
            priority_based_order: order == Some("priority"),
            enable_mem_reuse: found.lowering.hides_shapes || is_choice,
            enable_cpu_mem_arena,
            enable_mem_pattern,
            ..stock
        }
    }
}

/// Whether the memory arena and the memory pattern are to be on.
fn memory(args: &OptimizeArgs, found: &Deployment, settings: Option<&SettingsTried>) -> (bool, bool) {
    if let Some(settings) = settings {
        let best = settings.of(settings.recommended).map(|best| &best.options);
        return best.map_or((true, true), |best| {
            (best.enable_cpu_mem_arena, best.enable_mem_pattern)
        });
    }
    if args.target.arena_plan {
        // The library sets what its plan needs.
        return (true, true);
    }
    let is_off = !args.target.arena || found.arena_off().is_some_and(|off| off.is_recommended());
    (!is_off, !is_off)
}
