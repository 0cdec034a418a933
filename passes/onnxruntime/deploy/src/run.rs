//! From a model to a file that is known to run as promised.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use remat_cost::ProfileFile;
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_lower::{LoweringReport, OrderHint};
use remat_onnxruntime_run::{ChildLimits, Host, OptimizationLevel, Runner};
use remat_plan::{BudgetSpec, PlanFile};
use remat_solve::{Activity, SolveControl};

use crate::DeployError;
use crate::attempt::Attempt;
use crate::check::{Bench, Check};
use crate::clock::{Clock, LeftOut};
use crate::plan::Planned;
use crate::promise::Promise;
use crate::variant::{Abandoned, Variant};
use remat::{Format, LoadOptions, Model, Solution, SolveRequest};

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
    /// How long loading the model and running it once is expected to take, by an estimate: a process that runs it is killed only after a
    /// multiple of that beyond the limit.
    pub expected: Duration,
}

/// Measures the ops of the model at a path.
pub type Profiler<'a> = dyn Fn(&Path) -> Result<ProfileFile, DeployError> + 'a;

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
    /// What there was no time for.
    pub left_out: Vec<LeftOut>,
}

impl Deployment {
    /// What was promised and is exceeded by a measured peak, by more than the model of the runtime leaves out: the peak of the file, or the
    /// budget that was asked for.
    #[must_use]
    pub fn broken_promise(&self) -> Option<u64> {
        let measured = self.check.as_ref().and_then(|check| check.after.exact)?;
        let promised = self.budget.unwrap_or(u64::MAX).min(self.promise.peak_bytes);
        (measured > crate::check::tolerated(promised)).then_some(promised)
    }
}

/// Plans, writes, simulates and measures, until a variant has the bits of the input.
///
/// The time until the deadline of `control` is for everything but having the runtime fuse nodes, writing the output, and one process each
/// that measures the model as it came and the first file of a variant. When it is over, the best file that was measured is written; what
/// there was no time for is told ([`Deployment::left_out`]). After a cancellation the same holds, at once.
///
/// # Errors
/// Those of [`Model::open`], [`solve`](remat::solve) and [`save`](remat::save); [`DeployError::Runtime`] if the input itself does not run
/// here or the call is cancelled before a file is measured, [`DeployError::NoVariant`] if no variant has its bits, and [`DeployError::NoTime`] if
/// the time was over before the last variant was tried.
pub fn deploy(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    if Format::of(request.input)? != Format::Onnx {
        return Err(DeployError::NotForRuntime {
            path: request.input.to_owned(),
        });
    }
    let clock = Clock::start(control);
    let scratch = scratch_folder()?;
    let bench = host.map(|host| Bench {
        host,
        clock: &clock,
        input: request.input,
        dims: &request.load.dims,
        expected: request.expected,
    });
    let measuring = bench.as_ref().filter(|_| request.measure);
    let baseline = measuring.map(Bench::baseline).transpose()?;
    let mut abandoned = Vec::new();
    // Not fused, for all variants that start from it.
    let mut original = None;
    for variant in Variant::ALL {
        if variant.is_fused() && host.is_none() || request.plan.is_some_and(|plan| is_for_other(plan, variant)) {
            continue;
        }
        if variant == Variant::Untouched && request.is_bounded() {
            break;
        }
        if !abandoned.is_empty() && variant != Variant::Untouched && !clock.has(Duration::ZERO) {
            clock.leave_out(LeftOut::Variants);
            continue;
        }
        let started = Instant::now();
        let opened = match original.take() {
            Some(model) if !variant.is_fused() => Ok(model),
            _ => open(request, variant, bench.as_ref(), &clock, scratch.path()),
        };
        let model = match opened {
            Ok(model) => model.ordered_for(request.order.name()),
            Err(error) if variant.is_fused() && !clock.is_cancelled() => {
                abandoned.push(Abandoned {
                    variant,
                    why: error.to_string(),
                });
                continue;
            }
            Err(error) => return Err(error),
        };
        let attempt = Attempt {
            request,
            variant,
            model: &model,
            clock: &clock,
            measuring: measuring.zip(baseline.as_ref()),
            written: &scratch.path().join("remat-written.onnx"),
            // It is read back to be simulated.
            file: started.elapsed(),
        };
        match attempt.make()? {
            Ok((planned, check)) => return finish(request, &clock, variant, model, planned, check, abandoned),
            Err(fault) => {
                tracing::warn!(%variant, %fault, "a variant is given up");
                abandoned.push(Abandoned {
                    variant,
                    why: fault.to_string(),
                });
            }
        }
        original = (!variant.is_fused()).then_some(model);
    }
    Err(if clock.left_out().contains(&LeftOut::Variants) {
        DeployError::NoTime { abandoned }
    } else {
        DeployError::NoVariant { abandoned }
    })
}

