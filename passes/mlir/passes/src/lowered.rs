//! A plan held against what the function takes once it is lowered.
//!
//! Plans come from a model in which each result has memory of its own. Bufferization does better where results are written in place or share
//! an empty tensor, and a plan can undo that. So the function is lowered as it was and with its plan, on copies: the figures that are reported
//! are those, and a plan that does not pay is taken back. Where a budget asks for it, results are written where operands die, without a plan and
//! with one, and the plan with the lowest peak is tried where the model has none within the budget.

use std::time::Instant;

use remat::plan::BudgetSpec;
use remat_mlir::Function;

use crate::report::FunctionReport;
use crate::{PassError, PassOptions};

/// What became of a function with its plan, and the budget in bytes.
type Scheduled = (FunctionReport, Option<u64>);

/// How often a plan is sought again for less where its lowering takes more than the budget.
const ATTEMPTS: u32 = 3;

/// A function with its plan, which `planned` finds by the model and writes, or as it was where that takes no more: what became of it, and the
/// budget in bytes.
///
/// # Errors
/// [`PassError`]; the function is unchanged then, but for mistakes of ours.
pub(crate) fn best<'c>(
    function: Function<'c>,
    options: &PassOptions,
    planned: impl Fn(Function<'c>, &PassOptions) -> Result<Scheduled, PassError<'c>>,
) -> Result<Scheduled, PassError<'c>> {
    let Some(before) = function.lowered_peak() else {
        return planned(function, options);
    };
    let started = Instant::now();
    let limit = options.request.budget.bytes(before);
    let is_share = matches!(options.request.budget, BudgetSpec::Share(_));
    let mut options = options.clone();
    if let Some(limit) = limit {
        options.request.budget = BudgetSpec::Bytes(limit);
    }
    if let Some(limit) = limit.filter(|&limit| before > limit) {
        let body = function.body_as_it_is();
        if let Some(peak) = in_place(function).filter(|&peak| peak <= limit) {
            return Ok((FunctionReport::unchanged(function.name(), before, peak), Some(limit)));
        }
        function.restore(&body);
    }
    let mut refused = None;
    for _ in 0..ATTEMPTS {
        let body = function.body_as_it_is();
        let (mut report, budget) = match planned(function, &options) {
            Ok(found) => found,
            // What the model has no room for may fit once results are written in place: the lowest plan is measured.
            Err(error @ PassError::Plan(_)) if refused.is_none() && options.request.budget != BudgetSpec::Min => {
                refused = Some(error);
                options.request.budget = BudgetSpec::Min;
                options.time_limit = options.time_limit.saturating_sub(started.elapsed());
                if options.time_limit.is_zero() {
                    break;
                }
                continue;
            }
            Err(PassError::Plan(_)) => break,
            Err(error) => return Err(error),
        };
        let Some(mut peak) = function.lowered_peak() else {
            return Ok((report, budget));
        };
        if is_share && report.baseline_peak == 0 {
            // Only arguments are copied where they are returned: there is nothing of which a share could be kept.
            function.restore(&body);
            return Ok((FunctionReport::unchanged(function.name(), before, before), None));
        }
        if limit.is_some_and(|limit| before > limit && peak > limit) {
            peak = lower_in_place(function, peak);
        }
        if pays(&report, peak, before, limit) {
            report.baseline_peak = before;
            report.peak = peak;
            if refused.is_some() {
                // What was proved is about budgets of the model.
                report.claim_nothing();
            }
            return Ok((report, limit));
        }
        function.restore(&body);
        let Some(limit) = limit.filter(|&limit| before > limit && peak > limit) else {
            break;
        };
        if options.request.budget == BudgetSpec::Min {
            break;
        }
        refused = Some(PassError::Lowered { peak, budget: limit });
        // The model counts too little by this much.
        let asked = options.request.budget.bytes(before).unwrap_or(limit);
        options.request.budget = BudgetSpec::Bytes(asked.saturating_sub(peak - limit).max(1));
        options.time_limit = options.time_limit.saturating_sub(started.elapsed());
        if options.time_limit.is_zero() {
            break;
        }
    }
    let peak = as_it_was(function, before);
    if let Some(budget) = limit.filter(|&limit| peak > limit) {
        return Err(match refused {
            Some(PassError::Plan(why)) => PassError::NoneBelow {
                peak,
                why: Box::new(why),
            },
            Some(error) => error,
            None => PassError::Lowered { peak, budget },
        });
    }
    Ok((FunctionReport::unchanged(function.name(), before, peak), limit))
}

/// Whether a plan is worth having: it takes no more than the function as it was, and what runs again is needed for that.
fn pays(report: &FunctionReport, peak: u64, before: u64, limit: Option<u64>) -> bool {
    let fits = |peak: u64| limit.is_none_or(|limit| peak <= limit);
    let is_free = report.recomputes == 0 && report.transfers == 0 && report.fused_chains == 0;
    let is_needed = limit.is_none() || !fits(before);
    fits(peak) && peak <= before && (is_free || (peak < before && is_needed))
}

/// Writes results in place where operands die; the peak then, `None` where there are none or nothing is known of it.
fn in_place(function: Function<'_>) -> Option<u64> {
    function.reuse_operands().then(|| function.lowered_peak()).flatten()
}

/// Writes results in place where that lowers this peak. Returns the peak.
fn lower_in_place(function: Function<'_>, peak: u64) -> u64 {
    let body = function.body_as_it_is();
    match in_place(function).filter(|&lower| lower < peak) {
        Some(lower) => lower,
        None => {
            function.restore(&body);
            peak
        }
    }
}

/// Leaves the function as it was, with allocations for its empty tensors if that takes no more. Returns the peak.
fn as_it_was(function: Function<'_>, before: u64) -> u64 {
    let body = function.body_as_it_is();
    function.own_empties();
    match function.lowered_peak().filter(|&peak| peak <= before) {
        Some(peak) => peak,
        None => {
            function.restore(&body);
            before
        }
    }
}
