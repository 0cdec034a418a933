//! A model on the bench: imported, profiled, turned into a problem, its baseline replayed.

use std::collections::BTreeMap;
use std::path::Path;

use remat_cost::{Device, ProblemOptions, Profile, SizeFormulas};
use remat_formula::Formula;
use remat_ir::{Graph, StorageClass};
use remat_onnx::OnnxModel;
use remat_onnxruntime_sim::body_bytes;
use remat_plan::{
    Accounting, AntiDependence, BodyPlan, OrderMode, Plan, Problem, Setup, StorageRole, Tiling, baseline,
};
use remat_verify::{Replay, replay};

use crate::input::{read, read_text};
use crate::setup::setup_of;
use crate::{
    BaselineOf, BaselinePeak, BugReport, DeviceCapacity, Error, ExternalBytes, Format, LoadOptions, ReadError,
    SolveError,
};

/// What the problem was made from.
#[derive(Debug)]
enum Source {
    Onnx(Box<OnnxModel>),
    NodeLink(Graph),
    Mlir(Graph),
    Problem,
    Log,
}

/// An opened model.
#[derive(Debug)]
pub struct Model {
    source: Source,
    profile: Option<Profile>,
    problem: Problem,
    baseline_plan: Plan,
    baseline: Replay,
    /// What overheads are shares of.
    untiled_duration: Option<u64>,
    baseline_peak: BaselinePeak,
    /// Whether plans count memory as ONNX Runtime on a CPU takes it.
    is_for_runtime: bool,
    setup: Option<Setup>,
    bodies: Vec<BodyPlan>,
    capacity: Option<DeviceCapacity>,
    measured_sizes: BTreeMap<String, u64>,
}

