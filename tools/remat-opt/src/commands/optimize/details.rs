//! What `-v` and pages say of the main job beyond its seven entries.

use std::collections::BTreeMap;

use remat_files::shown;
use remat_onnxruntime_deploy::{ArenaPlanned, Check, Measured};
use remat_onnxruntime_run::dims_text;

use super::args::is_model;
use super::document::{DurationUnit, Report};
use super::in_runtime::{ArenaOffRecord, InRuntime};
use super::{process, proof};
use crate::lines::{Entries, Entry};
use crate::padding::padding_text;
use crate::units::{self, bytes, count, nanoseconds, percent};
use crate::{bodies, tiles};

/// Letters of the longest word that a line begins with.
pub(super) const WIDTH: usize = 9;

/// The entries, in the order of the seven.
pub(super) fn entries(report: &Report) -> Vec<Entry> {
    let mut entries = Entries::default();
    plan(report, &mut entries);
    if let Some(runtime) = &report.in_runtime {
        in_runtime(report, runtime, &mut entries);
    }
    match (&report.form, &report.process) {
        (Some(form), _) => process::ledgers(&mut entries, form),
        (None, Some(process)) => entries.add_all("process", process.lines()),
        _ => {}
    }
    match &report.in_runtime {
        Some(runtime) => advice(report, runtime, &mut entries),
        None => {
            let is_onnx = report.output.as_deref().is_some_and(is_model);
            entries.add_all("settings", is_onnx.then(|| FOR_ANY_RUNTIME.to_owned()));
        }
    }
    entries.into_vec()
}

const FOR_ANY_RUNTIME: &str = "in ONNX Runtime, file order and clones hold with: graph_optimization_level = ORT_DISABLE_ALL, execution_order = \
     PRIORITY_BASED; buffers die with their tensors with: enable_mem_reuse = False, enable_cpu_mem_arena = False; \
     a model made with --target ort needs none of these";

/// What the plan gains and costs, and how good it is.
fn plan(report: &Report, entries: &mut Entries) {
    let baseline = report.baseline_peak_bytes;
    let accounting = format!("{:?} accounting", report.accounting).to_lowercase();
    let counted = if report.memory.is_all_counted(baseline) {
        accounting
    } else {
        format!(
            "{accounting}; budgets are shares of {}, {}",
            bytes(baseline),
            report.baseline_of
        )
    };
    entries.add(
        "peak",
        format!(
            "{} by the plan ({:.1} %), {counted}",
            bytes(report.peak_bytes),
            percent(report.peak_bytes, baseline)
        ),
    );
    let time = |duration: u64| match report.duration_unit {
        DurationUnit::Ns => nanoseconds(duration),
        DurationUnit::Units => duration.to_string(),
    };
    entries.add(
        "overhead",
        format!(
            "{:+.2} % estimated ({} -> {}), {} among {}",
            report.estimated_overhead_percent,
            time(report.baseline_duration),
            time(report.duration),
            count(report.recomputes, "recompute"),
            count(report.ops, "op"),
        ),
    );
    entries.add_all("bodies", bodies::lines(&report.bodies));
    let mut tiles = report.tiling.as_ref().map(tiles::lines).unwrap_or_default();
    tiles.extend(report.exact_threads.map(|threads| {
        let processors = if cfg!(target_arch = "x86_64") { " on x86-64" } else { "" };
        format!("the bits of the whole, by rule, with 1 to {threads} threads (`--exact-threads`){processors}")
    }));
    entries.add_all("tiles", tiles);
    entries.add_all(
        "paging",
        report.second_memory.map(|memory| {
            format!(
                "{} from the second memory, which holds {} at most; transfers take {}",
                count(memory.page_ins, "page-in"),
                bytes(memory.peak_bytes),
                time(memory.duration),
            )
        }),
    );
    let energy = report.baseline_energy_pj;
    entries.add_all(
        "energy",
        (energy > 0).then(|| {
            let added = 100.0 * (report.energy_pj as f64 / energy as f64 - 1.0);
            let (before, after) = (units::picojoules(energy), units::picojoules(report.energy_pj));
            format!("{added:+.2} % ({before} -> {after})")
        }),
    );
    entries.add_all(
        "floor",
        report.floor.as_ref().map(|floor| {
            format!(
                "{} as plans count it: every {} needs it for {}",
                bytes(floor.bytes),
                floor.plans,
                floor.needed_for()
            )
        }),
    );
    let proof = report.verdict.as_ref().zip(report.certificate.as_ref());
    entries.add_all(
        "plan",
        proof.map(|(verdict, certificate)| proof::line(verdict, certificate)),
    );
}

