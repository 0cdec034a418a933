//! What is printed of a model that was made for ONNX Runtime.

use std::path::Path;
use std::time::Instant;

use remat_files::shown;
use remat_onnxruntime_deploy::{ArenaOff, ArenaPlanned, Check, Deployment, Measured, Outputs, SettingsTried};
use remat_onnxruntime_run::OptimizationLevel;

use super::args::{OptimizeArgs, is_model};
use super::headline::{self, Closest, Headline};
use super::session::SessionRecord;
use super::{report, settings, sizes};
use crate::padding::padding_text;
use crate::units::{bytes, count, percent};

/// A model that was made for ONNX Runtime, and what was found out about its memory.
#[derive(Clone, Copy)]
pub(super) struct Deployed<'a> {
    pub(super) found: &'a Deployment,
    /// Memory before and after.
    pub(super) headline: Headline,
    /// The line about the peak that no plan undercuts, where it is known.
    pub(super) floor: Option<&'a str>,
    pub(super) arena: Option<&'a ArenaPlanned>,
    pub(super) settings: Option<&'a SettingsTried>,
}

/// The lines a person wants at the end.
pub(super) fn text(args: &OptimizeArgs, deployed: Deployed<'_>, started: Instant) -> String {
    let (found, headline) = (deployed.found, &deployed.headline);
    let missed = |missed| headline::missed(missed, closest(args.output.as_deref(), found.is_written));
    let mut lines: Vec<String> = found.missed.as_ref().map(missed).into_iter().collect();
    // Of a file that is not written nothing is lost.
    lines.extend(headline.warning().filter(|_| found.is_written));
    lines.extend(report::plan_lines(
        args,
        &found.model,
        &found.solution,
        headline,
        deployed.floor,
    ));
    for rejected in &found.rejected {
        lines.push(format!(
            "rejected  {}: {}",
            rejected.strategy,
            shown(rejected.reason.to_string())
        ));
    }
    let limiting = args.limiting_threads(&found.model, found.solution.replay.peak);
    lines.extend(limiting.map(|threads| {
        format!(
            "threads   tiles are those that keep every bit with 1 to {threads} threads: fewer permit more tiles (`--exact-threads N`, where no session has more than N)"
        )
    }));
    lines.push(format!("lowering  {}", lowering(found)));
    lines.extend(predicted(found));
    match &found.check {
        Some(check) => lines.extend(measured(check)),
        None => lines.push("measured  nothing: the models were not run".to_owned()),
    }
    lines.extend(sizes::lines(&found.model, Some(found)));
    lines.extend(
        found
            .padding
            .as_ref()
            .map(|padding| format!("layout    {}", padding_text(padding))),
    );
    if !found.left_out.is_empty() {
        let names: Vec<_> = found.left_out.iter().map(ToString::to_string).collect();
        lines.push(format!("left out  {} (more with `--time-limit`)", names.join(", ")));
    }
    lines.push(format!("time      {:.2} s", started.elapsed().as_secs_f64()));
    lines.extend(args.output.as_deref().map(|output| written(output, found)));
    match deployed.arena {
        Some(arena) => {
            lines.extend(planned(arena));
            lines.extend(planned_for_data(found));
        }
        None => lines.extend(advice(args, found, deployed.settings)),
    }
    lines.join("\n") + "\n"
}

/// What a plan of memory is worth where the data decides how large results are.
fn planned_for_data(found: &Deployment) -> Option<String> {
    let sizes = found.model.measured_sizes().len();
    (sizes > 0).then(|| {
        format!(
            "          the data decides the size of {}: the block is for the sizes that were seen; where others come, buffers that have no place \
             in it lie outside, and are counted",
            count(sizes, "result")
        )
    })
}

/// What becomes of the file that comes closest to a budget.
fn closest(output: Option<&Path>, is_written: bool) -> Closest {
    match output {
        None => Closest::NoOutput,
        Some(output) if !is_model(output) => Closest::Described,
        Some(_) if is_written => Closest::Written,
        Some(_) => Closest::Kept,
    }
}

/// What was written, else what helps.
fn written(output: &Path, found: &Deployment) -> String {
    if found.is_written || !is_model(output) {
        return format!("written   {}", shown(output.display()));
    }
    if found.missed.is_some() {
        return "written   nothing: no file keeps the budget; `--force` writes the closest one all the same".to_owned();
    }
    if found.is_left_to_data() {
        return "written   nothing: the data decides how large results are, so on other inputs a file could take more than the model as it came;\n          \
                `--budget` or `--force` writes one all the same"
            .to_owned();
    }
    "written   nothing: no file takes less than the model as it came; `--force` writes one all the same\n          \
     `--arena-plan` gives every buffer of the model its place in one block, with nothing else changed"
        .to_owned()
}

