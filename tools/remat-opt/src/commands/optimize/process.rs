//! The loadable form of a model (`--process`): a folder, written beside its place and then moved there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{Model, SolveRequest};
use remat_files::shown;
use remat_onnxruntime_deploy::{
    DeployError, MANIFEST, PORTABLE, ProcessLimit, ProcessRequest, ProcessWithin, ProcessWritten, Program, Promise,
    write_process,
};
use remat_onnxruntime_run::Host;

use super::OptimizeArgs;
use super::planned::{ArenaJob, arena_request, inferred};
use crate::ledgers::{self, in_words, limit_line};
use crate::lines::Entries;
use crate::units::{bytes, pair};

/// A folder on its way: removed where it is not moved to its place.
pub(super) struct Staging {
    folder: PathBuf,
    place: PathBuf,
    is_moved: bool,
}

impl Staging {
    /// Where a loadable form is made that goes to `place`.
    pub(super) fn folder_of(place: &Path) -> PathBuf {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        place.with_file_name(format!(".{name}.part"))
    }

    /// An empty folder. A place that holds something else than a loadable form is refused.
    pub(super) fn begin(place: &Path) -> anyhow::Result<Self> {
        let is_free = match fs::read_dir(place) {
            Ok(mut entries) => entries.next().is_none() || place.join(MANIFEST).is_file(),
            Err(_) => place.symlink_metadata().is_err(),
        };
        if !is_free {
            bail!(
                "`{}` is there already and is no loadable form (`{MANIFEST}` is missing): name another folder",
                shown(place.display())
            );
        }
        let folder = Self::folder_of(place);
        // What a process left that was killed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).with_context(|| format!("cannot make `{}`", shown(folder.display())))?;
        Ok(Self {
            folder,
            place: place.to_owned(),
            is_moved: false,
        })
    }

    /// Moves the folder to its place, in the place of an older form.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let failed = || format!("cannot write `{}`", shown(self.place.display()));
        let old = self.folder.with_extension("old");
        let _ = fs::remove_dir_all(&old);
        let had_one = fs::rename(&self.place, &old).is_ok();
        let moved = fs::rename(&self.folder, &self.place);
        if moved.is_err() && had_one {
            fs::rename(&old, &self.place).with_context(failed)?;
        }
        moved.with_context(failed)?;
        let _ = fs::remove_dir_all(&old);
        self.is_moved = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_moved {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Writes the loadable form of what was written to the folder on its way, and moves it to its place.
pub(super) fn write(
    staging: Staging,
    args: &OptimizeArgs,
    (original, found): (&Model, &Model),
    job: ArenaJob<'_>,
    (host, expected): (&Host, Duration),
    control: &SolveControl<'_>,
) -> anyhow::Result<ProcessWritten> {
    let portable = staging.folder.join(PORTABLE);
    let inferred = inferred(found);
    let job = ArenaJob {
        written: &portable,
        ..job
    };
    let request = ProcessRequest {
        plan: arena_request(args, job, &inferred, expected),
        original_weights: ledgers::weights_of(original),
        original_data: ledgers::data_of(original),
    };
    let mut written = write_process(&request, host, control).map_err(DeployError::from)?;
    written.moved_to(&staging.place);
    staging.finish()?;
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
    let Some(left) = limit.left_for_runs(&rest) else {
        let within = limit.judge(&rest);
        let least = limit.least(&rest);
        let forbidden_by = within.forbidden_by.or(Some("loading"));
        return Err(DeployError::ProcessTooLarge(ProcessWithin {
            least_bytes: least,
            holds: false,
            forbidden_by,
            ..within
        })
        .into());
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

/// What the process takes, in words: the whole beside that of the original, what of it must be there, and how it compares with a limit.
pub(super) fn lines(written: &ProcessWritten, within: Option<&ProcessWithin>) -> Vec<String> {
    let figures = |program: Program, of: fn(&Promise) -> u64| {
        let promise = written.promises.iter().find(|promise| promise.program == program);
        pair(of(&written.original.promise(program)), promise.map_or(0, of))
    };
    let wholes = [Program::Python, Program::C]
        .map(|program| format!("{} in {}", figures(program, |one| one.bytes()), in_words(program)));
    let mut lines = vec![
        format!("{}, from its first to its last instruction", wholes.join(", ")),
        format!(
            "in Python {} of it must be there, the rest may be dropped (-v: ledgers)",
            figures(Program::Python, |one| one.must_be_there_bytes)
        ),
    ];
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
