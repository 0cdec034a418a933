//! What is asked of a deployment.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use remat::fission::Exactness;
use remat::{BaselinePeak, FissionRequest, LoadOptions, Model, SolveRequest};
use remat_cost::ProfileFile;
use remat_ir::{ElementType, Graph, Op, StorageClass, TensorId};
use remat_onnx::OnnxModel;
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::OptimizationLevel;
use remat_operators::operator;
use remat_plan::{BudgetSpec, PlanFile};

use crate::check::Outputs;
use crate::error::DeployError;
use crate::strategy::{Strategy, is_for_two_passes, is_laid_out, is_optimized, runtime_of};

/// Tiles with the bits of the whole.
static EXACT: FissionRequest = FissionRequest::EXACT;

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
    /// What the model takes as it is: what a budget in per cent is a share of. Without it, what a run takes, or where nothing is measured,
    /// what is simulated.
    pub baseline: Option<BaselinePeak>,
    /// A plan to apply instead.
    pub plan: Option<&'a PlanFile>,
    /// Costs of the model that is planned on, which may be one that the runtime made of the input; else those of `load` apply, as far as
    /// they are about ops of that model.
    pub profile: Option<&'a Profiler<'a>>,
    /// The execution orders for which the peak is predicted.
    pub order: OrderHint,
    /// Whether the runtime's memory arena will be on, as it is by default: then room may be reserved for it, and without a budget a file
    /// is rejected that takes more than the original model.
    pub arena: bool,
    /// Whether the model is written as it came, with nothing changed.
    pub untouched: bool,
    /// Whether fused chains may run tile by tile, and which; absent: none may.
    pub fission: Option<&'a FissionRequest>,
    /// Whether a file is written that takes more than the original model, or than the budget, too.
    pub force: bool,
    /// Whether the model is written as it came where no file takes less; else nothing is written then.
    pub writes_as_it_came: bool,
    /// Whether the memory of the file will be planned: then it is written as it came where its buffers in one block take less than the original
    /// model does in a default session.
    pub plans_memory: bool,
    /// The level at which the runtime optimizes the file when it loads it: bits and memory hold there.
    pub level: OptimizationLevel,
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

impl<'a> DeployRequest<'a> {
    /// A file for a user who sets nothing: made for the runtime's default settings, measured, and written to `output`.
    #[must_use]
    pub fn new(input: &'a Path, output: Option<&'a Path>, load: &'a LoadOptions, solve: &'a SolveRequest) -> Self {
        Self {
            input,
            output,
            load,
            solve,
            baseline: None,
            plan: None,
            profile: None,
            order: OrderHint::Any,
            arena: true,
            untouched: false,
            fission: Some(&EXACT),
            force: false,
            writes_as_it_came: false,
            plans_memory: false,
            level: OptimizationLevel::All,
            measure: true,
            expected: Duration::ZERO,
        }
    }
}