/// How the model is written, and what was added to it.
fn lowering(found: &Deployment) -> String {
    let report = &found.lowering;
    let added = [
        (report.clones, "marked recompute"),
        (report.hidden, "dynamic shape"),
        (report.overwritten, "overwritten operand"),
        (report.readers, "order anchor"),
    ];
    let mut added: Vec<_> = added
        .into_iter()
        .filter(|&(number, _)| number > 0)
        .map(|(number, thing)| count(number, thing))
        .collect();
    if report.in_branch {
        added.push("in a branch, without the memory pattern".to_owned());
    }
    if report.reserved > 0 {
        added.push(format!("{} reserved for the memory arena", bytes(report.reserved)));
    }
    if added.is_empty() {
        added.push("nothing added".to_owned());
    }
    format!("{}; {}", found.strategy, added.join(", "))
}

/// What holds where memory is planned.
fn planned(arena: &ArenaPlanned) -> Vec<String> {
    let (block, outside) = (arena.block_bytes, arena.outside_bytes);
    let mut lines = vec![format!(
        "arena     {} in one block, {} outside, {} of code; every buffer where it is planned, outputs bit-identical",
        bytes(block),
        bytes(outside),
        bytes(arena.code_bytes)
    )];
    if let Some(first) = arena.resident_first_bytes {
        let later = arena
            .resident_later_bytes
            .map(|later| format!(", {} in later runs", bytes(later)));
        lines.push(format!(
            "          the process grows by {} in the first run{}",
            bytes(first),
            later.unwrap_or_default()
        ));
    }
    lines.push(format!(
        "settings  add_session_config_entry(\"remat.arena.plan\", \"{}\"), register_custom_ops_library(\"{}\")",
        shown(arena.file.display()),
        shown(arena.library.display())
    ));
    lines
}

