//! From a model to a file that is known to run as promised.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use remat_ir::{Effects, Graph};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_ort::{Host, OptimizationLevel};
use remat_plan::{BudgetSpec, PlanFile, Status};
use remat_profile::{Device, ProfileFile};
use remat_solve::SolveControl;
use remat_target::{Lowered, LoweringOptions, LoweringReport, OrderHint};

use super::check::{Baseline, Check};
use super::promise::{self, Promise};
use super::variant::{Abandoned, Variant};
use crate::{Error, Format, LoadOptions, Model, Solution, SolveRequest};

/// How often the budget of the search is lowered, if need be, because the runtime takes more than the plan has.
const TIGHTENINGS: usize = 3;

/// Where the best plan is found at once, how many more of that kind are looked at for one that suits the arena.
const OTHER_PLANS: u64 = 3;

/// Share of a run, in thousandths, that filling a reserve may take at a tenth of the device's bandwidth, which is that of a cache.
const MOST_FILLING_PERMILLE: u64 = 10;

/// What a reserve must leave of the arena's memory at most, in thousandths, to be worth the time to fill it.
const LEAST_GAIN_PERMILLE: u128 = 900;

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
    /// Whether a measured peak lies above the promised one, by more than the model of the runtime leaves out.
    #[must_use]
    pub fn breaks_promise(&self) -> bool {
        let measured = self.check.as_ref().and_then(|check| check.after.exact);
        measured.is_some_and(|measured| measured > super::check::tolerated(self.promise.peak_bytes))
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
        let (solution, lowered, mut promise) = plan(request, variant, &model, &effort)?;
        if let Some(measured) = baseline.as_ref().and_then(Baseline::peak) {
            promise.add(bodies(&model, measured));
        }
        let written = scratch.path().join("remat-written.onnx");
        let onnx = onnx(&model, request)?;
        let mut check = None;
        if let (Some(host), Some(baseline)) = (measuring, &baseline) {
            onnx.save_proto(&lowered.proto, &written)?;
            match baseline.check(host, request.input, &written, dims) {
                Ok(found) => check = Some(found),
                Err(fault) => {
                    tracing::warn!(%variant, %fault, "a variant is given up");
                    abandoned.push(Abandoned {
                        variant,
                        why: fault.to_string(),
                    });
                    continue;
                }
            }
        }
        if let Some(output) = request.output {
            onnx.save_proto(&lowered.proto, output)?;
        }
        return Ok(Deployment {
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

impl DeployRequest<'_> {
    /// Whether a number of bytes, or a plan, is asked for.
    fn is_bounded(&self) -> bool {
        self.plan.is_some() || matches!(self.solve.budget, BudgetSpec::Bytes(_) | BudgetSpec::Share(_))
    }
}

/// What the bodies of loops and branches take, which no plan knows: what the model as it came was measured to take beyond what the
/// simulation of it explains. 0 for a model without any.
fn bodies(model: &Model, measured: u64) -> u64 {
    let has_bodies = |graph: &Graph| graph.ops.iter().any(|op| op.effects == Effects::ControlFlow);
    let explained = model
        .graph()
        .filter(|graph| has_bodies(graph))
        .map(|_| promise::explained(model));
    explained.map_or(0, |explained| measured.saturating_sub(explained))
}

/// A folder for files on the way, which goes with the value.
fn scratch_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|source| Error::Io {
        action: "write",
        path: PathBuf::from("a temporary folder"),
        source,
    })
}

fn onnx<'m>(model: &'m Model, request: &DeployRequest<'_>) -> Result<&'m OnnxModel, Error> {
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

/// How long and how hard each search may try.
struct Effort<'a> {
    control: SolveControl<'a>,
    time: Option<Duration>,
}

impl<'a> Effort<'a> {
    fn of(control: &SolveControl<'a>) -> Self {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        Self {
            control: *control,
            time: control.deadline.map(left),
        }
    }

    /// For a search that begins now.
    fn starting_now(&self) -> SolveControl<'a> {
        self.time.map_or(self.control, |time| self.control.time_limit(time))
    }
}