/// How the file was made, what was predicted of it and what was measured.
fn in_runtime(report: &Report, runtime: &InRuntime, entries: &mut Entries) {
    let rejected = runtime.rejected.iter();
    entries.add_all(
        "rejected",
        rejected.map(|rejected| format!("{}: {}", rejected.strategy, shown(&rejected.reason))),
    );
    entries.add_all(
        "threads",
        runtime.limiting_threads.map(|threads| {
            format!(
                "tiles are those that keep every bit with 1 to {threads} threads: fewer permit more tiles (`--exact-threads N`, where no session has more than N)"
            )
        }),
    );
    entries.add("lowering", lowering(runtime));
    entries.add_all("predicted", predicted(report, runtime));
    match &runtime.measured {
        Some(measured) => entries.add_all("measured", measured_lines(measured)),
        None => entries.add("measured", "nothing: the models were not run"),
    }
    entries.add_all("layout", runtime.padding.as_ref().map(padding_text));
}

/// How the model is written, and what was added to it.
fn lowering(runtime: &InRuntime) -> String {
    let added = [
        (runtime.marked_recomputes, "marked recompute"),
        (runtime.dynamic_results, "dynamic shape"),
        (runtime.overwritten_operands, "overwritten operand"),
        (runtime.order_anchors, "order anchor"),
    ];
    let mut added: Vec<_> = added
        .into_iter()
        .filter(|&(number, _)| number > 0)
        .map(|(number, thing)| count(number, thing))
        .collect();
    if runtime.in_branch {
        added.push("in a branch, without the memory pattern".to_owned());
    }
    if runtime.reserved_bytes > 0 {
        added.push(format!(
            "{} reserved for the memory arena",
            bytes(runtime.reserved_bytes)
        ));
    }
    if added.is_empty() {
        added.push("nothing added".to_owned());
    }
    format!("{}; {}", runtime.strategy, added.join(", "))
}

/// What the simulation of the runtime says.
fn predicted(report: &Report, runtime: &InRuntime) -> Vec<String> {
    // What is not measured with the arena is a guess: a region more doubles it.
    let in_the_arena = |predicted: u64, is_measured: bool| {
        let mark = if is_measured { "" } else { " (predicted, not measured)" };
        bytes(predicted) + mark
    };
    let first = in_the_arena(runtime.predicted_arena_bytes, runtime.arena_is_measured);
    let later = in_the_arena(runtime.predicted_arena_steady_bytes, runtime.arena_steady_is_measured);
    let mut lines = vec![
        format!(
            "{} in ONNX Runtime with the memory arena off",
            bytes(runtime.predicted_peak_bytes)
        ),
        format!("{first} with the memory arena, first run; {later} in later runs"),
        format!(
            "time {:+.1} % in a default session, {:+.1} % with the memory arena off, where each run allocates {} anew from the system",
            report.estimated_overhead_percent,
            runtime.estimated_arena_off_overhead_percent,
            bytes(runtime.allocated_per_run_bytes)
        ),
    ];
    if runtime.calibration_margin_bytes > 0 {
        lines.push(format!(
            "of this, {} are a calibration margin: found by measuring, beyond what is simulated",
            bytes(runtime.calibration_margin_bytes)
        ));
    }
    if !runtime.unsimulated_nodes.is_empty() {
        lines.push(format!(
            "{} what data decides in the subgraphs of {}",
            if runtime.measured.is_some() {
                "measured, not simulated:"
            } else {
                "without"
            },
            names(&runtime.unsimulated_nodes)
        ));
    }
    if !runtime.follows_plan {
        lines.push("some nodes do not run in the order of the plan".to_owned());
    }
    lines
}