/// Writes what was found.
fn finish(
    request: &DeployRequest<'_>,
    clock: &Clock<'_>,
    variant: Variant,
    model: Model,
    planned: Planned,
    check: Option<Check>,
    abandoned: Vec<Abandoned>,
) -> Result<Deployment, DeployError> {
    let Planned {
        mut solution,
        lowered,
        promise,
    } = planned;
    if clock.is_cancelled() {
        solution.interrupt();
    }
    if let Some(output) = request.output {
        let onnx = onnx(&model, request)?;
        clock.apart(Activity::Write, "", || onnx.save_proto(&lowered.proto, output))?;
    }
    let budget = request
        .solve
        .budget
        .bytes(model.baseline().peak)
        .filter(|_| request.plan.is_none());
    Ok(Deployment {
        budget,
        model,
        solution,
        variant,
        abandoned,
        lowering: lowered.report,
        promise,
        check,
        left_out: clock.left_out(),
    })
}

impl DeployRequest<'_> {
    /// Whether a number of bytes, or a plan, is asked for.
    pub(crate) fn is_bounded(&self) -> bool {
        self.plan.is_some() || matches!(self.solve.budget, BudgetSpec::Bytes(_) | BudgetSpec::Share(_))
    }
}

/// A folder for files on the way, which goes with the value.
fn scratch_folder() -> Result<tempfile::TempDir, DeployError> {
    tempfile::tempdir().map_err(|source| {
        let path = PathBuf::from("a temporary folder");
        let action = "write";
        remat::Error::Io { action, path, source }.into()
    })
}

pub(crate) fn onnx<'m>(model: &'m Model, request: &DeployRequest<'_>) -> Result<&'m OnnxModel, DeployError> {
    let refused = || DeployError::NotForRuntime {
        path: request.input.to_owned(),
    };
    model.onnx().ok_or_else(refused)
}

/// The model that the variant starts from.
fn open(
    request: &DeployRequest<'_>,
    variant: Variant,
    bench: Option<&Bench<'_, '_>>,
    clock: &Clock<'_>,
    scratch: &Path,
) -> Result<Model, DeployError> {
    let mut path = request.input.to_owned();
    let mut load = request.load.clone();
    if let Some(bench) = bench.filter(|_| variant.is_fused()) {
        // A data file is called after it, and goes to the folder of the output.
        let runner = bench.first_runner();
        path = clock.apart(Activity::Fuse, "", || {
            fuse(&runner, request.input, request.output.unwrap_or(request.input), scratch)
        })?;
        load.profile = load.profile.map(|file| about_ops_of(&path, file)).transpose()?;
    }
    if let Some(profiler) = request.profile {
        load.profile = Some(clock.apart(Activity::Measure, "every op", || profiler(&path))?);
    }
    clock.begins(Activity::Import, "");
    let model = Model::open(&path, &load)?;
    Ok(match bench.filter(|_| variant.is_fused()) {
        Some(bench) => model.fused_by(runtime_name(bench.host)),
        None => model,
    })
}

/// What the runtime makes of the model at `input` when it fuses nodes, in a file of the scratch folder with the name of `named`.
fn fuse(runner: &Runner<'_>, input: &Path, named: &Path, scratch: &Path) -> Result<PathBuf, DeployError> {
    let path = scratch.join(named.file_name().unwrap_or_else(|| "fused.onnx".as_ref()));
    remat_onnxruntime_run::optimize(runner, input, OptimizationLevel::Extended, &path)?;
    Ok(path)
}

fn runtime_name(host: &Host) -> String {
    format!("ONNX Runtime {}", host.version)
}

/// The model at `input` after the runtime fused its nodes within `limits`, as [`deploy`] plans on it.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn open_fused(
    (host, limits): (&Host, ChildLimits<'_>),
    input: &Path,
    load: &LoadOptions,
) -> Result<Model, DeployError> {
    let scratch = scratch_folder()?;
    let path = fuse(&host.runner(limits), input, input, scratch.path())?;
    Ok(Model::open(&path, load)?.fused_by(runtime_name(host)))
}

/// Whether the plan says that it is one for another graph than that of the variant.
fn is_for_other(plan: &PlanFile, variant: Variant) -> bool {
    let setup = plan.setup.as_ref();
    setup.is_some_and(|setup| setup.fused_by.is_some() != variant.is_fused())
}

/// What a profile says of ops that the model at `path` has.
fn about_ops_of(path: &Path, mut file: ProfileFile) -> Result<ProfileFile, DeployError> {
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
