//! The answer, tried: the main command writes the model at that size, and what it takes is measured.

use std::path::Path;
use std::time::Duration;

use remat::plan::{BudgetSpec, percent};
use remat::solver::SolveControl;
use remat::{BatchFinding, BatchTrial, Error, ErrorKind, FissionRequest, LoadOptions, MaxBatch, Model, SolveRequest};
use remat_files::ScratchFolder;
use remat_onnxruntime_deploy::{DeployRequest, deploy};
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
    /// Makes the largest size the answer, of the one that was found and smaller ones, for which the main command writes a file that was
    /// measured within the memory; else the size that fits as it is. Whether there is such a file.
    ///
    /// # Errors
    /// What is neither a finding nor a limit.
    pub(super) fn confirm(&self, found: &mut MaxBatch, control: &SolveControl<'_>) -> anyhow::Result<bool> {
        let folder = ScratchFolder::new("batch-")?;
        let output = folder.path().join("out.onnx");
        let low = found.without.unwrap_or(0);
        let Some(mut size) = found.with.filter(|&with| with > low) else {
            return Ok(false);
        };
        while size > low {
            if control
                .deadline
                .is_some_and(|deadline| std::time::Instant::now() >= deadline)
            {
                found.is_out_of_time = true;
                break;
            }
            if let Some(trial) = self.trial(size, found.budget, &output, control)? {
                let fits = trial.finding.fits();
                found.trials.retain(|other| other.size != size);
                found.trials.push(trial);
                found.trials.sort_by_key(|trial| trial.size);
                if fits {
                    found.with = Some(size);
                    return Ok(true);
                }
            }
            // Down to the size that fits as it is, faster than from there up: every try takes as long as the main command.
            size = low + (size - low) / 2;
        }
        found.with = found.without;
        Ok(false)
    }

    /// What the main command does at a size.
    fn trial(
        &self,
        size: u64,
        budget: u64,
        output: &Path,
        control: &SolveControl<'_>,
    ) -> anyhow::Result<Option<BatchTrial>> {
        let started = std::time::Instant::now();
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
        let control = control.share_of_time(ONE_SIZE).at_most(Some(MAIN_COMMAND));
        let (finding, tiling, bodies) = match deploy(&request, Some(self.host), &control) {
            Ok(done) => {
                let measured = done.check.as_ref().and_then(|check| check.after.exact);
                let peak = measured.unwrap_or(done.prediction.peak_bytes);
                let finding = if peak <= budget {
                    BatchFinding::Plan {
                        peak,
                        duration: done.solution.replay.duration,
                    }
                } else {
                    let reason = format!("the file that the main command writes takes {peak} bytes");
                    BatchFinding::NotFound { reason }
                };
                (finding, done.model.tiling().cloned(), done.model.bodies().to_vec())
            }
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

/// The main command for that size, as a line for a shell.
pub(super) fn command(input: &Path, load: &LoadOptions, budget: u64, max_overhead: u64) -> Option<String> {
    let mut words = vec!["remat-opt".to_owned(), input.to_str()?.to_owned()];
    words.extend(["-o".to_owned(), "small.onnx".to_owned()]);
    for (name, size) in &load.dims {
        words.extend(["--dim".to_owned(), format!("{name}={size}")]);
    }
    words.extend(["--budget".to_owned(), budget.to_string()]);
    words.extend(["--max-overhead".to_owned(), percent(max_overhead)]);
    shlex::try_join(words.iter().map(String::as_str)).ok()
}
