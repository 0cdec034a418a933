//! `remat-opt compare`: every solver under every budget, side by side.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::Table;
use remat::plan::parse_duration;
use remat::solver::Solver;
use remat::{COMPARISON_FORMAT, CompareRequest, Comparison, ComparisonFile, FindingKind, Model, RunRecord};
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
    /// How long it took.
    #[serde(skip)]
    took: Duration,
    /// The files that were written.
    #[serde(skip)]
    written: Vec<PathBuf>,
}

impl Body for Report {
    const FORMAT: &'static str = COMPARISON_FORMAT;
    const HAS_FORMAT: bool = true;

    fn text(&self) -> String {
        let figures = &self.figures;
        let baseline = figures.baseline_peak_bytes;
        let mut lines = vec![
            units::baseline(baseline, figures.baseline_of),
            format!(
                "floor     {} ({:.1} %)",
                units::bytes(figures.floor_bytes),
                units::percent(figures.floor_bytes, baseline)
            ),
            String::new(),
            table(figures).trim_fmt(),
            String::new(),
        ];
        lines.extend(figures.skipped.iter().map(|name| left_out(name)));
        let default = remat::default_solver().name();
        for runs in figures.budgets().filter(|runs| runs[0].planned_subgraphs > 0) {
            let (budget, count) = (&runs[0].budget, units::count(runs[0].planned_subgraphs, "subgraph"));
            lines.push(format!(
                "{budget}: {count} planned once, by `{default}`, for all solvers"
            ));
        }
        // The default solver should never lose: where limits make it, that is told.
        for (beaten, overhead) in figures
            .beaten(default)
            .filter_map(|run| Some((run, run.overhead_percent?)))
        {
            let (budget, by) = (&beaten.budget, &beaten.solver);
            lines.push(format!(
                "{budget}: `{by}` found a better plan than `{default}`, {overhead:+.2} %"
            ));
        }
        lines.push(format!("time      {:.2} s", self.took.as_secs_f64()));
        let written = self.written.iter();
        lines.extend(written.map(|path| format!("written   {}", shown(path.display()))));
        lines.join("\n") + "\n"
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
        let mut job = self.planning.job(&[], &writes)?;
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
            took: started.elapsed(),
            written: self.output.iter().chain(&self.svg).cloned().collect(),
        };
        let outcome = comparison.require_plan().map_err(Into::into);
        console::report(&self.planning.report, &report, outcome)
    }
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

fn table(figures: &ComparisonFile) -> Table {
    let headings = "budget solver peak share overhead bound gap seconds found";
    let mut table = console::table(headings.split(' '), 2..8);
    for runs in figures.budgets() {
        if is_impossible(runs) {
            let mut row = vec![runs[0].budget.clone(), "all".to_owned()];
            row.resize(8, String::new());
            row.push("impossible".to_owned());
            table.add_row(row);
            continue;
        }
        for (place, run) in runs.iter().enumerate() {
            let budget = if place == 0 { run.budget.clone() } else { String::new() };
            let percent = |percent: f64| format!("{percent:+.2} %");
            let beyond = |bound: u64| percent(units::percent(bound, figures.baseline_duration) - 100.0);
            let share = |peak: u64| format!("{:.1} %", units::percent(peak, figures.baseline_peak_bytes));
            table.add_row([
                budget,
                run.solver.clone(),
                run.peak_bytes.map_or_else(String::new, units::bytes),
                run.peak_bytes.map_or_else(String::new, share),
                run.overhead_percent.map_or_else(String::new, percent),
                run.bound.map_or_else(String::new, beyond),
                run.gap.map_or_else(String::new, |gap| format!("{:.2} %", 100.0 * gap)),
                format!("{:.3}", run.elapsed_ms as f64 / 1_000.0),
                found(run).to_owned(),
            ]);
        }
    }
    table
}

/// Whether no solver can meet the budget of these runs, each for the same reason.
fn is_impossible(runs: &[RunRecord]) -> bool {
    let is_alike = |run: &RunRecord| run.finding == FindingKind::Impossible && run.reason == runs[0].reason;
    runs.iter().all(is_alike)
}

/// Whether there is a plan, and if not why, in a word or two.
fn found(run: &RunRecord) -> &'static str {
    match run.finding {
        FindingKind::Plan => "yes",
        FindingKind::Impossible => "impossible",
        FindingKind::NotFound if run.is_refused => "refused",
        FindingKind::NotFound => "no",
        FindingKind::Untried => "not tried",
    }
}

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
