//! `remat-opt verify`: replays a plan with the independent checker, or runs a rewritten model beside its original.

mod args;
mod models;

use anyhow::{Context, bail};
use remat::plan::{Bound, Step};
use remat::verify::{Rejection, Span};
use remat::{Format, Model, Solution};
use remat_chart::{Bar, BarKind, Timeline};
use remat_files::document::to_json;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use args::VerifyArgs;
pub(crate) use models::Report as ModelsReport;

use crate::args::{Arguments, Inputs, OutputPath, named};
use crate::block::BlockRecord;
use crate::document::{Body, Document};
use crate::failure::ViolationRecord;
use crate::job::Job;
use crate::page::{self, AsItCame, Said};
use crate::{block, console, failure, files, units};

/// What the checker found.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Whether the plan breaks no rule.
    valid: bool,
    /// Peak of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    /// Duration of the plan; in nanoseconds for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    /// How many runs of ops the plan adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    recomputes: Option<usize>,
    /// The block that everything lies in, where the plan has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<BlockRecord>,
    /// The rules that it breaks.
    violations: Vec<ViolationRecord>,
    /// How many more violations there are.
    suppressed: usize,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-verify/1";
}

impl Report {
    fn valid(solution: &Solution) -> Self {
        Self {
            valid: true,
            peak_bytes: Some(solution.replay.peak),
            duration: Some(solution.replay.duration),
            recomputes: Some(solution.plan.recomputes()),
            block: BlockRecord::of(solution),
            ..Self::default()
        }
    }

    fn rejected(rejection: &Rejection) -> Self {
        Self {
            violations: rejection.violations.iter().map(ViolationRecord::from).collect(),
            suppressed: rejection.suppressed,
            ..Self::default()
        }
    }
}

impl Arguments for VerifyArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        let tiles = self.tiles_from.iter_mut();
        self.load
            .inputs([&mut self.input, &mut self.plan].into_iter().chain(tiles))
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([
            (&mut self.output, "json"),
            (&mut self.svg, "svg"),
            (&mut self.block_svg, "svg"),
            (&mut self.page.page, "html"),
        ])
    }

    fn run(&self, quiet: bool) -> anyhow::Result<()> {
        let reads = [
            ("the plan or the rewritten model", Some(&self.plan)),
            ("the plan (`--tiles-from`)", self.tiles_from.as_ref()),
        ];
        let writes = [
            ("the chart (`--svg`)", self.svg.as_ref()),
            ("the chart (`--block-svg`)", self.block_svg.as_ref()),
            ("the page (`--report`)", self.page.page.as_ref()),
            ("the report (`--output`)", self.output.as_ref()),
        ];
        let mut job = Job::resolve(&self.input, &self.load, &reads, &writes)?;
        let extension = remat::extension(&self.plan);
        if extension == "onnx" {
            return models::run(self, job, quiet);
        }
        if self.tiles_from.is_some() && extension != "sched" {
            bail!("`--tiles-from` is for device programs (`.sched`): other plans state their tiles themselves");
        }
        let (model, result) = if extension == "sched" {
            let tiles = self.tiles_from.as_deref().map(super::read_plan).transpose()?;
            let model = job.open(tiles.as_ref())?;
            let result = remat::check_schedule(&model, &remat::read(&self.plan)?);
            (model, result)
        } else {
            let file = super::read_plan(&self.plan)?;
            let model = match job.open(Some(&file)) {
                Ok(model) => model,
                // Plans of subgraphs are checked first.
                Err(finding) => return self.refused(finding),
            };
            let result = remat::check_plan(&model, &file);
            (model, result)
        };
        let solution = match result {
            Ok(solution) => solution,
            Err(finding) => return self.refused(finding.into()),
        };
        self.save_report(Report::valid(&solution), &Ok(()))?;
        if let Some(path) = &self.svg {
            let title = format!("{}: runs, transfers and memory of the plan", solution.problem.name);
            files::write(path, remat_chart::timeline(&title, &timeline(&model, &solution))?)?;
        }
        if let Some(path) = &self.block_svg {
            let chart = block::chart(&solution).context("the plan has no block to draw: it gives no offsets")?;
            files::write(path, chart?)?;
        }
        if let Some(path) = &self.page.page {
            let said = text(&solution).lines().map(str::to_owned).collect();
            let said = Said {
                title: page::title(&self.input, &model),
                summary: vec![("checked".to_owned(), said)],
                report: to_json(&Document::new(Report::valid(&solution), None)),
                ..Said::default()
            };
            page::write(path, &AsItCame::of(&model), &model, &solution, said)?;
        }
        console::report(&self.report, || text(&solution), || Report::valid(&solution), Ok(()))
    }
}

impl VerifyArgs {
    /// Reports the rules that a plan breaks; every other error is that of the command.
    fn refused(&self, finding: anyhow::Error) -> anyhow::Result<()> {
        let rejection = match failure::pipeline(&finding) {
            Some(remat::Error::Plan(error)) => error.rejection().cloned(),
            _ => None,
        };
        let Some(rejection) = rejection else {
            return Err(finding);
        };
        let report = || Report::rejected(&rejection);
        let finding = Err(finding);
        self.save_report(report(), &finding)?;
        // In words, the error says it all.
        console::report(&self.report, String::new, report, finding)
    }
}

fn text(solution: &Solution) -> String {
    let budget = solution
        .problem
        .budget
        .map_or("no budget".to_owned(), |b| format!("budget {}", units::bytes(b)));
    let bounds = match solution.bound {
        Bound::Load => "",
        Bound::Block => " for the block",
    };
    let block = block::line(solution).map(|line| line + "\n").unwrap_or_default();
    format!(
        "valid: peak {} ({budget}{bounds}), overhead {:+.2} %, {} in {}\n{block}",
        units::bytes(solution.replay.peak),
        solution.overhead.percent(),
        units::count(solution.plan.recomputes(), "recompute"),
        units::count(solution.plan.steps.len(), "step"),
    )
}

/// What the plan does over time; in milliseconds for models.
fn timeline(model: &Model, solution: &Solution) -> Timeline {
    let is_model = model.format() == Format::Onnx;
    let time = |time: u64| time as f64 / if is_model { 1e6 } else { 1.0 };
    let (unit, scale) = remat_chart::unit(solution.replay.peak);
    let memory_in = |bytes: u64| bytes as f64 / scale as f64;
    let replay = &solution.replay;
    let spans = || solution.plan.steps.iter().zip(&replay.times);
    let bar = |(step, span): (&Step, &Span)| {
        let kind = match step {
            Step::Compute(_) => BarKind::Run,
            Step::Recompute(_) => BarKind::Again,
            Step::PageOut(_) => BarKind::Out,
            Step::PageIn(_) => BarKind::In,
            Step::Free(_) => return None,
        };
        (span.start < span.end).then(|| Bar {
            kind,
            start: time(span.start),
            end: time(span.end),
        })
    };
    let mut memory: Vec<(f64, f64)> = spans()
        .zip(&replay.trace)
        .map(|((_, span), at)| (time(span.start), memory_in(at.during)))
        .collect();
    memory.sort_by(|a, b| a.0.total_cmp(&b.0));
    Timeline {
        bars: spans().filter_map(bar).collect(),
        memory,
        budget: solution.problem.budget.map(memory_in),
        time_unit: if is_model { "ms" } else { "units of the input" }.to_owned(),
        memory_unit: unit.to_owned(),
    }
}
