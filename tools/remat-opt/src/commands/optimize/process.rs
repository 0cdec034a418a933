//! The loadable form of a model (`--process`): a folder, written beside its place and then moved there.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{LoadOptions, Model, SolveRequest};
use remat_files::{OutputFolder, shown};
use remat_onnxruntime_deploy::{
    ArenaPlanned, DeployError, Deployment, MANIFEST, PORTABLE, ProcessLimit, ProcessRequest, ProcessWithin,
    ProcessWritten, Program, Promise, write_process,
};
use remat_onnxruntime_run::Host;

use super::OptimizeArgs;
use super::planned::{ArenaJob, arena_request, inferred, memory_limits};
use crate::ledgers::{self, ProcessRecord, limit_line};
use crate::lines::Entries;
use crate::units::{bytes, pair};

/// The folder in which a loadable form is made that goes to `place`.
pub(super) fn begin(place: &Path) -> anyhow::Result<OutputFolder> {
    OutputFolder::create(place, MANIFEST).with_context(|| format!("cannot write `{}`", shown(place.display())))
}

/// Writes the loadable form of what was written to the folder on its way, and moves it to its place.
pub(super) fn write(
    folder: OutputFolder,
    args: &OptimizeArgs,
    (original, found): (&Model, &Model),
    job: ArenaJob<'_>,
    (host, expected): (&Host, Duration),
    control: &SolveControl<'_>,
) -> anyhow::Result<ProcessWritten> {
    let portable = folder.path().join(PORTABLE);
    let inferred = inferred(found);
    let job = ArenaJob {
        written: &portable,
        ..job
    };
    let request = ProcessRequest {
        plan: arena_request(args, job, &inferred, expected),
        original_weights: ledgers::weights_of(original),
        original_data: ledgers::data_of(original),
        limit: args.whole.limit(),
    };
    let mut written = write_process(&request, host, control).map_err(DeployError::from)?;
    written.moved_to(folder.place());
    let place = folder.place().to_owned();
    folder
        .commit()
        .with_context(|| format!("cannot write `{}`", shown(place.display())))?;
    Ok(written)
}

/// The request for a plan that leaves room for the rest of the process; none where the rest takes more than the limit.
///
/// # Errors
/// [`DeployError::ProcessTooLarge`] there.
pub(super) fn within(
    args: &OptimizeArgs,
    limit: &ProcessLimit,
    model: &Model,
    request: SolveRequest,
) -> anyhow::Result<SolveRequest> {
    let rest = match args.target.process {
        true => ledgers::predicted_form(model, 0),
        false => ledgers::predicted(model, 0),
    };
    let Some(left) = limit.left_for_runs(&rest, model.baseline_peak().bytes / 2) else {
        return Err(ledgers::too_large(limit, &rest));
    };
    let peak = model.baseline_peak().bytes;
    let wanted = request.budget.bytes(peak);
    // What is asked for anyway is left as it is.
    let budget = match wanted {
        None if peak <= left => request.budget,
        None => BudgetSpec::Bytes(left),
        Some(wanted) => BudgetSpec::Bytes(wanted.min(left)),
    };
    Ok(SolveRequest { budget, ..request })
}

/// What a process of a file takes that was written as a model.
pub(super) fn record(
    args: &OptimizeArgs,
    (file, host): (&Path, &Host),
    (model, found): (&Model, &Deployment),
    (load, planned): (&LoadOptions, Option<&ArenaPlanned>),
    expected: Duration,
) -> anyhow::Result<ProcessRecord> {
    let run = planned.map_or(found.prediction.peak_bytes, |planned| {
        planned.measured.block_bytes + planned.measured.outside_bytes
    });
    let runner = host.runner(memory_limits(expected));
    let measured = ledgers::measured(&runner, (file, model), (args.target.level, load), planned)?;
    let predicted = ledgers::predicted(model, run);
    Ok(ProcessRecord::new(predicted, Some(measured), args.whole.limit()))
}

/// What the process takes, in words: the whole beside that of the original, what of it must be there, and how it compares with a limit.
pub(super) fn lines(written: &ProcessWritten, within: Option<&ProcessWithin>) -> Vec<String> {
    let figures = |program: Program, of: fn(&Promise) -> u64| {
        let promise = written.promises.iter().find(|promise| promise.program == program);
        pair(of(&written.original.promise(program)), promise.map_or(0, of))
    };
    let wholes =
        [Program::Python, Program::C].map(|program| format!("{} in {program}", figures(program, |one| one.bytes())));
    let mut lines = vec![
        format!("{}, from its first to its last instruction", wholes.join(", ")),
        format!(
            "in Python {} of it must be there, the rest may be dropped (-v: ledgers)",
            figures(Program::Python, |one| one.must_be_there_bytes)
        ),
    ];
    let weights = written.measured.packed_weights_bytes + written.measured.mapped_weights_bytes;
    lines.extend(written.resident_weights_bytes.map(|resident| {
        format!(
            "{} of {} of weights stay in memory: the others are read ahead in every run, and dropped",
            bytes(resident),
            bytes(weights)
        )
    }));
    lines.extend(within.map(limit_line));
    lines
}

/// Each ledger of the original as measured, of the loadable form as predicted and as measured.
pub(super) fn ledgers(entries: &mut Entries, written: &ProcessWritten) {
    let (original, predicted) = (written.original.each(), written.predicted.each());
    let all = original.into_iter().zip(predicted).zip(written.measured.each());
    let lines = all.map(|(((name, before), (_, predicted)), (_, after))| {
        let (after, predicted) = (bytes(after), bytes(predicted));
        format!("{name} {} -> {after} ({predicted} predicted)", bytes(before))
    });
    entries.add_all("ledgers", lines);
}
