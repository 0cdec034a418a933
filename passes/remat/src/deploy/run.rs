//! From a model to a file that is known to run as promised.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use remat_onnx::{ImportOptions, OnnxModel};
use remat_ort::{Host, OptimizationLevel};
use remat_plan::{BudgetSpec, PlanFile};
use remat_profile::ProfileFile;
use remat_solve::SolveControl;
use remat_target::{LoweringReport, OrderHint};

use super::check::{Baseline, Check, Fault};
use super::plan::{Effort, Planned, plan};
use super::promise::Promise;
use super::variant::{Abandoned, Variant};
use crate::{Error, Format, LoadOptions, Model, Solution, SolveRequest};

/// How often a plan is made anew because measuring showed what the simulation leaves out.
const LESSONS: usize = 4;

/// What is asked for.
pub struct DeployRequest<'a> {
    /// The model, a `.onnx` file.
    pub input: &'a Path,
    /// Where the written model goes; without it nothing is written.
    pub output: Option<&'a Path>,
    /// How the model is read.
    pub load: &'a LoadOptions,
    /// What is solved for.
    pub solve: &'a SolveRequest,
    /// A plan to apply instead.
    pub plan: Option<&'a PlanFile>,
    /// Costs of the model that is planned on, which may be one that the runtime made of the input; else those of `load` apply, as far as
    /// they are about ops of that model.
    pub profile: Option<&'a Profiler<'a>>,
    /// The execution orders that must keep the promise.
    pub order: OrderHint,
    /// Whether the runtime's memory arena will be on, as it is by default: then room may be reserved for it.
    pub arena: bool,
    /// Whether what was written is measured.
    pub measure: bool,
}

/// Measures the ops of the model at a path.
pub type Profiler<'a> = dyn Fn(&Path) -> Result<ProfileFile, Error> + 'a;

impl fmt::Debug for DeployRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeployRequest")
            .field("input", &self.input)
            .field("output", &self.output)
            .field("solve", &self.solve)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

/// A model on its way to the runtime, and what is known of it.
#[derive(Debug)]
pub struct Deployment {
    /// The model that was planned on: what the runtime made of the input, or the input.
    pub model: Model,
    /// The plan.
    pub solution: Solution,
    /// The budget that was asked for, where it is a number of bytes.
    pub budget: Option<u64>,
    /// How it was written.
    pub variant: Variant,
    /// What was tried before.
    pub abandoned: Vec<Abandoned>,
    /// What was done for the runtime.
    pub lowering: LoweringReport,
    /// What the simulation of the runtime says.
    pub promise: Promise,
    /// What was measured.
    pub check: Option<Check>,
}

impl Deployment {
    /// What was promised and is exceeded by a measured peak, by more than the model of the runtime leaves out: the peak of the file, or the
    /// budget that was asked for.
    #[must_use]
    pub fn broken_promise(&self) -> Option<u64> {
        let measured = self.check.as_ref().and_then(|check| check.after.exact)?;
        let promised = self.budget.unwrap_or(u64::MAX).min(self.promise.peak_bytes);
        (measured > super::check::tolerated(promised)).then_some(promised)
    }
}

/// Plans, writes, simulates and measures, until a variant has the bits of the input. The time that `control` leaves is that of each
/// search; the rest takes as long as it takes.
///
/// # Errors
/// Those of [`Model::open`], [`solve`](crate::solve) and [`save`](crate::save); [`Error::Runtime`] if the input itself does not run
/// here, and [`Error::NoVariant`] if no variant has its bits.
pub fn deploy(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, Error> {
    if Format::of(request.input)? != Format::Onnx {
        return Err(Error::NotForRuntime {
            path: request.input.to_owned(),
        });
    }
    let effort = Effort::of(control);
    let scratch = scratch_folder()?;
    let dims = &request.load.dims;
    let measuring = host.filter(|_| request.measure);
    let baseline = measuring
        .map(|host| Baseline::new(host, request.input, dims))
        .transpose()?;
    let mut abandoned = Vec::new();
    for variant in Variant::ALL {
        if variant.is_fused() && host.is_none() {
            continue;
        }
        let model = match open(request, variant, host, scratch.path()) {
            Ok(model) => model,
            Err(error) if variant.is_fused() => {
                abandoned.push(Abandoned {
                    variant,
                    why: error.to_string(),
                });
                continue;
            }
            Err(error) => return Err(error),
        };
        if variant == Variant::Untouched && request.is_bounded() {
            break;
        }
        let attempt = Attempt {
            request,
            variant,
            model: &model,
            effort: &effort,
            measuring: measuring.zip(baseline.as_ref()),
            written: &scratch.path().join("remat-written.onnx"),
        };
        let (planned, check) = match attempt.make()? {
            Ok(made) => made,
            Err(fault) => {
                tracing::warn!(%variant, %fault, "a variant is given up");
                abandoned.push(Abandoned {
                    variant,
                    why: fault.to_string(),
                });
                continue;
            }
        };
        let Planned {
            solution,
            lowered,
            promise,
        } = planned;
        if let Some(output) = request.output {
            onnx(&model, request)?.save_proto(&lowered.proto, output)?;
        }
        let budget = request
            .solve
            .budget
            .bytes(model.baseline().peak)
            .filter(|_| request.plan.is_none());
        return Ok(Deployment {
            budget,
            model,
            solution,
            variant,
            abandoned,
            lowering: lowered.report,
            promise,
            check,
        });
    }
    Err(Error::NoVariant { abandoned })
}

/// A variant on its way.
struct Attempt<'a> {
    request: &'a DeployRequest<'a>,
    variant: Variant,
    model: &'a Model,
    effort: &'a Effort<'a>,
    /// The runtime, and the model as it came, measured there.
    measuring: Option<(&'a Host, &'a Baseline)>,
    /// Where to put the file that is measured.
    written: &'a Path,
}

