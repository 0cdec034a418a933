//! What is printed of a plan.

use std::time::Instant;

use remat::plan::Step;
use remat::solver::{SolveControl, least_peak};
use remat::{Format, Model, Output, Solution};
use remat_files::shown;

use super::args::OptimizeArgs;
use super::headline::Headline;
use super::proof::{self, Plans};
use super::sizes;
use crate::{block, bodies, floor, tiles, units};

/// What a model that would be made for ONNX Runtime is worth without it.
pub(super) const WITHOUT_RUNTIME: &str = "in ONNX Runtime nothing is gained with this file: no runtime was found to make it for; install one (`pip install onnxruntime`, in a \
     virtual environment that is active, or named with `--ort-library`), then run again";

/// The lines a person wants at the end. `is_without_runtime`: that nothing is gained in ONNX Runtime comes first.
pub(super) fn text(
    args: &OptimizeArgs,
    (model, solution): (&Model, &Solution),
    headline: &Headline,
    floor: Option<&str>,
    is_without_runtime: bool,
    started: Instant,
) -> String {
    let mut lines = Vec::new();
    if is_without_runtime {
        lines.push(format!("warning   {WITHOUT_RUNTIME}"));
    }
    lines.extend(headline.warning());
    lines.extend(plan_lines(args, model, solution, headline, floor));
    lines.extend(sizes::lines(model, None));
    lines.push(format!("time      {:.2} s", started.elapsed().as_secs_f64()));
    if let Some(output) = &args.output {
        lines.push(format!("written   {}", shown(output.display())));
        if Output::of(output, model.format()).is_ok_and(|output| output == Output::Onnx) {
            lines.push(
                "settings  in ONNX Runtime, file order and clones hold with: graph_optimization_level = ORT_DISABLE_ALL, execution_order = \
                 PRIORITY_BASED; buffers die with their tensors with: enable_mem_reuse = False, enable_cpu_mem_arena = False; \
                 a model made with --target ort needs none of these"
                    .to_owned(),
            );
        }
    }
    lines.join("\n") + "\n"
}

/// Which subgraphs have plans of their own, and which stretches run tile by tile.
fn part_lines(args: &OptimizeArgs, model: &Model) -> Vec<String> {
    let mut tiles = model.tiling().map(tiles::lines).unwrap_or_default();
    tiles.extend(
        args.exact_threads(model)
            .map(|threads| format!("the bits of the whole, by rule, with 1 to {threads} threads (`--exact-threads`)")),
    );
    let parts = [("bodies", bodies::lines(model.bodies())), ("tiles", tiles)];
    let named = |(name, lines): (&str, Vec<String>)| {
        let lines = lines.into_iter().enumerate();
        let line = |(place, line)| format!("{:9} {line}", if place == 0 { name } else { "" });
        lines.map(line).collect::<Vec<_>>()
    };
    parts.into_iter().flat_map(named).collect()
}

/// What the plan gains and costs, and how good it is.
pub(super) fn plan_lines(
    args: &OptimizeArgs,
    model: &Model,
    solution: &Solution,
    headline: &Headline,
    floor: Option<&str>,
) -> Vec<String> {
    let after = &solution.replay;
    let baseline = model.baseline_peak();
    let is_model = model.format() == Format::Onnx;
    let time = |duration: u64| {
        if is_model {
            units::nanoseconds(duration)
        } else {
            duration.to_string()
        }
    };
    let accounting = format!("{:?} accounting", solution.problem.accounting).to_lowercase();
    let mut lines = if headline.is_all_counted(baseline.bytes) {
        vec![format!("{}, {accounting}", headline.line())]
    } else {
        let counted = format!(
            "counted   {} by the plan, {accounting}; budgets are shares of {}, {}",
            units::bytes(after.peak),
            units::bytes(baseline.bytes),
            baseline.of,
        );
        vec![headline.line(), counted]
    };
    lines.push(format!(
        "overhead  {:+.2} %{} ({} -> {}), {} among {}",
        solution.overhead.percent(),
        if is_model { " estimated" } else { "" },
        time(solution.overhead.baseline),
        time(after.duration),
        units::count(solution.plan.recomputes(), "recompute"),
        units::count(solution.problem.ops.len(), "op"),
    ));
    lines.extend(part_lines(args, model));
    let measured = model.measured_sizes();
    if let Some(first) = measured.keys().next() {
        lines.push(format!(
            "sizes     {} measured in a run, because the data decides them (`{}`{}): other inputs may need more",
            units::count(measured.len(), "result"),
            shown(first),
            if measured.len() > 1 { ", .." } else { "" },
        ));
    }
    let problem = &solution.problem;
    lines.extend(paging_lines(solution, &time));
    lines.extend(floor.map(str::to_owned));
    if let Some(certificate) = &solution.certificate {
        let about = Plans::of(model);
        let said = proof::line(certificate, about, problem.order, problem.objective);
        lines.push(format!("plan      {said}"));
    }
    lines.extend(block::line(solution));
    lines
}

/// The peak that no plan of some kind undercuts, as plans count it, and what needs it; found within the limits of `control`.
pub(super) fn floor_line(model: &Model, solution: &Solution, control: &SolveControl<'_>) -> Option<String> {
    let problem = &solution.problem;
    if problem.ops.is_empty() {
        return None;
    }
    let least = least_peak(problem, control);
    let plans = Plans::of(model).covered(least.covers);
    let what = floor::needed_for(problem, &least);
    Some(format!(
        "floor     {} as plans count it: every {plans} needs it for {what}",
        units::bytes(least.bytes),
    ))
}

/// What the second memory and energy come to, where there are such.
fn paging_lines(solution: &Solution, time: &impl Fn(u64) -> String) -> Vec<String> {
    let (problem, replay) = (&solution.problem, &solution.replay);
    let mut lines = Vec::new();
    if problem.paging.is_some() {
        let back = solution
            .plan
            .steps
            .iter()
            .filter(|step| matches!(step, Step::PageIn(_)));
        lines.push(format!(
            "paging    {} from the second memory, which holds {} at most; transfers take {}",
            units::count(back.count(), "page-in"),
            units::bytes(replay.second_peak),
            time(replay.paging_duration),
        ));
    }
    let energy = problem.total_energy();
    if energy > 0 {
        let added = 100.0 * (replay.energy as f64 / energy as f64 - 1.0);
        lines.push(format!(
            "energy    {added:+.2} % ({} -> {})",
            units::picojoules(energy),
            units::picojoules(replay.energy)
        ));
    }
    lines
}
