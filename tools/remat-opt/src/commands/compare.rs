//! `remat-opt compare`: every solver under every budget, side by side.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::Table;
use remat::plan::parse_duration;
use remat::solver::Solver;
use remat::{COMPARISON_FORMAT, CompareRequest, Comparison, ComparisonFile, Model, Overhead};
use remat_chart::Curve;
use remat_files::shown;
use remat_onnxruntime_deploy::PlannedBodies;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{
    Arguments, Budgets, GOAL, Inputs, OUTPUT, OutputPath, PlanningArgs, SEARCH, Talk, named, parse_budgets,
};
use crate::document::Body;
use crate::failure::similar;
use crate::progress::Line;
use crate::{bodies, console, files, units};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Also write the figures here, as JSON.
    #[arg(short, long, value_name = "FIGURES", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Also draw added time over budgets here, one line for each solver, as SVG.
    #[arg(long, value_name = "CHART", help_heading = OUTPUT)]
    svg: Option<PathBuf>,
    /// Peaks to stay within: shares (`80%`), ranges of shares (`90%..50%:5%`), sizes (`512MiB`).
    #[arg(short, long, value_name = "BUDGET,...", value_delimiter = ',', allow_hyphen_values = true, default_value = "90%..50%:10%", value_parser = parse_budgets, help_heading = GOAL)]
    budgets: Vec<Budgets>,
    /// Solvers; those that are missing are left out and named in the report [default: all].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = SEARCH)]
    solvers: Vec<String>,
    /// Time limit of one solver under one budget.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = SEARCH)]
    time_limit: Duration,
    /// Maximum number of search steps of one solver under one budget.
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    step_limit: Option<u64>,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// The figures of a comparison, as `-o` writes them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    #[serde(flatten)]
    figures: ComparisonFile,
    /// The same for people, and which solver beat the default one.
    #[serde(skip)]
    text: String,
}

impl Body for Report {
    const FORMAT: &'static str = COMPARISON_FORMAT;
    const HAS_FORMAT: bool = true;

    fn text(&self) -> String {
        self.text.clone()
    }
}

impl Arguments for CompareArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.planning.inputs()
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([(&mut self.output, "json"), (&mut self.svg, "svg")])
    }

    fn prepare(&self) -> anyhow::Result<()> {
        self.planning.search.find_library()
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        let started = Instant::now();
        let writes = [
            ("the figures (`-o`)", self.output.as_ref()),
            ("the chart (`--svg`)", self.svg.as_ref()),
        ];
        let line = Line::start(talk.quiet, None);
        let mut job = self.planning.job(&writes)?;
        let model = job.open_shown(None, None, &line)?;
        let mut control = self.planning.search.control().observer(&line);
        control.step_limit = self.step_limit;
        let request = CompareRequest {
            budgets: Budgets::all(&self.budgets),
            solvers: self.solvers.clone(),
            time_per_run: Some(self.time_limit),
        };
        let comparison = match bodies::nodes(&model).is_empty() {
            true => remat::compare(&model, &request, &control)?,
            false => remat::compare_in_bodies(&model, &PlannedBodies { load: &job.load }, &request, &control)?,
        };
        let figures = ComparisonFile::new(&model, &comparison, &request, &control);
        if let Some(path) = &self.output {
            files::write(path, figures.to_json())?;
        }
        if let Some(path) = &self.svg {
            files::write(path, svg(&model, &comparison)?)?;
        }
        line.finish();
        let report = Report {
            figures,
            text: text(self, &model, &comparison, started.elapsed()),
        };
        let outcome = comparison.require_plan().map_err(Into::into);
        console::report(&self.planning.report, &report, outcome)
    }
}

