//! `remat-opt sweep`: one plan for each of several budgets, and the front they form.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use comfy_table::Table;
use remat::plan::{Accounting, Certificate, Tiling, parse_duration};
use remat::{BaselineOf, BodySweep, Finding, Front, FrontFile, FrontPoint, Model, Overhead, SweepRequest, TiledSweep};
use remat_chart::{Curve, DrawError};
use remat_files::document::to_json;
use remat_files::shown;
use remat_onnxruntime_deploy::PlannedBodies;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{
    Arguments, Budgets, FissionArgs, GOAL, Inputs, OUTPUT, OutputPath, PageArgs, PlanningArgs, SEARCH, ShapeArgs, Talk,
    named, parse_budgets,
};
use crate::bodies::{self, BodyRecord};
use crate::document::{Body, Document};
use crate::page::{self, Said};
use crate::progress::Line;
use crate::range::RangeRecord;
use crate::{console, files, tiles, units};

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Where to keep the front with all its plans, as JSON; an existing file is continued.
    ///
    /// It is saved after every step. Finished budgets of an existing file are not searched again; their plans are replayed.
    #[arg(short, long, value_name = "FRONT", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Also draw the front here, as SVG.
    #[arg(long, value_name = "CHART", help_heading = OUTPUT)]
    svg: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Peaks to stay within: shares (`80%`), ranges of shares (`90%..50%:5%`), sizes (`512MiB`), `min`.
    #[arg(short, long, value_name = "BUDGET,...", value_delimiter = ',', allow_hyphen_values = true, default_value = "90%..50%:10%,min", value_parser = parse_budgets, help_heading = GOAL)]
    budgets: Vec<Budgets>,
    /// Solver to use; `auto` searches, then proves what it can.
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = SEARCH)]
    solver: String,
    /// Time limit of the search for one budget.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = SEARCH)]
    time_limit: Duration,
    /// Time limit of all searches together.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = SEARCH)]
    total_time_limit: Option<Duration>,
    /// Maximum number of search steps for one budget.
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    step_limit: Option<u64>,
    #[command(flatten)]
    fission: FissionArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// A plan for each of several budgets.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    model: String,
    /// The input.
    input: PathBuf,
    /// Where the front with all its plans is kept.
    output: Option<PathBuf>,
    /// Which bytes count.
    accounting: Accounting,
    /// What the model takes as it is: what shares are of.
    baseline_peak_bytes: u64,
    /// What says so.
    baseline_of: BaselineOf,
    /// Duration of that.
    baseline_duration: u64,
    /// The peak that no plan of whole ops undercuts, in bytes, or with the tiles of the model where it runs in tiles.
    floor_bytes: u64,
    /// Name of the solver.
    solver: String,
    /// Whether nothing is left to do within the limits.
    finished: bool,
    /// The budgets, loose ones first.
    points: Vec<Point>,
    /// The chart.
    svg: Option<PathBuf>,
    /// Time all of it took.
    seconds: f64,
}

/// What is known about one budget.
#[derive(Serialize, JsonSchema)]
struct Point {
    /// The budget as it was asked for.
    budget: String,
    /// The budget in bytes; absent for `min`.
    budget_bytes: Option<u64>,
    /// `yes`, `so far`, `no`, `impossible` or `not tried`.
    found: &'static str,
    /// Why there is no plan.
    reason: Option<String>,
    /// Peak of the plan.
    peak_bytes: Option<u64>,
    /// Duration of the plan.
    duration: Option<u64>,
    /// Time beyond the baseline, in per cent.
    overhead_percent: Option<f64>,
    /// How many runs of ops the plan adds.
    recomputes: Option<usize>,
    /// What the solver claims about the plan.
    certificate: Option<Certificate>,
    /// What runs of all shapes take under the plan; absent where none are stated (`--shapes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeRecord>,
    /// A better plan in tiles, where one was looked for and found.
    in_tiles: Option<InTiles>,
    /// A better plan with plans of subgraphs, where one was looked for and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_bodies: Option<InBodies>,
}

