//! The pass `remat` on a module: one budget for all functions.
//!
//! A function may run while others wait for it: what a callee takes counts where it is called. So functions are planned from the innermost
//! ones outward. The budget is spent where it is needed: a function that fits as it stands stays so.

use std::collections::BTreeMap;

use remat::plan::BudgetSpec;
use remat_mlir::{Call, Function};

use crate::rematerialize::{rematerialize, standing_peak};
use crate::report::FunctionReport;
use crate::{PassError, PassOptions};

/// A function, what it calls and who calls it, by number.
struct Member<'c> {
    function: Function<'c>,
    calls: Vec<(Call<'c>, usize)>,
    callers: Vec<usize>,
    /// Bytes as it stands.
    peak: u64,
}

/// Plans for all functions of a module under one budget: a share is one of the highest peak among them. Reports are in the order of the plans.
///
/// # Errors
/// The function, and why there is no plan for it; functions that were planned before it keep their plans.
pub fn rematerialize_module<'c>(
    functions: Vec<Function<'c>>,
    options: &PassOptions,
) -> Result<Vec<FunctionReport>, (Function<'c>, PassError<'c>)> {
    let mut members = members(functions);
    let order = inner_first(&members);
    for &number in &order {
        let function = members[number].function;
        let peak = standing_peak(function, options).map_err(|error| (function, error))?;
        set_peak(&mut members, number, peak);
    }
    let highest = members.iter().map(|member| member.peak).max().unwrap_or(0);
    let planned = plan_all(&mut members, &order, highest, options);
    for (call, _) in members.iter().flat_map(|member| &member.calls) {
        call.forget_peak();
    }
    planned
}

fn plan_all<'c>(
    members: &mut [Member<'c>],
    order: &[usize],
    highest: u64,
    options: &PassOptions,
) -> Result<Vec<FunctionReport>, (Function<'c>, PassError<'c>)> {
    let limit = options.request.budget.bytes(highest);
    let seeks_lowest = matches!(options.request.budget, BudgetSpec::Min | BudgetSpec::Auto);
    let mut reports = Vec::new();
    // The lowest peak that all functions so far reach, where that is sought.
    let mut reached = 0;
    let mut order = order.to_vec();
    if seeks_lowest && members.iter().all(|member| member.calls.is_empty()) {
        // The highest first: the others need no less than it.
        order.sort_by_key(|&number| std::cmp::Reverse(members[number].peak));
    }
    for number in order {
        let member = &members[number];
        let function = member.function;
        let is_in_the_way =
            limit.is_some_and(|limit| member.callers.iter().any(|&caller| members[caller].peak > limit));
        let mut own = options.clone();
        own.request.budget = match limit {
            Some(_) if is_in_the_way => BudgetSpec::Min,
            Some(limit) => BudgetSpec::Bytes(limit),
            None if seeks_lowest && standing(function, options, member.peak) <= reached => BudgetSpec::None,
            None => options.request.budget,
        };
        let report = rematerialize(function, &own).map_err(|error| (function, error))?;
        reached = reached.max(report.peak);
        set_peak(members, number, report.peak);
        reports.push(report);
    }
    Ok(reports)
}

/// Bytes that the function takes now that those it calls have their plans.
fn standing(function: Function<'_>, options: &PassOptions, before: u64) -> u64 {
    standing_peak(function, options).unwrap_or(before)
}

fn members(functions: Vec<Function<'_>>) -> Vec<Member<'_>> {
    let names: BTreeMap<String, usize> = functions
        .iter()
        .enumerate()
        .map(|(number, function)| (function.name(), number))
        .collect();
    let mut members: Vec<Member<'_>> = functions
        .into_iter()
        .map(|function| {
            let calls = function.calls().into_iter();
            let calls = calls.filter_map(|call| Some((call.clone(), *names.get(&call.callee)?)));
            Member {
                function,
                calls: calls.collect(),
                callers: Vec::new(),
                peak: 0,
            }
        })
        .collect();
    for caller in 0..members.len() {
        let callees: Vec<usize> = members[caller].calls.iter().map(|&(_, callee)| callee).collect();
        for callee in callees {
            members[callee].callers.push(caller);
        }
    }
    members
}

/// Notes the peak of a function, where it is called, too.
fn set_peak(members: &mut [Member<'_>], number: usize, peak: u64) {
    members[number].peak = peak;
    for member in members.iter() {
        for (call, _) in member.calls.iter().filter(|&&(_, callee)| callee == number) {
            call.set_peak(peak);
        }
    }
}

/// All functions, each behind those that it calls; of functions that call each other, in the order of the text.
fn inner_first(members: &[Member<'_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(members.len());
    let mut is_seen = vec![false; members.len()];
    for start in 0..members.len() {
        let mut stack = vec![(start, 0)];
        if std::mem::replace(&mut is_seen[start], true) {
            continue;
        }
        while let Some((number, next)) = stack.pop() {
            match members[number].calls.get(next) {
                None => order.push(number),
                Some(&(_, callee)) => {
                    stack.push((number, next + 1));
                    if !std::mem::replace(&mut is_seen[callee], true) {
                        stack.push((callee, 0));
                    }
                }
            }
        }
    }
    order
}