/// What the simulation of the runtime says.
fn predicted(found: &Deployment) -> Vec<String> {
    let prediction = &found.prediction;
    let first = in_the_arena(prediction.arena_bytes, found.arena_is_measured());
    let later = in_the_arena(prediction.arena_steady_bytes, found.arena_steady_is_measured());
    let mut lines = vec![
        format!(
            "predicted {} in ONNX Runtime with the memory arena off",
            bytes(prediction.peak_bytes)
        ),
        format!("          {first} with the memory arena, first run; {later} in later runs"),
        format!(
            "          time {:+.1} % where nothing is set, {:+.1} % with the memory arena off, where each run takes {} anew from the system",
            found.solution.overhead.percent(),
            found.arena_off_overhead_percent(),
            bytes(prediction.fresh_bytes)
        ),
    ];
    if prediction.calibration_bytes > 0 {
        lines.push(format!(
            "          of this, {} were found by measuring, beyond what the simulation knows of",
            bytes(prediction.calibration_bytes)
        ));
    }
    if !prediction.open_nodes.is_empty() {
        lines.push(format!(
            "          {} what data decides in the subgraphs of {}",
            if found.check.is_some() {
                "measured, not simulated:"
            } else {
                "without"
            },
            names(&prediction.open_nodes)
        ));
    }
    if !prediction.follows_plan {
        lines.push("          nodes do not run quite in the order of the plan".to_owned());
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

/// A predicted peak with the arena, which is a guess until it is measured: a region more doubles it.
fn in_the_arena(predicted: u64, is_measured: bool) -> String {
    let mark = if is_measured { "" } else { " (predicted, not measured)" };
    bytes(predicted) + mark
}

fn measured(check: &Check) -> Vec<String> {
    let change = |before: u64, after: u64| {
        format!(
            "{} -> {} ({:.1} %)",
            bytes(before),
            bytes(after),
            percent(after, before)
        )
    };
    let exact = check.before.exact.zip(check.after.exact);
    let stock = check.before.stock.zip(check.after.stock);
    let steady = check.before.stock_steady.zip(check.after.stock_steady);
    let figures = [
        ("with the memory arena off", exact),
        ("with the memory arena, first run", stock),
        ("with the memory arena, later runs", steady),
    ];
    let known = figures.into_iter().filter_map(|(what, figures)| Some((what, figures?)));
    let mut lines: Vec<_> = known
        .map(|(what, (before, after))| format!("{} {what}", change(before, after)))
        .collect();
    if exact.is_none() {
        let why = check.unmeasured.as_deref().unwrap_or("no figure");
        lines.push(format!("memory is not known: {why}"));
    }
    lines.extend(resident(check));
    lines.push(times(check) + outputs(check));
    let first = lines.iter_mut().enumerate();
    first.for_each(|(place, line)| {
        let label = if place == 0 { "measured  " } else { "          " };
        line.insert_str(0, label);
    });
    lines
}

/// How the outputs compare.
fn outputs(check: &Check) -> &'static str {
    match check.outputs {
        Outputs::Identical => "outputs bit-identical",
        Outputs::MayRoundOtherwise => "outputs not compared: sums may be rounded otherwise (`--fission any`)",
    }
}

/// By how much processes grew, where the system tells.
fn resident(check: &Check) -> Option<String> {
    let (before, after) = (&check.before, &check.after);
    let change = |of: fn(&Measured) -> Option<u64>| Some(format!("{} -> {}", bytes(of(before)?), bytes(of(after)?)));
    let runs = |first: Option<String>, later: Option<String>, setting: &str| {
        let later = later
            .map(|later| format!(", {later} in later ones"))
            .unwrap_or_default();
        Some(format!("{} in the first run{later}, {setting}", first?))
    };
    let stock = runs(
        change(|measured| measured.resident_first_bytes),
        change(|measured| measured.resident_later_bytes),
        "where nothing is set",
    );
    let off = runs(
        change(|measured| measured.exact_resident_first_bytes),
        change(|measured| measured.exact_resident_later_bytes),
        "with the memory arena off",
    );
    let both: Vec<String> = stock.into_iter().chain(off).collect();
    (!both.is_empty()).then(|| format!("the process grows by {}", both.join(";\n          by ")))
}

/// What the runs in turns say of time, before something else.
fn times(check: &Check) -> String {
    let added = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let stock = check.time_ratio.map(added);
    let exact = check.exact_time_ratio.map(added);
    let exact = exact.map(|added| added + " with the memory arena off");
    let both: Vec<String> = stock.into_iter().chain(exact).collect();
    if both.is_empty() {
        return String::new();
    }
    format!("time {}; ", both.join(", "))
}

/// What the user can set in the runtime to get more.
fn advice(args: &OptimizeArgs, found: &Deployment, settings: Option<&SettingsTried>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(offer) = found.offer {
        lines.push(format!(
            "level     at `--level {}` it is {} -> {}, with the bits of the model at that level",
            offer.level,
            bytes(offer.before),
            bytes(offer.after)
        ));
    }
    if !found.is_written {
        return lines;
    }
    let level = match args.target.level {
        OptimizationLevel::All => None,
        OptimizationLevel::Extended => Some("ORT_ENABLE_EXTENDED"),
        OptimizationLevel::Basic => Some("ORT_ENABLE_BASIC"),
        OptimizationLevel::Off => Some("ORT_DISABLE_ALL"),
    };
    if let Some(level) = level {
        lines.push(format!(
            "settings  graph_optimization_level = {level} is needed in ONNX Runtime"
        ));
    }
    let session = SessionRecord::of(args, found, settings);
    if session.priority_based_order {
        lines.push("settings  execution_order = PRIORITY_BASED is needed in ONNX Runtime".to_owned());
    }
    if !session.enable_mem_reuse {
        lines.push(
            "settings  enable_mem_reuse = False is needed in ONNX Runtime: shapes could not be made dynamic".to_owned(),
        );
    }
    if let Some(settings) = settings {
        lines.extend(settings::lines(settings));
    } else if args.target.arena {
        lines.extend(found.arena_off().map(|off| without_the_arena(&off)));
    } else {
        lines.push(
            "settings  enable_cpu_mem_arena = False and enable_mem_pattern = False are what it is made for".to_owned(),
        );
    }
    lines
}

/// Whether to turn the memory arena off: what it saves, and what it costs beside the model as it came where nothing is set.
fn without_the_arena(off: &ArenaOff) -> String {
    let how = if off.is_measured {
        ""
    } else {
        " (predicted, not measured)"
    };
    let time = format!("time is {:+.1} %{how}", off.overhead_percent);
    let growth = off
        .growth
        .map(|(stock, off)| format!("the process grows by {} instead of {}", bytes(off), bytes(stock)));
    if off.is_recommended() {
        return format!(
            "settings  enable_cpu_mem_arena = False and enable_mem_pattern = False lower the heap peak by {}: {}, {time}",
            bytes(off.saved_bytes),
            growth.unwrap_or_default()
        );
    }
    let mut against = Vec::new();
    if off.grows() != Some(false) {
        against.push(growth.unwrap_or_else(|| "by how much the process grows was not measured".to_owned()));
    }
    if off.is_slow() {
        let most = off.most_percent.unwrap_or_default();
        against.push(format!("{time}, more than {most} %"));
    }
    format!(
        "settings  the defaults; with the memory arena off the heap peak is {} lower, but {}\n          \
         `--arena-plan` gives every buffer its place in one block of about the lower peak, and measures by how much the process grows; `--settings` looks for settings that come close",
        bytes(off.saved_bytes),
        against.join(", and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_the_closest_file_is_what_is_written() {
        let of = |output: Option<&str>, is_written| closest(output.map(Path::new), is_written);
        assert_eq!(of(Some("small.onnx"), true), Closest::Written);
        assert_eq!(of(Some("small.onnx"), false), Closest::Kept);
        assert_eq!(of(None, true), Closest::NoOutput);
        assert_eq!(of(Some("plan.json"), false), Closest::Described);
    }
}