/// A plan with plans of subgraphs.
#[derive(Serialize, JsonSchema)]
struct InBodies {
    /// Its peak.
    peak_bytes: u64,
    /// Its duration.
    duration: u64,
    /// Time beyond the baseline, in per cent.
    overhead_percent: f64,
    /// The subgraphs.
    bodies: Vec<BodyRecord>,
}

/// A plan in tiles.
#[derive(Serialize, JsonSchema)]
struct InTiles {
    /// Its peak.
    peak_bytes: u64,
    /// Its duration.
    duration: u64,
    /// Time beyond the baseline, in per cent.
    overhead_percent: f64,
    /// The fused chains.
    tiling: Option<Tiling>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-sweep/2";

    /// The table, why budgets have no plan, and what subgraphs and tiles give.
    fn text(&self) -> String {
        let share = |bytes: u64| format!("{:.1} %", units::percent(bytes, self.baseline_peak_bytes));
        let mut lines = vec![
            units::baseline(self.baseline_peak_bytes, self.baseline_of),
            format!(
                "floor     {} ({})",
                units::bytes(self.floor_bytes),
                share(self.floor_bytes)
            ),
            String::new(),
            self.table().trim_fmt(),
            String::new(),
        ];
        for point in &self.points {
            let budget = &point.budget;
            lines.extend(
                point
                    .reason
                    .as_ref()
                    .map(|reason| format!("{budget}: {}", shown(reason))),
            );
            let said = point.range.iter().flat_map(RangeRecord::exceptions);
            lines.extend(said.map(|line| format!("{budget}: {line}")));
            let mut better = |how: &str, peak: u64, overhead: f64, parts: Vec<String>| {
                let (bytes, share) = (units::bytes(peak), share(peak));
                lines.push(format!("{budget}: {how} {bytes} ({share}), {overhead:+.2} % time"));
                lines.extend(parts.into_iter().map(|line| format!("  {line}")));
            };
            if let Some(found) = &point.in_bodies {
                let subgraphs = bodies::lines(&found.bodies);
                better(
                    "with plans of subgraphs",
                    found.peak_bytes,
                    found.overhead_percent,
                    subgraphs,
                );
            }
            if let Some(found) = &point.in_tiles {
                let chains = found.tiling.as_ref().map(tiles::lines).unwrap_or_default();
                better("in tiles", found.peak_bytes, found.overhead_percent, chains);
            }
        }
        if !self.finished {
            lines.push("the sweep was stopped before it was finished".to_owned());
        }
        lines.push(format!("time      {:.2} s", self.seconds));
        let written = self.output.iter().chain(&self.svg);
        lines.extend(written.map(|path| format!("written   {}", shown(path.display()))));
        lines.join("\n") + "\n"
    }
}

