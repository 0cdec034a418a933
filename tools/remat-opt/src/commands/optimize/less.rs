//! What lowers memory further than what was found.

use remat::plan::BudgetSpec;
use remat_files::shown;

use super::args::OptimizeArgs;
use super::document::Report;
use super::in_runtime::InRuntime;
use crate::units::{added, count, pair};

/// What may be tried, the surest first.
pub(super) fn hints(report: &Report, args: &OptimizeArgs) -> Vec<String> {
    let mut hints = report
        .in_runtime
        .as_ref()
        .map_or_else(Vec::new, |runtime| in_runtime(report, runtime, args));
    let free: Vec<&str> = report.dims.free_dims.keys().map(String::as_str).collect();
    if !free.is_empty() && report.is_model {
        hints.push(format!(
            "--fix-dim {}: tiles along it, for this size alone",
            shown(free.join(","))
        ));
    }
    match args.budget {
        _ if args.plan.is_some() => hints.push("without `--plan`: a search for a plan".to_owned()),
        BudgetSpec::Min => {}
        BudgetSpec::Auto if report.recomputes > 0 => {
            hints.push("--budget min: lower, slower".to_owned());
        }
        BudgetSpec::None => hints.push("--budget auto: the lowest peak within 5 % of time".to_owned()),
        _ => hints.push("--budget min: the lowest peak that is found".to_owned()),
    }
    if hints.is_empty() {
        hints.push("--time-limit: a longer search".to_owned());
    }
    hints
}

fn in_runtime(report: &Report, runtime: &InRuntime, args: &OptimizeArgs) -> Vec<String> {
    let mut hints = Vec::new();
    hints.extend(runtime.lower_level_result.map(|result| {
        let peak = pair(result.peak.before_bytes, result.peak.after_bytes);
        format!(
            "--level {}: {peak}, with the bits of the original at that level",
            result.level
        )
    }));
    if !args.fission.permits_other_bits() && runtime.rejected.iter().any(|rejected| rejected.has_other_bits) {
        hints.push("--fission close: files that round otherwise, as those with other bits do (-v)".to_owned());
    }
    let recommended = runtime.arena_off.filter(|off| off.is_recommended && runtime.arena);
    if let Some(off) =
        recommended.filter(|_| report.is_written && runtime.settings.is_none() && runtime.arena_plan.is_none())
    {
        let growth = off
            .off
            .growth
            .map(|growth| pair(growth.before_bytes, growth.after_bytes));
        hints.push(format!(
            "enable_cpu_mem_arena = enable_mem_pattern = False: {}, time {}",
            growth.unwrap_or_default(),
            added(off.off.overhead_percent)
        ));
    }
    if args.target.no_arena_plan && !args.target.settings && cfg!(target_os = "linux") {
        hints.push("no --no-arena-plan: exactly planned memory".to_owned());
    }
    if args.is_paged() {
        hints.push("without `--paging`: tiles, which lower what single ops need".to_owned());
    }
    if !runtime.left_out.is_empty() {
        let steps = count(runtime.left_out.len(), "step");
        hints.push(format!("--time-limit: a longer one, {steps} had no time (-v)"));
    }
    hints
}