fn text(args: &CompareArgs, model: &Model, comparison: &Comparison, took: Duration) -> String {
    let mut lines = vec![
        units::baseline(model.baseline_peak().bytes, model.baseline_peak().of),
        format!(
            "floor     {} ({:.1} %)",
            units::bytes(comparison.floor),
            units::percent(comparison.floor, model.baseline_peak().bytes)
        ),
        String::new(),
        table(model, comparison).trim_fmt(),
        String::new(),
    ];
    lines.extend(comparison.skipped.iter().map(|name| left_out(name)));
    for ((budget, _), bodies) in comparison.budgets.iter().zip(&comparison.bodies) {
        if !bodies.is_empty() {
            let count = units::count(bodies.len(), "subgraph");
            lines.push(format!(
                "{budget}: {count} planned once, by `{}`, for all solvers",
                remat::default_solver().name()
            ));
        }
    }
    // The default solver should never lose: where limits make it, that is told.
    let default = remat::default_solver().name();
    for beaten in comparison.beaten(default) {
        let (budget, _) = comparison.budgets[beaten.budget];
        lines.push(format!(
            "{budget}: `{}` found a better plan than `{default}`, {}",
            beaten.by,
            overhead(model, beaten.duration)
        ));
    }
    lines.push(format!("time      {:.2} s", took.as_secs_f64()));
    let written = args.output.iter().chain(&args.svg);
    lines.extend(written.map(|path| format!("written   {}", shown(path.display()))));
    lines.join("\n") + "\n"
}

/// Why a solver does not take part, and which one may have been meant.
fn left_out(name: &str) -> String {
    let missing = remat::solver_named(name).ok().and_then(Solver::missing);
    if let Some(missing) = missing {
        return format!("`{}` is left out: {}", shown(name), shown(missing));
    }
    let known: Vec<_> = remat::solvers().map(Solver::name).collect();
    let meant = similar(name, known.into_iter()).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    let name = shown(name);
    format!("`{name}` is left out: there is no such solver{meant}")
}

fn table(model: &Model, comparison: &Comparison) -> Table {
    let headings = "budget solver peak share overhead bound gap seconds found";
    let mut table = console::table(headings.split(' '), 2..8);
    for (index, (budget, _)) in comparison.budgets.iter().enumerate() {
        if comparison.is_impossible(index) {
            let mut row = vec![budget.to_string(), "all".to_owned()];
            row.resize(8, String::new());
            row.push("impossible".to_owned());
            table.add_row(row);
            continue;
        }
        for (place, solver) in comparison.solvers.iter().enumerate() {
            let run = &solver.runs[index];
            let budget = if place == 0 { budget.to_string() } else { String::new() };
            let mut row = vec![budget, solver.name.to_owned()];
            if let Some(solution) = run.solution() {
                let certificate = solution.certificate.as_ref();
                let gap = certificate.and_then(|certificate| certificate.gap);
                row.extend([
                    units::bytes(solution.replay.peak),
                    format!(
                        "{:.1} %",
                        units::percent(solution.replay.peak, model.baseline_peak().bytes)
                    ),
                    overhead(model, solution.replay.duration),
                    certificate.map_or_else(String::new, |certificate| overhead(model, certificate.bound)),
                    gap.map_or_else(String::new, |gap| format!("{:.2} %", 100.0 * gap)),
                ]);
            } else {
                row.resize(7, String::new());
            }
            row.push(format!("{:.3}", run.elapsed.as_secs_f64()));
            row.push(run.found().to_owned());
            table.add_row(row);
        }
    }
    table
}

fn overhead(model: &Model, duration: u64) -> String {
    let overhead = Overhead {
        duration,
        baseline: model.baseline().duration,
    };
    format!("{:+.2} %", overhead.percent())
}

/// What is known about a run, in a word.
fn svg(model: &Model, comparison: &Comparison) -> anyhow::Result<String> {
    let share = |bytes: u64| units::percent(bytes, model.baseline_peak().bytes);
    let curves = comparison.curves(model).map(|(name, points)| Curve {
        name: name.to_owned(),
        points,
    });
    let curves: Vec<Curve> = curves.collect();
    let title = format!("{}: solvers side by side", model.problem().name);
    Ok(remat_chart::memory_against_time(
        &title,
        share(comparison.floor),
        &curves,
        &[],
    )?)
}