impl Model {
    /// Reads a model, graph or problem, estimates its costs, and replays it without rematerialization.
    ///
    /// # Errors
    /// [`Error`] of kind `Input`, naming the node, tensor or offset.
    pub fn open(path: &Path, options: &LoadOptions) -> Result<Self, Error> {
        match Format::of(path)? {
            Format::Onnx => Self::from_onnx(OnnxModel::open_for_run(path, &options.import())?, options),
            Format::NodeLink => Self::from_node_link(&read(path)?, options),
            Format::Mlir => {
                let path = path.to_owned();
                Err(ReadError::MlirModule { path }.into())
            }
            Format::Problem => {
                let mut problem = Problem::from_json(&read_text(path)?)?;
                problem.budget = None;
                problem.order = options.order.unwrap_or(problem.order);
                options.apply_second_memory(&mut problem, None)?;
                Ok(Self::finish(Source::Problem, None, problem)?.read_with(options, None))
            }
            Format::Log => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let name = name.split(".log").next().unwrap_or_default();
                let mut problem = remat_dtr::problem_of(&remat_dtr::read_log(&read(path)?)?, name);
                problem.order = options.order.unwrap_or(problem.order);
                problem.max_computes = options.max_computes;
                Ok(Self::finish(Source::Log, None, problem)?.read_with(options, None))
            }
        }
    }

    /// The same for an ONNX model in memory. External weights are not looked at, and the model is written with `remat_onnx` only.
    ///
    /// # Errors
    /// [`Error`] of kind `Input`.
    pub fn from_onnx_bytes(bytes: &[u8], options: &LoadOptions) -> Result<Self, Error> {
        let model = OnnxModel::from_bytes(bytes, None, &options.import()).map_err(ReadError::Onnx)?;
        Self::from_onnx(model, options)
    }

    pub(crate) fn from_onnx(model: OnnxModel, options: &LoadOptions) -> Result<Self, Error> {
        Self::from_onnx_with(model, options, |_, _| ())
    }

    /// The same, where `adjust` changes what counts in the problem of the graph.
    pub(crate) fn from_onnx_with(
        model: OnnxModel,
        options: &LoadOptions,
        adjust: impl FnOnce(&Graph, &mut Problem),
    ) -> Result<Self, Error> {
        let device = options.device()?;
        let is_for_runtime = device.cpu_kernels
            && options.accounting.unwrap_or(Accounting::Runtime) == Accounting::Runtime
            && options.order.unwrap_or(OrderMode::Free) == OrderMode::Free;
        let model = if is_for_runtime {
            model.with_kernels_in_place()
        } else {
            model
        };
        let (mut problem, profile) = problem_of(model.graph(), options, &device)?;
        adjust(model.graph(), &mut problem);
        let mut model = Self::finish(Source::Onnx(Box::new(model)), Some(profile), problem)?;
        model.is_for_runtime = is_for_runtime;
        Ok(model.read_with(options, Some(&device)))
    }

    /// The graph of an MLIR function. Kernels are what MLIR makes of the function: they take no workspace, and a result that nobody reads
    /// is freed at once.
    ///
    /// # Errors
    /// [`Error`] of kind `Input`.
    pub fn from_mlir(graph: Graph, options: &LoadOptions) -> Result<Self, Error> {
        let device = Device {
            cpu_kernels: false,
            ..options.device()?
        };
        let (mut problem, profile) = problem_of(&graph, options, &device)?;
        let outputs: Vec<_> = graph
            .outputs
            .iter()
            .map(|&output| graph.tensors[output].storage)
            .collect();
        for (id, storage) in problem.storages.iter_mut_enumerated() {
            if storage.role == StorageRole::LiveOut && !outputs.contains(&id) {
                storage.role = StorageRole::Transient;
            }
        }
        let model = Self::finish(Source::Mlir(graph), Some(profile), problem)?;
        Ok(model.read_with(options, Some(&device)))
    }

    fn from_node_link(bytes: &[u8], options: &LoadOptions) -> Result<Self, Error> {
        let read = remat_nodelink::read(bytes)?;
        let mut problem = remat_cost::paper_problem(&read.graph, &read.durations)?;
        let pairs = read.anti_dependences.iter();
        problem.anti_dependences = pairs.map(|&[before, after]| AntiDependence { before, after }).collect();
        problem.validate()?;
        problem.order = options.order.unwrap_or(OrderMode::Fixed);
        options.apply_second_memory(&mut problem, None)?;
        problem.max_computes = options.max_computes;
        Ok(Self::finish(Source::NodeLink(read.graph), None, problem)?.read_with(options, None))
    }

    fn finish(source: Source, profile: Option<Profile>, problem: Problem) -> Result<Self, Error> {
        let baseline_plan = baseline(&problem);
        // That no plan meets a deadline is for the solver to say.
        let timeless = Problem {
            deadline: None,
            ..problem.clone()
        };
        match replay(&timeless, &baseline_plan) {
            Ok(baseline) => Ok(Self {
                source,
                profile,
                problem,
                baseline_plan,
                baseline_peak: BaselinePeak {
                    bytes: baseline.peak,
                    of: BaselineOf::FileOrder,
                },
                baseline,
                untiled_duration: None,
                is_for_runtime: false,
                setup: None,
                bodies: Vec::new(),
                measured_sizes: BTreeMap::new(),
                capacity: None,
            }),
            Err(rejection) => {
                let solver = "baseline".to_owned();
                Err(SolveError::Rejected(Box::new(BugReport {
                    problem,
                    plan: Some(baseline_plan),
                    certificates: Vec::new(),
                    solver,
                    rejection,
                }))
                .into())
            }
        }
    }

    /// Notes what the model was read with.
    fn read_with(mut self, options: &LoadOptions, device: Option<&Device>) -> Self {
        self.setup = Some(setup_of(options, device, &self.problem));
        self.capacity = DeviceCapacity::of(device, options.device_memory, self.external_bytes());
        self
    }

    /// Notes sizes that follow from no file and were measured in a run, in bytes by tensor.
    #[must_use]
    pub fn with_measured_sizes(mut self, sizes: BTreeMap<String, u64>) -> Self {
        self.measured_sizes = sizes;
        self
    }

    /// Sizes that follow from no file and were measured in a run, in bytes by tensor.
    #[must_use]
    pub fn measured_sizes(&self) -> &BTreeMap<String, u64> {
        &self.measured_sizes
    }

    /// Notes what the model takes as it is.
    #[must_use]
    pub fn with_baseline_peak(mut self, peak: BaselinePeak) -> Self {
        self.baseline_peak = peak;
        self
    }

    /// Notes that the model is another one with fused chains that run tile by tile: what it takes as it is, and how it was read, are that one's.
    #[must_use]
    pub(crate) fn tiled_from(mut self, whole: &Self, tiling: Tiling) -> Self {
        self.bodies.clone_from(&whole.bodies);
        self.baseline_peak = whole.baseline_peak;
        self.untiled_duration = Some(whole.baseline_duration());
        if let (Some(setup), Some(before)) = (&mut self.setup, &whole.setup) {
            setup.fused_by.clone_from(&before.fused_by);
            setup.order_hint.clone_from(&before.order_hint);
            setup.durations_ns.clone_from(&before.durations_ns);
            setup.workspace_bytes.clone_from(&before.workspace_bytes);
            setup.tiling = Some(tiling);
        }
        self
    }

    /// Notes that the model is another one with subgraphs that have plans: what it takes as it is, and how it was read, are that one's.
    #[must_use]
    pub(crate) fn with_bodies_of(mut self, before: &Self, bodies: Vec<BodyPlan>) -> Self {
        self.baseline_peak = before.baseline_peak;
        self.untiled_duration = Some(before.baseline_duration());
        self.measured_sizes.clone_from(&before.measured_sizes);
        self.bodies = bodies;
        if let (Some(setup), Some(before)) = (&mut self.setup, &before.setup) {
            let (graph, problem) = (setup.graph.clone(), setup.problem.clone());
            *setup = Setup {
                graph,
                problem,
                ..before.clone()
            };
        }
        self
    }

    /// The plans of subgraphs of the model, where it has any.
    #[must_use]
    pub fn bodies(&self) -> &[BodyPlan] {
        &self.bodies
    }

    /// Notes that the model is what a runtime made of `tiled`, whose fused chains run tile by tile. Time beyond that of the model without tiles is what
    /// it is for `tiled`. Convolutions that are `plain` stay in the usual layout, and may round otherwise.
    #[must_use]
    pub fn laid_out_from(mut self, tiled: &Self, plain: Vec<String>) -> Self {
        let by_tiles = tiled.baseline.duration.saturating_sub(tiled.baseline_duration());
        self.bodies.clone_from(&tiled.bodies);
        self.baseline_peak = tiled.baseline_peak;
        self.untiled_duration = Some(self.baseline.duration.saturating_sub(by_tiles));
        if let Some((setup, of_tiles)) = self.setup.as_mut().zip(tiled.setup.as_ref()) {
            // What is laid out names no dimension that is fixed.
            setup.dims.clone_from(&of_tiles.dims);
            setup.fixed_dims.clone_from(&of_tiles.fixed_dims);
            setup.tiling = of_tiles.tiling.as_ref().map(|tiling| Tiling {
                close: tiling.close || !plain.is_empty(),
                plain,
                ..tiling.clone()
            });
        }
        self
    }

    /// The fused chains of the model that run tile by tile, where there are any.
    #[must_use]
    pub fn tiling(&self) -> Option<&Tiling> {
        self.setup.as_ref()?.tiling.as_ref()
    }

    /// Notes that the model is what this runtime made of the input.
    #[must_use]
    pub fn fused_by(mut self, runtime: String) -> Self {
        if let Some(setup) = &mut self.setup {
            setup.fused_by = Some(runtime);
        }
        self
    }

    /// Whether the model is what a runtime made of the input.
    #[must_use]
    pub fn is_fused(&self) -> bool {
        self.setup.as_ref().is_some_and(|setup| setup.fused_by.is_some())
    }

    /// Notes the execution orders that a file of the model is made for, as plans name them.
    #[must_use]
    pub fn ordered_for(mut self, order: &str) -> Self {
        if let Some(setup) = &mut self.setup {
            setup.order_hint = Some(order.to_owned());
        }
        self
    }

    /// What the model was read with; absent where it was not read but made.
    #[must_use]
    pub fn setup(&self) -> Option<&Setup> {
        self.setup.as_ref()
    }

    /// What the memory of its device leaves to a plan; absent where nothing limits it.
    #[must_use]
    pub fn capacity(&self) -> Option<&DeviceCapacity> {
        self.capacity.as_ref()
    }

    /// The same problem with all sizes multiplied by `factor` and divided by `divisor`, at least 1, rounded up: what becomes of a graph whose
    /// sizes are those of a batch of `divisor` with a batch of `factor`. Times stay, since only their ratios count. There is nothing
    /// to rewrite in the result.
    ///
    /// # Errors
    /// [`ReadError::Problem`] if the sizes overflow.
    pub fn scaled(&self, factor: u64, divisor: u64) -> Result<Self, Error> {
        let scale = |bytes: u64| {
            let scaled = (u128::from(bytes) * u128::from(factor)).div_ceil(u128::from(divisor.max(1)));
            // Too large for any sum: `validate` says so.
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let mut problem = self.problem.clone();
        for storage in &mut problem.storages {
            storage.bytes = scale(storage.bytes);
        }
        for op in &mut problem.ops {
            op.workspace = scale(op.workspace);
        }
        problem.validate()?;
        Self::finish(Source::Problem, None, problem)
    }

    /// The sizes of the problem's storages as formulas; absent where the model leaves no dimension open, or was not read at sizes of all of them.
    #[must_use]
    pub fn size_formulas(&self) -> Option<SizeFormulas> {
        SizeFormulas::of(self.graph()?, &self.problem)
    }

    /// The bytes of every tensor of which the size follows from the dimensions that the model leaves open.
    pub fn tensor_formulas(&self) -> impl Iterator<Item = Formula> {
        let graph = self.graph().into_iter();
        graph.flat_map(|graph| graph.tensors.keys().filter_map(|tensor| graph.bytes_formula(tensor)))
    }

    /// What no peak counts; absent where the input is a problem. Constants of unknown size count as nothing.
    #[must_use]
    pub fn external_bytes(&self) -> Option<ExternalBytes> {
        let sum = |wanted: StorageClass| {
            let storages = self.graph()?.storages.iter();
            let bytes = storages
                .filter(|storage| storage.class == wanted)
                .filter_map(|storage| storage.bytes);
            Some(bytes.fold(0u64, u64::saturating_add))
        };
        Some(ExternalBytes {
            inputs: sum(StorageClass::Input)?,
            constants: sum(StorageClass::Constant)?,
        })
    }

    /// The problem, without a budget.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The graph; absent where the input is a problem.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        match &self.source {
            Source::Onnx(model) => Some(model.graph()),
            Source::NodeLink(graph) | Source::Mlir(graph) => Some(graph),
            Source::Problem | Source::Log => None,
        }
    }

    /// The ONNX model, where the input is one.
    #[must_use]
    pub fn onnx(&self) -> Option<&OnnxModel> {
        if let Source::Onnx(model) = &self.source {
            Some(model)
        } else {
            None
        }
    }

    /// The costs of each op; absent where the input states durations itself.
    #[must_use]
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// What the input is.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.source {
            Source::Onnx(_) => Format::Onnx,
            Source::NodeLink(_) => Format::NodeLink,
            Source::Mlir(_) => Format::Mlir,
            Source::Problem => Format::Problem,
            Source::Log => Format::Log,
        }
    }

    /// Every op once, in reference order.
    #[must_use]
    pub fn baseline_plan(&self) -> &Plan {
        &self.baseline_plan
    }

    /// Peak and duration of every op once in reference order, as plans count them.
    #[must_use]
    pub fn baseline(&self) -> &Replay {
        &self.baseline
    }

    /// Duration of running every op once, before fused chains were cut into tiles: what overheads are shares of.
    #[must_use]
    pub fn baseline_duration(&self) -> u64 {
        self.untiled_duration.unwrap_or(self.baseline.duration)
    }

    /// What the model takes as it is: what shares of memory are of. The peak of [`Model::baseline`] until [`Model::with_baseline_peak`]
    /// says something else.
    #[must_use]
    pub fn baseline_peak(&self) -> BaselinePeak {
        self.baseline_peak
    }

    /// Whether plans count memory as ONNX Runtime on a CPU takes it: an ONNX model in any order. Then what the model takes as it is
    /// can be measured or simulated.
    #[must_use]
    pub fn is_for_runtime(&self) -> bool {
        self.is_for_runtime
    }
}

/// The problem of a graph, and what its ops cost.
pub(crate) fn problem_of(graph: &Graph, options: &LoadOptions, device: &Device) -> Result<(Problem, Profile), Error> {
    let mut profile = remat_cost::analytic(graph, device, body_bytes);
    if let Some(file) = &options.profile {
        let applied = profile.apply_file(graph, file)?;
        tracing::info!(matched = applied.matched, "measured durations replace estimates");
    }
    let problem_options = ProblemOptions {
        accounting: options.accounting.unwrap_or(Accounting::Runtime),
        order: options.order.unwrap_or(OrderMode::Free),
        max_computes: options.max_computes,
        alignment: None,
    };
    let mut problem = remat_cost::problem(graph, &profile, &problem_options)?;
    options.apply_second_memory(&mut problem, Some(device))?;
    Ok((problem, profile))
}