impl DeployRequest<'_> {
    /// Whether a number of bytes, or a plan, is asked for.
    pub(crate) fn is_bounded(&self) -> bool {
        self.plan.is_some() || matches!(self.solve.budget, BudgetSpec::Bytes(_) | BudgetSpec::Share(_))
    }

    /// Whether dimensions that are given are left free.
    pub(crate) fn has_free_dims(&self) -> bool {
        let load = self.load;
        load.dims.keys().any(|name| !load.fixed_dims.contains(name))
    }

    /// Whether a file is written that takes no less than the original model, too.
    pub(crate) fn writes_anyway(&self) -> bool {
        self.force || self.untouched || self.writes_as_it_came || self.is_bounded()
    }

    /// Whether the strategy can give what is asked for of a model that takes `baseline`, in the runtime if one `is_here`.
    pub(crate) fn allows(&self, strategy: Strategy, baseline: BaselinePeak, is_here: bool) -> bool {
        let recipe = strategy.recipe();
        let is_for = |plan: &PlanFile| {
            let by = plan.setup.as_ref()?.fused_by.as_deref();
            Some((
                by.is_some(),
                by.is_some_and(is_laid_out),
                plan.setup.as_ref()?.tiling.is_some(),
            ))
        };
        // What is fused beforehand has other bits than what the level leaves as it is.
        let fuses = matches!(self.level, OptimizationLevel::Extended | OptimizationLevel::All);
        (!self.untouched || !recipe.rewrites)
            && (is_here && fuses || !recipe.fuses)
            && (!recipe.tiles || self.fission.is_some() || self.plan.is_some())
            && (!recipe.lays_out || self.order == OrderHint::Any && self.level == OptimizationLevel::All)
            && (recipe.rewrites || !self.is_bounded() || self.is_kept_by(baseline.bytes))
            && self.plan.and_then(is_for).is_none_or(|(fuses, lays_out, tiles)| {
                // Tiles are laid out where that matters.
                (fuses, tiles) == (recipe.fuses, recipe.tiles) && (tiles || lays_out == recipe.lays_out)
            })
    }

    /// Whether files may be for the layouts of the runtime.
    pub(crate) fn lays_out(&self) -> bool {
        self.level == OptimizationLevel::All
            && self.order == OrderHint::Any
            && self.profile.is_none()
            && self.load.profile.is_none()
    }

    /// Whether tiles are planned on as the runtime lays them out in blocks, if it does: where additions may become part of convolutions, which
    /// further readers of their results would keep from it, and where it is to be chosen which convolutions run in blocks.
    pub(crate) fn lays_out_tiles(&self, tiled: &Model) -> bool {
        let by = self.plan.and_then(fused_by);
        match by {
            Some(by) => is_laid_out(by),
            None => {
                self.lays_out()
                    && tiled
                        .graph()
                        .is_some_and(|graph| graph.ops.iter().any(|op| is_known_convolution(graph, op)))
            }
        }
    }

    /// Whether a budget in bytes is asked for that a model keeps as it came, which takes `baseline` bytes.
    fn is_kept_by(&self, baseline: u64) -> bool {
        let budget = self.solve.budget.bytes(baseline);
        self.plan.is_none() && budget.is_some_and(|budget| budget >= baseline)
    }

    /// Whether what the runtime would take apart may be written for two passes, which round otherwise: in the class `close`, or by the plan.
    pub(crate) fn permits_two_passes(&self) -> bool {
        match self.plan {
            Some(plan) => fused_by(plan).is_some_and(is_for_two_passes),
            None => self.permits_other_bits(),
        }
    }

    /// Whether models in half precision are planned as the runtime leaves them where everything is optimized: at that level, or by the plan.
    pub(crate) fn optimizes_halves(&self) -> bool {
        match self.plan {
            Some(plan) => fused_by(plan).is_some_and(is_optimized),
            None => self.level == OptimizationLevel::All,
        }
    }

    /// Whether tiles are asked for that may round otherwise.
    pub(crate) fn permits_other_bits(&self) -> bool {
        let asked = self.fission.filter(|_| self.plan.is_none());
        asked.is_some_and(|fission| fission.exactness == Exactness::Close)
    }

    /// What must hold of the outputs of the files of a model. With fixed dimensions the runtime itself may round otherwise than with open ones, which is
    /// right where tiles may.
    pub(crate) fn outputs(&self, model: &Model) -> Outputs {
        match self.permits_other_bits() && !self.load.fixed_dims.is_empty() {
            true => close(model),
            false => outputs(model),
        }
    }

    /// With up to how many threads tiles that keep bits were chosen to do so.
    pub(crate) fn exact_threads(&self) -> usize {
        match self.fission.unwrap_or(&EXACT).exactness {
            Exactness::Exact { threads, .. } => threads as usize,
            Exactness::WholeSums | Exactness::Close => FissionRequest::EXACT_THREADS as usize,
        }
    }

    /// The error of an input that does not run in ONNX Runtime.
    pub(crate) fn refused(&self) -> DeployError {
        DeployError::NotForRuntime {
            path: self.input.to_owned(),
        }
    }

    /// The ONNX model of a model that was made of the input.
    pub(crate) fn onnx<'m>(&self, model: &'m Model) -> Result<&'m OnnxModel, DeployError> {
        model.onnx().ok_or_else(|| self.refused())
    }
}

/// The runtime that made of the input what a plan is about.
fn fused_by(plan: &PlanFile) -> Option<&str> {
    plan.setup.as_ref()?.fused_by.as_deref()
}

/// What must hold of the outputs of the files of a model.
pub(crate) fn outputs(model: &Model) -> Outputs {
    let has_split_sums = model.tiling().is_some_and(|tiling| tiling.close);
    if has_split_sums || runtime_of(model).is_some_and(is_for_two_passes) {
        close(model)
    } else {
        Outputs::Identical
    }
}

fn close(model: &Model) -> Outputs {
    Outputs::Close {
        half: model.graph().is_some_and(has_half),
    }
}

/// Whether a tensor has elements of 16 bits that are floating-point numbers.
pub(crate) fn has_half(graph: &Graph) -> bool {
    let mut elements = graph.tensors.iter().filter_map(|tensor| tensor.ty.element());
    elements.any(|element| matches!(element, ElementType::Float16 | ElementType::Bfloat16))
}

/// Whether an op is a convolution of constant weights.
fn is_known_convolution(graph: &Graph, op: &Op) -> bool {
    let is_constant = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].class == StorageClass::Constant;
    let weights = op.inputs.get(1).copied().flatten();
    operator(&op.domain, &op.op_type).blocked.is_convolution() && weights.is_some_and(is_constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_sizes_are_fixed_every_file_may_round_otherwise_if_tiles_may() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test/models/features/dynamic_batch.onnx");
        let solve = SolveRequest {
            budget: BudgetSpec::Auto,
            max_overhead: None,
            solver: "auto".to_owned(),
        };
        let close = FissionRequest {
            exactness: Exactness::Close,
            ..FissionRequest::EXACT
        };
        let outputs = |fission: Option<&FissionRequest>, is_fixed: bool| {
            let mut load = LoadOptions::default();
            load.dims.insert("batch".to_owned(), 3);
            load.fixed_dims.extend(is_fixed.then(|| "batch".to_owned()));
            let request = DeployRequest {
                fission,
                ..DeployRequest::new(&path, None, &load, &solve)
            };
            request.outputs(&Model::open(&path, &load).expect("it is a model"))
        };
        assert_eq!(outputs(Some(&close), true), Outputs::Close { half: false });
        for (fission, is_fixed) in [
            (Some(&close), false),
            (Some(&FissionRequest::EXACT), true),
            (None, true),
        ] {
            assert_eq!(outputs(fission, is_fixed), Outputs::Identical);
        }
    }
}
