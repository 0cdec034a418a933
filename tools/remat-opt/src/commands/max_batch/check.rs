//! The answer, tried: the main command writes the model at that size, and what it takes is measured.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{BatchFinding, BatchTrial, Error, ErrorKind, FissionRequest, LoadOptions, MaxBatch, Model, SolveRequest};
use remat_files::ScratchFolder;
use remat_onnxruntime_deploy::{DeployRequest, Deployment, deploy};
use remat_onnxruntime_run::Host;

use crate::runtime::expected;

/// The time that the main command has by default.
const MAIN_COMMAND: Duration = Duration::from_secs(10);
/// Part of the time that is left which one size may take.
const ONE_SIZE: f64 = 0.5;

/// What the answer is tried with.
pub(super) struct Check<'a> {
    pub(super) input: &'a Path,
    pub(super) host: &'a Host,
    /// How the model is read at a size.
    pub(super) load: &'a dyn Fn(u64) -> LoadOptions,
    pub(super) open: &'a dyn Fn(u64) -> Result<Model, Error>,
    pub(super) fission: Option<&'a FissionRequest>,
    pub(super) solver: &'a str,
    pub(super) max_overhead: u64,
}

impl Check<'_> {
    /// Makes the largest size the answer for which the main command writes a file that is measured within the memory, as [`MaxBatch::confirm`] says.
    /// Whether there is such a file.
    ///
    /// # Errors
    /// What is neither a finding nor a limit.
    pub(super) fn confirm(&self, found: &mut MaxBatch, control: &SolveControl<'_>) -> anyhow::Result<bool> {
        let folder = ScratchFolder::new("batch-")?;
        let output = folder.path().join("out.onnx");
        let (budget, mut was_short) = (found.budget, false);
        let is_checked = found.confirm(control, |size| {
            let one = control.share_of_time(ONE_SIZE).at_most(Some(MAIN_COMMAND));
            let left = one.deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let trial = self.trial(size, budget, &output, &one)?;
            // With the time of the main command it might have been found.
            let has_failed = trial.as_ref().is_some_and(|trial| !trial.finding.fits());
            was_short |= has_failed && left.is_some_and(|left| left < MAIN_COMMAND.mul_f64(0.9));
            anyhow::Ok(trial)
        })?;
        found.is_out_of_time |= was_short;
        Ok(is_checked)
    }

    /// What the main command does at a size; `None` where it was not found out what its file takes.
    fn trial(
        &self,
        size: u64,
        budget: u64,
        output: &Path,
        control: &SolveControl<'_>,
    ) -> anyhow::Result<Option<BatchTrial>> {
        let started = Instant::now();
        let model = (self.open)(size)?;
        let solve = SolveRequest {
            budget: BudgetSpec::Bytes(budget),
            max_overhead: Some(self.max_overhead),
            solver: self.solver.to_owned(),
        };
        let load = (self.load)(size);
        let request = DeployRequest {
            fission: self.fission,
            expected: expected(&model),
            ..DeployRequest::new(self.input, Some(output), &load, &solve)
        };
        let (finding, tiling, bodies) = match deploy(&request, Some(self.host), control) {
            Ok(done) => match finding(&done) {
                Some(finding) => (finding, done.model.tiling().cloned(), done.model.bodies().to_vec()),
                None => return Ok(None),
            },
            Err(_) if control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) => return Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit) => {
                let reason = error.to_string();
                (BatchFinding::NotFound { reason }, None, Vec::new())
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Some(BatchTrial {
            size,
            baseline: Some(model.baseline_peak()),
            baseline_duration: model.baseline().duration,
            finding,
            tiling,
            bodies,
            elapsed: started.elapsed(),
        }))
    }
}

/// What the file of the main command says of the memory: that it keeps it where it was measured to, that it does not where it misses it; `None` where it
/// was not measured.
fn finding(done: &Deployment) -> Option<BatchFinding> {
    if let Some(missed) = done.missed {
        let how = if missed.is_measured { "measured" } else { "predicted" };
        let reason = format!(
            "the file that the main command makes takes {} bytes, {how}",
            missed.reached
        );
        return Some(BatchFinding::NotFound { reason });
    }
    let measured = done.check.as_ref().and_then(|check| check.after.arena_off);
    measured.filter(|_| done.is_written).map(|peak| BatchFinding::Plan {
        peak,
        duration: done.solution.replay.duration,
    })
}
