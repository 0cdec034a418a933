//! `remat-opt verify`: replays a plan with the independent checker, or runs a rewritten model beside its original.

use remat::plan::Step;
use remat::verify::{Rejection, Span};
use remat::{Format, Model, Solution};
use remat_chart::{Bar, BarKind, Timeline};
use remat_files::document::to_json;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::VerifyArgs;
use crate::document::{Body, Document};
use crate::failure::{FailureBody, ViolationRecord};
use crate::{console, files, units};

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

pub(crate) fn run(args: &VerifyArgs, quiet: bool) -> anyhow::Result<()> {
    let mut files = args.load.files(&args.input)?;
    files.reads("the plan or the rewritten model", [args.plan.as_path()])?;
    files.writes("the chart (`--svg`)", args.svg.as_deref())?;
    files.writes("the report (`--output`)", args.output.as_deref())?;
    let extension = args.plan.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        return super::verify_models::run(args, &mut files, quiet);
    }
    let (model, result) = if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("sched")) {
        let model = Model::open(&args.input, &args.load.options(&args.input)?)?;
        let result = remat::check_schedule(&model, &remat::read(&args.plan)?);
        (model, result)
    } else {
        let file = super::read_plan(&args.plan)?;
        let model = super::open_for_plan(&args.load, &args.input, &file)?;
        let result = remat::check_plan(&model, &file);
        (model, result)
    };
    files.reads_data_of(&model)?;
    let solution = match result {
        Ok(solution) => solution,
        Err(finding) => {
            let remat::Error::Plan(error) = &finding else {
                return Err(finding.into());
            };
            let Some(rejection) = error.rejection().cloned() else {
                return Err(finding.into());
            };
            let report = || Report::rejected(&rejection);
            let finding = Err(finding.into());
            save_report(args, report(), &finding)?;
            // In words, the error says it all.
            return console::report(&args.report, String::new, report, finding);
        }
    };
    save_report(args, Report::valid(&solution), &Ok(()))?;
    if let Some(path) = &args.svg {
        let title = format!("{}: runs, transfers and memory of the plan", solution.problem.name);
        files::write(path, remat_chart::timeline(&title, &timeline(&model, &solution))?)?;
    }
    console::report(&args.report, || text(&solution), || Report::valid(&solution), Ok(()))
}

/// Writes the report where `--output` names a file.
pub(super) fn save_report<B: Body>(args: &VerifyArgs, body: B, outcome: &anyhow::Result<()>) -> anyhow::Result<()> {
    let Some(path) = &args.output else { return Ok(()) };
    let failure = outcome.as_ref().err().map(FailureBody::of);
    files::write(path, to_json(&Document::new(body, failure)))
}

fn text(solution: &Solution) -> String {
    let budget = solution
        .problem
        .budget
        .map_or("no budget".to_owned(), |b| format!("budget {}", units::bytes(b)));
    format!(
        "valid: peak {} ({budget}), overhead {:+.2} %, {} in {}\n",
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
    let (unit, scale) = match solution.replay.peak {
        peak if peak >= 10 << 30 => ("GiB", 1 << 30),
        peak if peak >= 10 << 20 => ("MiB", 1 << 20),
        _ => ("KiB", 1 << 10),
    };
    let memory_in = |bytes: u64| bytes as f64 / f64::from(scale);
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