/// A plan whose file, simulated, keeps the budget: what the runtime takes beyond the plan comes off the budget of the search.
fn plan(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_>,
) -> Result<(Solution, Lowered, Promise), Error> {
    if variant == Variant::Untouched {
        let solution = crate::solve(model, &without_budget(), &effort.starting_now())?;
        let lowered = Lowered {
            proto: onnx(model, request)?.proto().clone(),
            report: LoweringReport::default(),
            reserve: None,
        };
        let graph = crate::rewrite(model, &solution)?.unwrap_or_default();
        let promise = promise::promise(model, &graph, &lowered, request.order)?;
        return Ok((solution, lowered, promise));
    }
    if let Some(file) = request.plan {
        let solution = crate::check_plan(model, file)?;
        let (lowered, promise) = lower(request, variant, model, &solution)?;
        return Ok((solution, lowered, promise));
    }
    let budget = request.solve.budget.bytes(model.baseline().peak);
    let mut asked = request.solve.clone();
    if let Some(budget) = budget {
        asked.budget = BudgetSpec::Bytes(budget.saturating_sub(beyond_the_plan(request, variant, model, effort)?));
    }
    let mut best: Option<(Solution, Lowered, Promise)> = None;
    for _ in 0..TIGHTENINGS {
        let solution = match crate::solve(model, &asked, &effort.starting_now()) {
            Ok(solution) => solution,
            // What is found already is within the budget but for what the runtime adds.
            Err(error) => return best.ok_or(error),
        };
        let (lowered, promise) = lower(request, variant, model, &solution)?;
        let beyond = budget.map_or(0, |budget| promise.peak_bytes.saturating_sub(budget));
        let searched = solution.problem.budget;
        best = Some((solution, lowered, promise));
        let Some(searched) = searched.filter(|_| beyond > 0) else {
            break;
        };
        asked.budget = BudgetSpec::Bytes(searched.saturating_sub(beyond));
    }
    let mut best = best.ok_or_else(|| Error::NoVariant { abandoned: Vec::new() })?;
    if request.arena && is_quickly_optimal(&best.0, effort) {
        for seed in 1..=OTHER_PLANS {
            let control = effort.starting_now();
            let Ok(solution) = crate::solve(model, &asked, &control.seed(control.seed + seed)) else {
                continue;
            };
            let (lowered, promise) = lower(request, variant, model, &solution)?;
            let is_kept = budget.is_none_or(|budget| promise.peak_bytes <= budget.max(best.2.peak_bytes));
            let is_as_fast = solution.replay.duration <= best.0.replay.duration;
            if is_kept && is_as_fast && promise.arena_square() < best.2.arena_square() {
                best = (solution, lowered, promise);
            }
        }
    }
    Ok(best)
}

/// Whether other plans are to be had that are as good, in a fraction of the time.
fn is_quickly_optimal(solution: &Solution, effort: &Effort<'_>) -> bool {
    let time = effort.time.unwrap_or(Duration::MAX);
    let proved = solution
        .certificate
        .as_ref()
        .filter(|proof| proof.status == Status::Optimal);
    proved.is_some_and(|proof| Duration::from_millis(proof.elapsed_ms) * 4 < time)
}

/// What the runtime takes on top of the plan's peak (tables, small results of nodes that were added), as far as the baseline shows it.
fn beyond_the_plan(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_>,
) -> Result<u64, Error> {
    let solution = crate::solve(model, &without_budget(), &effort.starting_now())?;
    let (_, promise) = lower(request, variant, model, &solution)?;
    Ok(promise.peak_bytes.saturating_sub(solution.replay.peak))
}

/// What asks for nothing: the search has nothing to look for.
fn without_budget() -> SolveRequest {
    SolveRequest {
        budget: BudgetSpec::None,
        max_overhead: 0,
        solver: "search".to_owned(),
    }
}

/// The file, and what the simulated runtime makes of it.
fn lower(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    solution: &Solution,
) -> Result<(Lowered, Promise), Error> {
    let refused = || Error::NotForRuntime {
        path: request.input.to_owned(),
    };
    let graph = crate::rewrite(model, solution)?.ok_or_else(refused)?;
    let options = variant.options(request.order);
    let write_as = |options: &LoweringOptions| {
        let lowered = remat_target::lower(onnx(model, request)?, &graph, options)?;
        let promise = promise::promise(model, &graph, &lowered, request.order)?;
        Ok::<_, Error>((lowered, promise))
    };
    // Where the runtime's order is as good without readers, they are left out: they cost time, and blocked layouts are undone for them.
    let mut order = request.order;
    if order == OrderHint::Any {
        let lean = LoweringOptions {
            order: OrderHint::Priority,
            ..options
        };
        let (with, without) = (write_as(&options)?.1, write_as(&lean)?.1);
        if without.peak_bytes <= with.peak_bytes && without.arena_square() <= with.arena_square() {
            order = OrderHint::Priority;
        }
    }
    let write = |reserve: u64| {
        write_as(&LoweringOptions {
            order,
            reserve,
            ..options
        })
    };
    let plain = write(0)?;
    if !(request.arena && options.hide_shapes) {
        return Ok(plain);
    }
    let mut best = plain.clone();
    for reserve in reserves(plain.1.peak_bytes.min(fillable(request, model))) {
        let tried = write(reserve)?;
        if tried.0.report.reserved > 0 && tried.1.arena_square() < best.1.arena_square() {
            best = tried;
        }
    }
    let enough = plain.1.arena_square() / 1_000_000 * LEAST_GAIN_PERMILLE * LEAST_GAIN_PERMILLE;
    Ok(if best.1.arena_square() <= enough { best } else { plain })
}

/// Bytes that are filled in the time that a reserve may take.
fn fillable(request: &DeployRequest<'_>, model: &Model) -> u64 {
    let bandwidth = Device::preset(&request.load.device).map_or(0, |device| device.memory_bytes_per_s / 10);
    let nanoseconds = model.baseline().duration / 1_000 * MOST_FILLING_PERMILLE;
    let bytes = u128::from(bandwidth) * u128::from(nanoseconds) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Reserves that make the arena start with a region of another size, as far as they take no more than a run does anyway.
fn reserves(peak: u64) -> impl Iterator<Item = u64> {
    let just_above = (20..40).map(|power| (1u64 << power) + 4096);
    just_above.take_while(move |&bytes| bytes <= peak)
}