impl Attempt<'_> {
    /// Plans and measures; where measuring shows what the simulation leaves out, again with that left free.
    fn make(&self) -> Result<Result<(Planned, Option<Check>), Fault>, Error> {
        let mut learned = 0;
        let mut best: Option<(Planned, Check)> = None;
        for _ in 0..LESSONS {
            let planned = match self.plan(learned) {
                Ok(planned) => planned,
                // The budget leaves no room for what was learned: what is there stays.
                Err(_) if best.is_some() => break,
                Err(error) => return Err(error),
            };
            let Some((host, baseline)) = self.measuring else {
                return Ok(Ok((planned, None)));
            };
            let check = match self.check(&planned, host, baseline)? {
                Ok(check) => check,
                Err(fault) => return Ok(Err(fault)),
            };
            let lesson = check.lesson(&planned.promise, learned);
            let is_lower = best
                .as_ref()
                .is_none_or(|(_, best)| check.after.exact <= best.after.exact);
            if is_lower {
                best = Some((planned, check));
            }
            match lesson.filter(|_| self.request.is_bounded()) {
                Some(lesson) => learned = lesson,
                None => break,
            }
        }
        let Some((mut planned, check)) = best else {
            return Err(Error::NoVariant { abandoned: Vec::new() });
        };
        // What is still above its promise was measured on this very file. What the runtime fuses in it at load is not simulated.
        if self.variant.is_fused() {
            planned.promise.settle(&check.after);
        } else {
            planned.promise.be(&check.after);
        }
        Ok(Ok((planned, Some(check))))
    }

    fn plan(&self, learned: u64) -> Result<Planned, Error> {
        plan(self.request, self.variant, self.model, self.effort, learned)
    }

    fn check(&self, planned: &Planned, host: &Host, baseline: &Baseline) -> Result<Result<Check, Fault>, Error> {
        onnx(self.model, self.request)?.save_proto(&planned.lowered.proto, self.written)?;
        let (input, dims) = (self.request.input, &self.request.load.dims);
        let mut check = baseline.check(host, input, self.written, dims, self.request.order == OrderHint::Any);
        if let (Ok(check), OrderHint::Priority) = (&mut check, self.request.order) {
            check.forget_peaks("the priority-based order can only be set from Python");
        }
        Ok(check)
    }
}

impl DeployRequest<'_> {
    /// Whether a number of bytes, or a plan, is asked for.
    fn is_bounded(&self) -> bool {
        self.plan.is_some() || matches!(self.solve.budget, BudgetSpec::Bytes(_) | BudgetSpec::Share(_))
    }
}

/// A folder for files on the way, which goes with the value.
fn scratch_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|source| Error::Io {
        action: "write",
        path: PathBuf::from("a temporary folder"),
        source,
    })
}

pub(crate) fn onnx<'m>(model: &'m Model, request: &DeployRequest<'_>) -> Result<&'m OnnxModel, Error> {
    let refused = || Error::NotForRuntime {
        path: request.input.to_owned(),
    };
    model.onnx().ok_or_else(refused)
}

/// The model that the variant starts from.
fn open(request: &DeployRequest<'_>, variant: Variant, host: Option<&Host>, scratch: &Path) -> Result<Model, Error> {
    let mut path = request.input.to_owned();
    let mut load = request.load.clone();
    if let Some(host) = host.filter(|_| variant.is_fused()) {
        // A data file is called after it, and goes to the folder of the output.
        let name = request.output.unwrap_or(request.input).file_name();
        path = scratch.join(name.unwrap_or_else(|| "fused.onnx".as_ref()));
        remat_ort::optimize(
            &host.child,
            &host.library,
            request.input,
            OptimizationLevel::Extended,
            &path,
        )?;
        load.profile = load.profile.map(|file| about_ops_of(&path, file)).transpose()?;
    }
    if let Some(profiler) = request.profile {
        load.profile = Some(profiler(&path)?);
    }
    Model::open(&path, &load)
}

/// What a profile says of ops that the model at `path` has.
fn about_ops_of(path: &Path, mut file: ProfileFile) -> Result<ProfileFile, Error> {
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let model = OnnxModel::open(path, &looked_at)?;
    let names: HashSet<&str> = model.graph().ops.iter().map(|op| op.name.as_str()).collect();
    let stated = file.ops.len();
    file.ops.retain(|record| names.contains(record.node.as_str()));
    let (left, ops) = (file.ops.len(), names.len());
    if left < stated {
        tracing::warn!("the runtime fused nodes: {left} of {stated} measured times are about one of its {ops} nodes");
    }
    Ok(file)
}