impl Arguments for SweepArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.planning.inputs()
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([
            (&mut self.output, "json"),
            (&mut self.svg, "svg"),
            (&mut self.page.page, "html"),
        ])
    }

    fn prepare(&self) -> anyhow::Result<()> {
        self.planning.search.find_library()
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        let started = Instant::now();
        let writes = [
            ("the front (`-o`)", self.output.as_ref()),
            ("the chart (`--svg`)", self.svg.as_ref()),
            ("the page (`--report`)", self.page.page.as_ref()),
        ];
        let line = Line::start(talk.quiet, self.total_time_limit);
        let reads = [("the shapes (`--weights`)", self.shapes.file())];
        let mut job = self.planning.job(&reads, &writes)?;
        let shapes = self.shapes.read()?;
        shapes.complete(&mut job.load);
        let resume = match &self.output {
            Some(path) if path.exists() => Some(read_front(path)?),
            _ => None,
        };
        let model = job.open_shown(None, resume.as_ref().map(FrontFile::baseline_peak), &line)?;
        let mut control = self.planning.search.control().observer(&line);
        if let Some(limit) = self.total_time_limit {
            control = control.time_limit(limit);
        }
        if let Some(steps) = self.step_limit {
            control = control.step_limit(steps);
        }
        let request = SweepRequest {
            budgets: Budgets::all(&self.budgets),
            solver: self.solver.clone(),
            time_per_budget: Some(self.time_limit),
        };
        let save = |front: &Front| match &self.output {
            Some(path) => FrontFile::new(&model, front, &request, &control).save(path),
            None => Ok(()),
        };
        let front = remat::sweep(&model, &request, &control, resume.as_ref(), &mut |front| save(front));
        let mut front = front?;
        if !bodies::nodes(&model).is_empty() {
            let sweep = BodySweep {
                planner: &PlannedBodies { load: &job.load },
                request: &request,
                resume: resume.as_ref(),
            };
            remat::sweep_in_bodies(&model, &mut front, &sweep, &control, &mut |front| save(front))?;
        }
        if let Some(fission) = self.fission.request(job.is_for_runtime(&model)) {
            let sweep = TiledSweep {
                options: &job.load,
                fission: &fission,
                request: &request,
                resume: resume.as_ref(),
            };
            remat::sweep_in_tiles(&model, &mut front, &sweep, &control, &mut |front| save(front))?;
        }
        save(&front)?;
        line.finish();
        if let Some(path) = &self.svg {
            files::write(path, svg(&model, &front)?)?;
        }
        let range = |point: &FrontPoint| {
            let solution = point.solution()?;
            RangeRecord::of_plan((&model, &solution.plan), &shapes, &job.load, point.budget)
        };
        let report = Report::new(self, (&model, &front), range, started.elapsed());
        if let Some(path) = &self.page.page {
            let said = Said {
                title: page::title(job.input, &model),
                text: report.text(),
                report: to_json(&Document::new(&report, None)),
                ..Said::default()
            };
            page::write_front(path, &model, svg(&model, &front)?, said)?;
        }
        let outcome = front.require_plan().map_err(Into::into);
        console::report(&self.planning.report, &report, outcome)
    }
}

/// The front as a chart: plans as points of a falling line, budgets without one as crosses on the axis.
fn svg(model: &Model, front: &Front) -> Result<String, DrawError> {
    let share = |bytes: u64| units::percent(bytes, model.baseline_peak().bytes);
    let solutions = front.points.iter().filter_map(|point| point.solution());
    let plans = solutions.map(|solution| (share(solution.replay.peak), solution.overhead.percent()));
    let plans = Curve {
        name: format!("plans of `{}`", front.solver),
        // The last one is without rematerialization.
        points: plans.chain([(100.0, 0.0)]).collect(),
    };
    let others = |name: &str, found: &dyn Fn(&FrontPoint) -> Option<(u64, Overhead)>| Curve {
        name: name.to_owned(),
        points: front
            .points
            .iter()
            .filter_map(|point| found(point).map(|(peak, overhead)| (share(peak), overhead.percent())))
            .collect(),
    };
    let curves = [
        plans,
        others("plans in tiles", &|point| {
            point.in_tiles.as_ref().map(|found| (found.peak, found.overhead))
        }),
        others("plans with planned subgraphs", &|point| {
            point.in_bodies.as_ref().map(|found| (found.peak, found.overhead))
        }),
    ];
    let crosses = |name: &str, wanted: fn(&Finding) -> bool| Curve {
        name: name.to_owned(),
        points: front
            .points
            .iter()
            .filter(|point| wanted(&point.finding))
            .filter_map(|point| Some((share(point.budget?), 0.0)))
            .collect(),
    };
    let title = format!("{}: memory against time", model.problem().name);
    remat_chart::memory_against_time(
        &title,
        share(front.floor),
        &curves,
        &[
            crosses("impossible", |finding| matches!(finding, Finding::Impossible { .. })),
            crosses("not found in the limits", |finding| {
                matches!(finding, Finding::NotFound { .. })
            }),
        ],
    )
}

