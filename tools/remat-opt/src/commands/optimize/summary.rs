//! The report of the main job in seven entries: what memory and time become, and what to do with what was written.

use std::path::Path;

use remat_files::shown;
use remat_onnxruntime_run::{SizesCompared, dims_text};

use super::args::is_model;
use super::document::{OutputsCompared, Report};
use super::in_runtime::InRuntime;
use super::memory::{self, Closest};
use super::process;
use crate::ledgers::ProcessRecord;
use crate::lines::{Entries, Entry};
use crate::range::RangeRecord;
use crate::units::{added, change, closeness, count, nanoseconds};

/// Letters of the longest word that a line begins with.
pub(super) const WIDTH: usize = 8;

/// What a model that would be made for ONNX Runtime is worth without it.
pub(super) const WITHOUT_RUNTIME: &str = "nothing gained in ONNX Runtime: no runtime was found to make this file for; install one (`pip install onnxruntime`, \
     in a virtual environment that is active, or named with `--ort-library`), then run again";

/// The entries; a budget that is missed stands before them.
pub(super) fn entries(report: &Report) -> Vec<Entry> {
    let mut entries = Entries::default();
    if let Some(missed) = &report.missed {
        entries.add("Budget", memory::missed(missed, closest(report)));
    }
    entries.add_all("Memory", memory(report));
    entries.add_all("Process", process(report));
    entries.add_all("Time", time(report));
    entries.add("Outputs", outputs(report));
    entries.add("How", how(report));
    entries.add_all("Written", written(report));
    entries.add("Less", report.less.join("; "));
    entries.add("Details", further(report));
    entries.into_vec()
}

/// What becomes of the file that comes closest to a budget.
fn closest(report: &Report) -> Closest {
    match &report.wanted {
        None => Closest::NoOutput,
        Some(output) if !is_model(output) => Closest::Described,
        Some(_) if report.is_written => Closest::Written,
        Some(_) => Closest::Kept,
    }
}

/// Memory before and after, or that nothing is gained, and what the figures hold for.
fn memory(report: &Report) -> Vec<String> {
    let memory = &report.memory;
    let mut lines = Vec::new();
    if report.is_without_runtime {
        lines.push(WITHOUT_RUNTIME.to_owned());
    }
    let is_left_to_data = report
        .in_runtime
        .as_ref()
        .is_some_and(|runtime| runtime.is_left_to_data);
    if is_left_to_data {
        lines.push(
            "nothing gained: the original stays, because of data-dependent sizes; a file takes on these inputs"
                .to_owned(),
        );
    }
    if !report.is_written && report.missed.is_none() && !is_left_to_data {
        lines.push(format!("nothing gained: {}", memory.before()));
    } else {
        lines.push(memory.line());
        lines.extend(memory.further());
    }
    lines.extend(report.block.as_ref().map(|block| block.line("block ")));
    lines.extend(report.range.iter().flat_map(RangeRecord::lines));
    let free = &report.dims.free_dims;
    if !free.is_empty() {
        lines.push(format!("for {}; other sizes are taken, too", dims_text(free)));
    }
    let sizes = report.data_dependent_sizes.len();
    if sizes > 0 {
        lines.push(format!(
            "{} with data-dependent sizes, as in one run (`{}`{}): other inputs may need more",
            count(sizes, "result"),
            shown(&report.data_dependent_sizes[0]),
            if sizes > 1 { ", .." } else { "" }
        ));
    }
    lines
}

/// What the whole process takes, of a loadable form or where there is a limit.
fn process(report: &Report) -> Vec<String> {
    let within = report.process.as_ref().and_then(ProcessRecord::within);
    match (&report.form, &report.process) {
        (Some(form), _) => process::lines(form, within),
        (None, Some(process)) if within.is_some() => process.lines(),
        _ => Vec::new(),
    }
}

/// Time that is added to a run, and to loading where that takes long.
fn time(report: &Report) -> Vec<String> {
    let time = overhead(
        report.estimated_overhead_percent,
        report.measured_overhead_percent,
        report.allowed_overhead_percent,
    );
    let energy = change(report.baseline_energy_pj, report.energy_pj);
    let mut lines = vec![energy.map_or_else(|| time.clone(), |energy| format!("{time}; energy {energy}"))];
    let measured = report.in_runtime.as_ref().and_then(|runtime| runtime.measured.as_ref());
    let late = measured.and_then(|measured| measured.after.loads_late(&measured.before));
    lines.extend(late.map(|(before, after)| {
        let (before, after) = (nanoseconds(before), nanoseconds(after));
        format!("loading takes {after} instead of {before}")
    }));
    lines
}

/// Time that is added, in per cent, and whether it is more than is allowed: plans keep the limit by estimate.
fn overhead(estimated: f64, measured: Option<f64>, allowed: Option<f64>) -> String {
    let estimated = format!("{} estimated", added(estimated));
    let Some(measured) = measured else {
        return estimated;
    };
    let said = format!("{} measured ({estimated})", added(measured));
    match allowed.filter(|&allowed| measured > allowed) {
        Some(allowed) => format!("{said}, more than the {allowed} % that are allowed"),
        None => said,
    }
}

/// How the outputs compare, at which sizes.
fn outputs(report: &Report) -> String {
    let said = match report.outputs {
        OutputsCompared::BitIdentical => "bit-identical",
        OutputsCompared::Close => "close",
        OutputsCompared::NotCompared if report.in_runtime.is_some() => "not compared: the models were not run",
        OutputsCompared::NotCompared => "not compared: nothing was run, the checker replayed the plan",
    };
    let measured = report.in_runtime.as_ref().and_then(|runtime| runtime.measured.as_ref());
    if let Some(found) = measured.and_then(|measured| measured.closeness.as_ref()) {
        if report.outputs == OutputsCompared::Close {
            return closeness(found);
        }
        // That sums are split in the same way with more threads is not known.
        return format!("{said}, with one thread");
    }
    let sizes = measured.and_then(|measured| measured.sizes.as_ref());
    let others = sizes
        .and_then(others)
        .filter(|_| report.outputs == OutputsCompared::BitIdentical);
    others.map_or_else(|| said.to_owned(), |others| format!("{said}, with {others}, too"))
}