/// A few names of nodes.
fn names(nodes: &[String]) -> String {
    const SHOWN: usize = 3;
    let quoted = nodes.iter().take(SHOWN).map(|name| format!("`{}`", shown(name)));
    let listed: Vec<String> = quoted.collect();
    match nodes.len().saturating_sub(SHOWN) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

fn measured_lines(measured: &Check) -> Vec<String> {
    let (before, after) = (&measured.before, &measured.after);
    let known = |what: &str, of: fn(&Measured) -> Option<u64>| {
        let (before, after) = of(before).zip(of(after))?;
        Some(format!(
            "{} -> {} ({:.1} %) {what}",
            bytes(before),
            bytes(after),
            percent(after, before)
        ))
    };
    let off = known("with the memory arena off", |peaks| peaks.arena_off);
    let unknown = off.is_none().then(|| {
        let why = measured.unmeasured.as_deref().unwrap_or("no figure");
        format!("memory is not known: {}", shown(why))
    });
    let mut lines: Vec<String> = off
        .into_iter()
        .chain(known("with the memory arena, first run", |peaks| peaks.first_run))
        .chain(known("with the memory arena, later runs", |peaks| peaks.later_runs))
        .chain(known("of the heap before any run", |peaks| peaks.loaded_bytes))
        .chain(unknown)
        .collect();
    lines.extend(growth(before, after));
    lines.extend(times(measured));
    let loads = before.load_ns.zip(after.load_ns);
    lines.extend(loads.map(|(before, after)| format!("loading {} -> {}", nanoseconds(before), nanoseconds(after))));
    let compared = measured.sizes.iter().map(|sizes| &sizes.compared);
    let compared = compared.filter(|compared| compared.len() > 1).flatten();
    lines.extend(compared.map(|one| format!("outputs compared with {}, too", dims_text(&one.dims))));
    lines
}

/// By how much processes grew, where the system tells.
fn growth(before: &Measured, after: &Measured) -> Vec<String> {
    let change = |of: fn(&Measured) -> Option<u64>| Some(format!("{} -> {}", bytes(of(before)?), bytes(of(after)?)));
    let runs = |first: Option<String>, later: Option<String>, setting: &str| {
        let later = later
            .map(|later| format!(", {later} in later ones"))
            .unwrap_or_default();
        Some(format!(
            "the process grows by {} in the first run{later}, {setting}",
            first?
        ))
    };
    let default = runs(
        change(|peaks| peaks.resident_first_bytes),
        change(|peaks| peaks.resident_later_bytes),
        "in a default session",
    );
    let off = runs(
        change(|peaks| peaks.arena_off_resident_first_bytes),
        change(|peaks| peaks.arena_off_resident_later_bytes),
        "with the memory arena off",
    );
    default.into_iter().chain(off).collect()
}

/// What the runs in turns say of time.
fn times(measured: &Check) -> Option<String> {
    let added = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let default = measured.time_ratio.map(added);
    let off = measured.arena_off_time_ratio.map(added);
    let off = off.map(|added| added + " with the memory arena off");
    let both: Vec<String> = default.into_iter().chain(off).collect();
    (!both.is_empty()).then(|| format!("time {}", both.join(", ")))
}

/// What the user can set in the runtime to get more.
fn advice(report: &Report, runtime: &InRuntime, entries: &mut Entries) {
    if !runtime.left_out.is_empty() {
        entries.add("left out", format!("for lack of time: {}", runtime.left_out.join(", ")));
    }
    if let Some(plan) = &runtime.arena_plan {
        let mut lines = in_one_block(plan);
        let sizes = report.data_dependent_sizes.len();
        if sizes > 0 {
            lines.push(format!(
                "{} with data-dependent sizes: the block is for the sizes that were seen; where others come, buffers that have no \
                 place in it lie outside, and are counted",
                count(sizes, "result")
            ));
        }
        entries.add_all("arena", lines);
        return;
    }
    if let Some(why) = &runtime.no_arena_plan {
        entries.add(
            "arena",
            format!("the memory of the file is not planned: {}", shown(why)),
        );
    }
    if report.is_written && runtime.settings.is_none() && runtime.arena {
        entries.add_all("settings", runtime.arena_off.map(without_the_arena).unwrap_or_default());
    }
}

/// What a plan of memory says, and what was measured of it.
fn in_one_block(plan: &ArenaPlanned) -> Vec<String> {
    let measured = &plan.measured;
    let at = |dims: &BTreeMap<String, u64>| match dims.is_empty() {
        true => String::new(),
        false => format!(" with {}", dims_text(dims)),
    };
    let mut lines = vec![format!(
        "{} in one block{}, {} outside, {} of code; {} planned, outputs bit-identical",
        bytes(measured.block_bytes),
        at(&measured.dims),
        bytes(measured.outside_bytes),
        bytes(measured.code_bytes),
        match measured.elsewhere {
            0 => "every buffer where it is".to_owned(),
            some => format!(
                "at some loads {some} of {} elsewhere than",
                count(plan.buffers, "buffer")
            ),
        }
    )];
    lines.extend(measured.resident_first_bytes.map(|first| {
        let later = measured.resident_later_bytes;
        let later = later.map(|later| format!(", {} in later runs", bytes(later)));
        format!(
            "the process grows by {} in the first run{}; {} that loading left go back then",
            bytes(first),
            later.unwrap_or_default(),
            bytes(measured.returned_bytes)
        )
    }));
    lines.extend(
        plan.at
            .iter()
            .map(|other| format!("{} in one block{}", bytes(other.block_bytes), at(&other.dims))),
    );
    if plan.inferred_buffers > 0 {
        lines.push(format!(
            "{} of {} have the sizes of tensors, as the model says; those of others are known from runs alone",
            plan.inferred_buffers,
            count(plan.buffers, "buffer")
        ));
    }
    if !plan.shapes.is_empty() {
        lines.push(format!(
            "one plan for all shapes: {} were recorded, outputs compared with {}, {} outside of the block unforeseen",
            plan.recorded_shapes,
            plan.compared_shapes,
            count(usize::try_from(plan.missed_buffers).unwrap_or(usize::MAX), "buffer")
        ));
    }
    lines
}

/// Whether to turn the memory arena off: what it saves, and what it costs beside the original in a default session.
fn without_the_arena(off: ArenaOffRecord) -> Vec<String> {
    let how = if off.off.is_measured {
        ""
    } else {
        " (estimated, not measured)"
    };
    let time = format!("time is {:+.1} %{how}", off.off.overhead_percent);
    let growth = off.off.growth.map(|growth| {
        format!(
            "the process grows by {} instead of {}",
            bytes(growth.after_bytes),
            bytes(growth.before_bytes)
        )
    });
    if off.is_recommended {
        return vec![format!(
            "enable_cpu_mem_arena = False and enable_mem_pattern = False lower the heap peak by {}: {}, {time}",
            bytes(off.off.saved_bytes),
            growth.unwrap_or_default()
        )];
    }
    let mut against = Vec::new();
    if off.grows != Some(false) {
        against.push(growth.unwrap_or_else(|| "by how much the process grows was not measured".to_owned()));
    }
    if off.is_slow {
        against.push(format!(
            "{time}, more than {} %",
            off.off.most_percent.unwrap_or_default()
        ));
    }
    vec![
        format!(
            "the defaults; with the memory arena off the heap peak is {} lower, but {}",
            bytes(off.off.saved_bytes),
            against.join(", and ")
        ),
        "a plan of memory (without `--no-arena-plan`) gives every buffer its place in one block of about the lower peak; `--settings` looks for settings that come close"
            .to_owned(),
    ]
}