fn read_front(path: &Path) -> anyhow::Result<FrontFile> {
    FrontFile::from_json(&remat::read_text(path)?)
        .with_context(|| format!("`{}` exists, but cannot be continued", path.display()))
}

/// What is known about a point, in a word.
fn state(point: &FrontPoint) -> &'static str {
    match &point.finding {
        Finding::Untried => "not tried",
        Finding::Plan(_) if point.is_finished() => "yes",
        Finding::Plan(_) => "so far",
        Finding::Impossible { .. } => "impossible",
        Finding::NotFound { .. } => "no",
    }
}

impl Report {
    fn table(&self) -> Table {
        let is_stated = self.points.iter().any(|point| point.range.is_some());
        let bound = is_stated.then_some("all shapes");
        let headings = ["budget", "bytes", "peak", "share", "overhead", "recomputes", "gap"].into_iter();
        let mut table = console::table(headings.chain(bound).chain(["found"]), 1..7 + usize::from(is_stated));
        for point in &self.points {
            let gap = point.certificate.as_ref().and_then(|certificate| certificate.gap);
            let share = |peak: u64| units::percent(peak, self.baseline_peak_bytes);
            let cell = |figure: Option<String>| figure.unwrap_or_default();
            let bound = point.range.as_ref().and_then(RangeRecord::bound);
            let bound = is_stated.then(|| bound.map_or_else(|| "?".to_owned(), units::bytes));
            let cells = [
                point.budget.clone(),
                cell(point.budget_bytes.map(units::bytes)),
                cell(point.peak_bytes.map(units::bytes)),
                cell(point.peak_bytes.map(|peak| format!("{:.1} %", share(peak)))),
                cell(point.overhead_percent.map(|overhead| format!("{overhead:+.2} %"))),
                cell(point.recomputes.map(|count| count.to_string())),
                cell(gap.map(|gap| format!("{:.2} %", 100.0 * gap))),
            ];
            table.add_row(cells.into_iter().chain(bound).chain([point.found.to_owned()]));
        }
        table
    }

    fn new(
        args: &SweepArgs,
        (model, front): (&Model, &Front),
        range: impl Fn(&FrontPoint) -> Option<RangeRecord>,
        took: Duration,
    ) -> Self {
        let point = |point: &FrontPoint| {
            let solution = point.solution();
            Point {
                budget: point.spec.to_string(),
                budget_bytes: point.budget,
                found: state(point),
                reason: point.finding.reason().map(str::to_owned),
                peak_bytes: solution.map(|solution| solution.replay.peak),
                duration: solution.map(|solution| solution.replay.duration),
                overhead_percent: solution.map(|solution| solution.overhead.percent()),
                recomputes: solution.map(|solution| solution.plan.recomputes()),
                certificate: solution.and_then(|solution| solution.certificate.clone()),
                range: range(point),
                in_bodies: point.in_bodies.as_ref().map(|found| InBodies {
                    peak_bytes: found.peak,
                    duration: found.overhead.duration,
                    overhead_percent: found.overhead.percent(),
                    bodies: BodyRecord::all(&found.plan.bodies),
                }),
                in_tiles: point.in_tiles.as_ref().map(|tiled| InTiles {
                    peak_bytes: tiled.peak,
                    duration: tiled.overhead.duration,
                    overhead_percent: tiled.overhead.percent(),
                    tiling: tiled.tiling().cloned(),
                }),
            }
        };
        Self {
            model: model.problem().name.clone(),
            input: args.planning.input.clone(),
            output: args.output.clone(),
            accounting: model.problem().accounting,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            baseline_duration: model.baseline().duration,
            floor_bytes: front.floor,
            solver: front.solver.clone(),
            finished: front.is_finished(),
            points: front.points.iter().map(point).collect(),
            svg: args.svg.clone(),
            seconds: took.as_secs_f64(),
        }
    }
}
