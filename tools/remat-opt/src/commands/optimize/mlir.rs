//! `remat-opt IN.mlir -o OUT.mlir`: every function of a module, or a pipeline of passes.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use remat::solver::SolveControl;
use remat_mlir_passes::mlir::{Parsed, Session};
use remat_mlir_passes::{FunctionReport, ModelOptions, PassError, PassOptions, rematerialize};

use super::args::OptimizeArgs;
use super::document::{FunctionRecord, ModuleReport};
use crate::job::Job;
use crate::{console, files, interrupt};

pub(crate) fn run(args: &OptimizeArgs, job: &Job<'_>, started: Instant) -> anyhow::Result<()> {
    check(args)?;
    let session = Session::new();
    let result = work(args, job, &session, started);
    for message in session.take_messages() {
        console::tell(&format!("{message}\n"));
    }
    result
}

/// What a module of MLIR cannot be combined with.
fn check(args: &OptimizeArgs) -> anyhow::Result<()> {
    if let Some(output) = &args.output
        && remat::extension(output) != "mlir"
    {
        bail!(
            "`{}` cannot be written: from a module of MLIR only another one (`.mlir`) is made",
            output.display()
        );
    }
    if args.plan.is_some() || args.emit_plan.is_some() {
        bail!("a module of MLIR has as many plans as functions: leave out `--plan` and `--emit-plan`");
    }
    if args.block.places() {
        bail!(
            "a module of MLIR has as many plans as functions: leave out `--place`, `--bound`, `--block-svg` and `--report`"
        );
    }
    Ok(())
}

fn work(args: &OptimizeArgs, job: &Job<'_>, session: &Session, started: Instant) -> anyhow::Result<()> {
    let mut module = session.open(job.input)?;
    let Some(pipeline) = &args.pass_pipeline else {
        let reports = schedule(args, job, &module)?;
        if let Some(output) = &args.output {
            write(output, &module)?;
        }
        return report(args, job.input, &reports, started);
    };
    remat_mlir_passes::register_passes();
    module
        .run(pipeline)
        .map_err(|error| crate::failure::Lines(error.to_string()))?;
    match &args.output {
        Some(output) => write(output, &module),
        None => console::write(&module.print()?),
    }
}

fn schedule(args: &OptimizeArgs, job: &Job<'_>, module: &Parsed<'_>) -> anyhow::Result<Vec<FunctionReport>> {
    let mut options = options(args, job)?;
    let end = Instant::now().checked_add(args.time_limit);
    let functions = module.functions();
    let mut to_come = u32::try_from(functions.len()).unwrap_or(u32::MAX);
    let mut reports = Vec::new();
    for function in functions {
        // What is left of the time is shared.
        if let Some(end) = end {
            options.time_limit = end.saturating_duration_since(Instant::now()) / to_come.max(1);
        }
        to_come = to_come.saturating_sub(1);
        let report = rematerialize(function, &options).map_err(|error| match error {
            PassError::Plan(error) => anyhow::Error::new(error),
            // Told with the operation at which it stands.
            error => {
                error.emit(function);
                anyhow::anyhow!("function `{}` cannot be scheduled", function.name())
            }
        });
        if interrupt::status().is_some() {
            bail!(
                "the search for a schedule of function `{}` did not end",
                function.name()
            );
        }
        reports.push(report?);
    }
    Ok(reports)
}

fn options(args: &OptimizeArgs, job: &Job<'_>) -> anyhow::Result<PassOptions> {
    let load = job.load.clone();
    let control: SolveControl<'static> = args.search.control();
    Ok(PassOptions {
        model: ModelOptions {
            dynamic_extent: load.dims.get("?").copied(),
            load,
        },
        request: args.request(),
        goal: args.goal.goal(),
        time_limit: args.time_limit,
        step_limit: args.step_limit,
        threads: control.threads,
        seed: control.seed,
        fission: args.fission.request(false),
        dealloc: true,
        remarks: false,
    })
}

fn write(output: &Path, module: &Parsed<'_>) -> anyhow::Result<()> {
    files::write(output, module.print()?)
}

fn report(args: &OptimizeArgs, input: &Path, reports: &[FunctionReport], started: Instant) -> anyhow::Result<()> {
    let body = ModuleReport {
        input: input.to_owned(),
        output: args.output.clone(),
        functions: reports.iter().map(record).collect(),
        seconds: started.elapsed().as_secs_f64(),
    };
    console::report(&args.report, &body, Ok(()))
}

fn record(report: &FunctionReport) -> FunctionRecord {
    FunctionRecord {
        name: report.name.clone(),
        baseline_peak_bytes: report.baseline_peak,
        peak_bytes: report.peak,
        baseline_duration: report.baseline_duration,
        duration: report.duration,
        recomputes: report.recomputes,
        transfers: report.transfers,
        fused_chains: report.fused_chains,
        optimal: report.optimal,
    }
}