/// The other sizes at which both models ran.
fn others(sizes: &SizesCompared) -> Option<String> {
    match sizes.compared.as_slice() {
        [] => None,
        [one] => Some(dims_text(&one.dims)),
        all => Some(format!("{} other sizes (-v)", all.len())),
    }
}

/// What the plan does, and how good it is.
fn how(report: &Report) -> String {
    let mut parts = vec![count(report.recomputes, "recompute")];
    parts.extend(report.second_memory.map(|memory| count(memory.page_ins, "page-in")));
    parts.push(match &report.tiling {
        Some(tiling) if !tiling.has_tiles() => "no tiles, convolutions outside of blocks of channels".to_owned(),
        Some(tiling) => format!("{} in tiles", count(tiling.fused_chains.len(), "fused chain")),
        None => "no tiles".to_owned(),
    });
    let bodies = report.bodies.len();
    if bodies > 0 {
        parts.push(format!("plans of {}", count(bodies, "subgraph")));
    }
    let parts = parts.join(", ");
    match &report.verdict {
        Some(verdict) => format!("{parts}; {verdict}"),
        None => parts,
    }
}

/// What was written and how to use it, or why nothing was, and the time all of it took.
fn written(report: &Report) -> Vec<String> {
    let seconds = match report.seconds {
        short if short < 1.0 => format!("[{short:.1} s]"),
        seconds => format!("[{seconds:.0} s]"),
    };
    let mut lines = vec![match (&report.output, &report.wanted) {
        (Some(output), _) => used(report, output),
        (None, Some(_)) => not_written(report),
        (None, None) if report.is_model => "nothing: name a file (`-o small.onnx`)".to_owned(),
        (None, None) => "nothing: name a file (`-o plan.json`)".to_owned(),
    }];
    lines[0] += &format!("        {seconds}");
    let runtime = report.in_runtime.as_ref().filter(|_| report.form.is_none());
    lines.extend(runtime.and_then(planned));
    let fixed = &report.dims.fixed_dims;
    if !fixed.is_empty() {
        lines.push(format!(
            "takes {} and no other size; `--dim` instead of `--fix-dim` keeps it free",
            dims_text(fixed)
        ));
    }
    lines
}

fn not_written(report: &Report) -> String {
    let why = if report.missed.is_some() {
        "no file keeps the budget; `--force` writes the closest one"
    } else if report
        .in_runtime
        .as_ref()
        .is_some_and(|runtime| runtime.is_left_to_data)
    {
        "on other inputs a file could take more than the original; `--budget` or `--force` writes one"
    } else {
        "no file takes less than the original; `--force` writes one"
    };
    format!("nothing: {why}")
}

/// How what was written is used.
fn used(report: &Report, output: &Path) -> String {
    let path = shown(output.display()).to_string();
    if report.form.is_some() {
        return format!("{path}: `remat_opt.session(\"{path}\")` loads it");
    }
    if !is_model(output) {
        return path;
    }
    let Some(runtime) = &report.in_runtime else {
        return format!("{path}: ONNX Runtime follows the plan only with the options that `-v` lists");
    };
    let mut needed = needed(runtime);
    if let Some(library) = &runtime.pages_library {
        needed.push(format!(
            "`remat_opt.session`, or register_custom_ops_library(\"{}\"): it moves results to a file",
            shown(library.display())
        ));
    }
    if needed.is_empty() {
        return format!("{path}: use it as before, no options needed");
    }
    format!("{path}: use it with {}", needed.join(", "))
}

/// What sessions of a file need, its plan of memory apart.
fn needed(runtime: &InRuntime) -> Vec<String> {
    let mut needed = runtime.session.needed(runtime.arena);
    if runtime.settings.is_some() {
        needed.push("the session below".to_owned());
    }
    needed
}

/// How the plan of memory is used.
fn planned(runtime: &InRuntime) -> Option<String> {
    let plan = runtime.arena_plan.as_ref()?;
    Some(format!(
        "its memory is planned: `remat_opt.session` obeys that, or add_session_config_entry(\"remat.arena.plan\", \"{}\"), \
         register_custom_ops_library(\"{}\")",
        shown(plan.file.display()),
        shown(plan.library.display())
    ))
}

/// Where more is said.
fn further(report: &Report) -> String {
    let details = match (report.is_verbose, &report.in_runtime) {
        (true, _) => "below",
        (false, Some(_)) => "-v (prediction, arena off, floor)",
        (false, None) => "-v (proof, floor)",
    };
    match &report.page {
        Some(page) => format!("{details}, {}", shown(page.display())),
        None => format!("{details}, --report page.html"),
    }
}

#[cfg(test)]
mod tests {
    use super::overhead;

    #[test]
    fn time_above_what_is_allowed_is_called_that() {
        assert_eq!(overhead(3.7, None, Some(1.0)), "+3.7 % estimated");
        assert_eq!(
            overhead(3.7, Some(0.6), Some(5.0)),
            "+0.6 % measured (+3.7 % estimated)"
        );
        assert_eq!(overhead(3.7, Some(9.0), None), "+9.0 % measured (+3.7 % estimated)");
        assert_eq!(
            overhead(9.7, Some(37.2), Some(25.0)),
            "+37 % measured (+9.7 % estimated), more than the 25 % that are allowed"
        );
    }
}
