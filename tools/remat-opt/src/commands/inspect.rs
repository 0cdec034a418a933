//! `remat-opt inspect`: where the memory goes.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use remat::Model;
use remat::plan::{Plan, Problem, Step, StorageId, Structure};
use remat::verify::{Replay, resident_at};
use serde_json::json;

use crate::cli::{InspectArgs, ReportFormat};
use crate::{chart, units};

/// Rows of the timeline.
const CHART_ROWS: usize = 10;
/// Columns of the timeline at most.
const CHART_COLUMNS: usize = 100;

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let mut options = args.load.options(&args.input)?;
    let Some(path) = &args.plan else {
        let model = Model::open(&args.input, &options)?;
        return show(args, &model, model.baseline_plan(), model.baseline());
    };
    let file = super::read_plan(path)?;
    options.accounting = Some(options.accounting.unwrap_or(file.accounting));
    let model = Model::open(&args.input, &options)?;
    let solution = remat::check_plan(&model, &file)?;
    show(args, &model, &solution.plan, &solution.replay)
}

fn show(args: &InspectArgs, model: &Model, plan: &Plan, replay: &Replay) -> anyhow::Result<()> {
    let mut resident = resident_at(model.problem(), plan, replay.peak_step);
    resident.sort_by_key(|&(storage, bytes)| (std::cmp::Reverse(bytes), storage));
    super::print(&match args.report.format {
        ReportFormat::Text => text(args, model, plan, replay, &resident),
        ReportFormat::Json => format!("{:#}\n", json(model, plan, replay, &resident)),
    })
}

/// Name of the op that runs at a step.
fn op_at<'a>(problem: &'a Problem, plan: &Plan, step: usize) -> &'a str {
    match plan.steps.get(step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) => &problem.ops[op].name,
        _ => "",
    }
}

fn text(args: &InspectArgs, model: &Model, plan: &Plan, replay: &Replay, resident: &[(StorageId, u64)]) -> String {
    let problem = model.problem();
    let mut lines = vec![format!(
        "{}: {} ops, {} tensors, peak {} at step {} (`{}`)",
        problem.name,
        problem.ops.len(),
        problem.tensors.len(),
        units::bytes(replay.peak),
        replay.peak_step,
        op_at(problem, plan, replay.peak_step),
    )];
    if let Some(bottleneck) = problem.bottleneck(&Structure::of(problem)) {
        lines.push(format!(
            "no plan in this order can go below {} ({:.1} %): op `{}`",
            units::bytes(bottleneck.bytes),
            units::percent(bottleneck.bytes, replay.peak),
            problem.ops[bottleneck.op].name,
        ));
    }
    let during: Vec<u64> = replay.trace.iter().map(|step| step.during).collect();
    lines.push(String::new());
    lines.push(chart::timeline(
        &during,
        CHART_COLUMNS,
        CHART_ROWS,
        replay.peak,
        units::bytes,
    ));
    lines.push(String::new());
    lines.push(format!("largest of {} storages at the peak:", resident.len()));
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["bytes", "share", "tensor", "made by"]);
    let running = plan.steps.get(replay.peak_step).and_then(|step| match *step {
        Step::Compute(op) | Step::Recompute(op) => Some(&problem.ops[op]),
        Step::Free(_) | Step::PageOut(_) | Step::PageIn(_) => None,
    });
    if let Some(op) = running.filter(|op| op.workspace > 0) {
        let share = format!("{:.1} %", units::percent(op.workspace, replay.peak));
        table.add_row([
            units::bytes(op.workspace),
            share,
            "(kernel workspace)".to_owned(),
            op.name.clone(),
        ]);
    }
    for &(storage, bytes) in resident.iter().take(args.top) {
        let root = &problem.tensors[problem.storages[storage].root];
        let producer = root.producer.map_or("", |op| problem.ops[op].name.as_str());
        let share = format!("{:.1} %", units::percent(bytes, replay.peak));
        table.add_row([units::bytes(bytes), share, root.name.clone(), producer.to_owned()]);
    }
    for column in table.column_iter_mut().take(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    lines.push(table.trim_fmt());
    lines.join("\n") + "\n"
}

fn json(model: &Model, plan: &Plan, replay: &Replay, resident: &[(StorageId, u64)]) -> serde_json::Value {
    let problem = model.problem();
    let bottleneck = problem.bottleneck(&Structure::of(problem));
    let timeline = replay
        .trace
        .iter()
        .map(|trace| json!({ "node": op_at(problem, plan, trace.step), "during": trace.during, "after": trace.after }));
    let at_peak = resident
        .iter()
        .map(|&(s, bytes)| json!({ "tensor": problem.storage_name(s), "bytes": bytes }));
    json!({
        "model": problem.name,
        "accounting": problem.accounting,
        "ops": problem.ops.len(),
        "tensors": problem.tensors.len(),
        "duration": replay.duration,
        "peak_bytes": replay.peak,
        "peak_step": replay.peak_step,
        "peak_node": op_at(problem, plan, replay.peak_step),
        "lower_bound_bytes": bottleneck.map(|b| b.bytes),
        "lower_bound_node": bottleneck.map(|b| &problem.ops[b.op].name),
        "resident_at_peak": at_peak.collect::<Vec<_>>(),
        "timeline": timeline.collect::<Vec<_>>(),
    })
}
