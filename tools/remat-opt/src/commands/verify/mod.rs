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

use crate::args::{Arguments, Inputs, OutputPath, Talk, named};
use crate::block::BlockRecord;
use crate::document::{self, Body, Document};
use crate::failure::ViolationRecord;
use crate::job::Job;
use crate::lines::Entry;
use crate::page::{self, AsItCame, Said};
use crate::{block, console, failure, files, units};

/// What the checker found.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Whether the plan breaks no rule.
    valid: bool,
    /// What it comes to; absent where it is rejected.
    #[serde(flatten)]
    plan: Option<ValidPlan>,
    /// The rules that it breaks.
    violations: Vec<ViolationRecord>,
    /// How many more violations there are.
    suppressed: usize,
}

/// What a plan comes to that breaks no rule.
#[derive(Serialize, JsonSchema)]
struct ValidPlan {
    /// Its peak.
    peak_bytes: u64,
    /// The budget that it keeps, where it has one.
    budget_bytes: Option<u64>,
    /// What that bounds.
    bound: Bound,
    /// Its duration; in nanoseconds for models.
    duration: u64,
    /// Time beyond every op once, in per cent.
    overhead_percent: f64,
    /// How many runs of ops it adds.
    recomputes: usize,
    /// How many steps it has.
    steps: usize,
    /// The block that everything lies in, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<BlockRecord>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-verify/1";

    /// Nothing of a plan that is rejected: the error says it all.
    fn text(&self) -> String {
        let Some(plan) = &self.plan else { return String::new() };
        let budget = plan.budget_bytes.map_or("no budget".to_owned(), |budget| {
            format!("budget {}", units::bytes(budget))
        });
        let bounds = match plan.bound {
            Bound::Load => "",
            Bound::Block => " for the block",
        };
        let block = plan.block.as_ref().map(|block| block.line("block     ") + "\n");
        format!(
            "valid: peak {} ({budget}{bounds}), overhead {:+.2} %, {} in {}\n{}",
            units::bytes(plan.peak_bytes),
            plan.overhead_percent,
            units::count(plan.recomputes, "recompute"),
            units::count(plan.steps, "step"),
            block.unwrap_or_default(),
        )
    }
}

impl Report {
    fn valid(solution: &Solution) -> Self {
        Self {
            valid: true,
            plan: Some(ValidPlan {
                peak_bytes: solution.replay.peak,
                budget_bytes: solution.problem.budget,
                bound: solution.bound,
                duration: solution.replay.duration,
                overhead_percent: solution.overhead.percent(),
                recomputes: solution.plan.recomputes(),
                steps: solution.plan.steps.len(),
                block: BlockRecord::of(solution),
            }),
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

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
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
            return models::run(self, job, talk.quiet);
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
        let report = Report::valid(&solution);
        document::save(self.output.as_deref(), &report, &Ok(()))?;
        if let Some(path) = &self.svg {
            let title = format!("{}: runs, transfers and memory of the plan", solution.problem.name);
            files::write(path, remat_chart::timeline(&title, &timeline(&model, &solution))?)?;
        }
        if let Some(path) = &self.block_svg {
            let chart = block::chart(&solution).context("the plan has no block to draw: it gives no offsets")?;
            files::write(path, chart?)?;
        }
        if let Some(path) = &self.page.page {
            let checked = Entry {
                name: "checked".to_owned(),
                lines: report.text().lines().map(str::to_owned).collect(),
            };
            let said = Said {
                title: page::title(&self.input, &model),
                summary: vec![checked],
                report: to_json(&Document::new(&report, None)),
                ..Said::default()
            };
            page::write(path, &AsItCame::of(&model), &model, &solution, said)?;
        }
        console::report(&self.report, &report, Ok(()))
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
        let report = Report::rejected(&rejection);
        let finding = Err(finding);
        document::save(self.output.as_deref(), &report, &finding)?;
        console::report(&self.report, &report, finding)
    }
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
