//! What a plan takes at other sizes of the dimensions that its model leaves open.
//!
//! The problem of other sizes is the one of the plan with other bytes: every storage, and what every kernel takes, for that shape. The replay of the
//! plan says what the peak is then. In a range of sizes, intervals bound every dimension of every tensor, so a replay with these sizes bounds the
//! peak: it grows with each size.

use remat_cost::Device;
use remat_formula::{Bound, PeakBound, Proof, Ranges, Shape, Within, parts};
use remat_ir::{Graph, NoFormula, Op, TensorId};
use remat_plan::{Plan, Problem};
use remat_verify::replay;
use thiserror::Error;

use crate::model::problem_of;
use crate::{LoadOptions, Model};

/// Most parts of a range, and most steps that are replayed for all of them.
const MOST_PARTS: usize = 64;
const MOST_REPLAYED: usize = 1 << 20;
/// Least and most shapes that a budget is held against which no bound keeps.
const JUDGED: (usize, usize) = (64, 1024);

/// A plan at the shapes of ranges.
#[derive(Debug)]
pub struct PlanAtShapes<'a> {
    graph: &'a Graph,
    problem: &'a Problem,
    plan: &'a Plan,
    options: LoadOptions,
    device: Device,
    /// The problem at the sizes that the model was read with, as the cost model has it.
    given: Problem,
    /// Of every dimension that the model leaves open.
    ranges: Ranges,
}

/// Why nothing is known of other shapes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NoShapes {
    /// A size does not follow from the open dimensions.
    #[error(transparent)]
    Size(#[from] NoFormula),
    /// The model, read so, leaves no such dimension open.
    #[error("the model leaves no dimension `{0}` open")]
    Dim(String),
    /// Sizes are only known within other bounds.
    #[error("the model says that `{name}` is {least} to {most}")]
    Beyond {
        /// The dimension.
        name: String,
        /// The smallest size for which formulas are right.
        least: u64,
        /// The largest one.
        most: u64,
    },
    /// Where storages move, the peak depends on how long that takes.
    #[error("with a second memory, the peak depends on the time that transfers take")]
    Paged,
    /// What a kernel takes was measured, or stated, at one size.
    #[error("what op `{0}` takes while it runs is known at one size only")]
    Workspace(String),
    /// The plan, or the problem, is none at other sizes.
    #[error("at other sizes the plan is refused: {0}")]
    Refused(String),
}

/// A budget does not hold in all shapes that it was held against.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the budget of {} bytes holds in {} of {} shapes: with {} it takes {} bytes", .0.budget_bytes, .0.holds, .0.judged, shape_text(&.0.highest_shape), .0.highest_bytes)]
pub struct ShapesMissed(pub Within);

/// A shape as options name it: `batch=4,sequence=128`.
fn shape_text(shape: &Shape) -> String {
    Ranges::fixed(shape).to_string()
}

/// The peak of a part of the ranges.
struct Peak {
    bytes: Result<u64, NoShapes>,
    is_reached: bool,
}

impl Bound for Peak {
    fn most(&self) -> u64 {
        *self.bytes.as_ref().unwrap_or(&u64::MAX)
    }

    fn is_reached(&self) -> bool {
        // Of what is not known, smaller parts say nothing either.
        self.is_reached || self.bytes.is_err()
    }
}

impl Model {
    /// A plan of the model at the shapes of `ranges`; open dimensions that these do not name keep the size that the model was read with. `options`
    /// are those that it was read with.
    ///
    /// What a kernel takes besides operands and results follows from the cost model.
    ///
    /// # Errors
    /// [`NoShapes`] if nothing is known of other shapes.
    pub fn at_shapes<'a>(
        &'a self,
        plan: &'a Plan,
        ranges: &Ranges,
        options: &LoadOptions,
    ) -> Result<PlanAtShapes<'a>, NoShapes> {
        let graph = self.graph().ok_or(NoFormula::Graph)?;
        let formulas = graph.formulas.as_ref().ok_or(NoFormula::Graph)?;
        if self.problem().paging.is_some() {
            return Err(NoShapes::Paged);
        }
        let dims = formulas.variables.dims();
        if let Some(name) = ranges.names().find(|name| dims.iter().all(|dim| dim.name != *name)) {
            return Err(NoShapes::Dim(name.to_owned()));
        }
        for dim in dims {
            let is_within = |(least, most)| dim.least <= least && most <= dim.most;
            if !ranges.ends(&dim.name).is_none_or(is_within) {
                let (name, least, most) = (dim.name.clone(), dim.least, dim.most);
                return Err(NoShapes::Beyond { name, least, most });
            }
        }
        let sizes = dims
            .iter()
            .map(|dim| dim.name.clone())
            .zip(formulas.given.iter().copied());
        let options = LoadOptions {
            profile: None,
            ..options.clone()
        };
        let device = options.device().map_err(refused)?;
        let (given, _) = problem_of(graph, &options, &device).map_err(refused)?;
        let mut ops = graph.ops.iter().zip(self.problem().ops.iter().zip(&given.ops));
        // Subgraphs have one size, with plans of their own, too.
        let is_stated =
            |op: &Op| op.bodies.is_empty() && op.reads().chain(op.results()).any(|tensor| is_open(graph, tensor));
        if let Some((op, _)) = ops.find(|(op, (ours, given))| ours.workspace != given.workspace && is_stated(op)) {
            return Err(NoShapes::Workspace(op.name.clone()));
        }
        Ok(PlanAtShapes {
            given,
            ranges: ranges.clone().or(&Ranges::fixed(&sizes.collect())),
            graph,
            problem: self.problem(),
            plan,
            options,
            device,
        })
    }
}

impl PlanAtShapes<'_> {
    /// What runs of all shapes take at most.
    ///
    /// # Errors
    /// [`NoShapes`] if a size does not follow from the open dimensions.
    pub fn bound(&self) -> Result<PeakBound, NoShapes> {
        let ends = self.dims().map(|name| self.ranges.ends(name).unwrap_or((1, 1)));
        let used = (0..self.dims().count().min(64)).fold(0u64, |bits, dim| bits | 1 << dim);
        let most = self.replays().clamp(1, MOST_PARTS);
        let parts = parts(ends.collect(), used, most, |ranges| self.at_most(ranges));
        let mut bytes = 0;
        for part in &parts {
            bytes = bytes.max(part.known.bytes.clone()?);
        }
        Ok(PeakBound {
            bytes,
            proof: Proof::of(&parts),
        })
    }

    /// The peak in a shape, in bytes.
    ///
    /// # Errors
    /// [`NoShapes`] if a size does not follow from the open dimensions.
    pub fn peak(&self, shape: &Shape) -> Result<u64, NoShapes> {
        let given = self.ranges.largest();
        let size = |name: &str| shape.get(name).or_else(|| given.get(name)).copied().unwrap_or(1);
        let dims: Vec<u64> = self.dims().map(size).collect();
        self.replayed(&self.graph.at(&dims)?)
    }

    /// In which shapes a budget holds; `weights` are frequent ones and how often they are seen.
    ///
    /// # Errors
    /// [`NoShapes`] if a size does not follow from the open dimensions.
    pub fn within(&self, budget: u64, weights: &[(Shape, u64)]) -> Result<Within, NoShapes> {
        let most = self.replays().clamp(JUDGED.0, JUDGED.1);
        let shapes = (&self.ranges, weights, most);
        Within::judge(budget, shapes, |shape| self.peak(shape))
    }

    /// How many replays of the plan come to the most ops.
    fn replays(&self) -> usize {
        MOST_REPLAYED / self.plan.steps.len().max(1)
    }

    /// The open dimensions, in the order of their formulas.
    fn dims(&self) -> impl Iterator<Item = &str> {
        let formulas = self.graph.formulas.iter();
        formulas.flat_map(|formulas| formulas.variables.dims().iter().map(|dim| dim.name.as_str()))
    }

    /// The bound of a part of the ranges.
    fn at_most(&self, ranges: &[(u64, u64)]) -> Peak {
        let found = || -> Result<(u64, bool), NoShapes> {
            let largest: Vec<u64> = ranges.iter().map(|&(_, most)| most).collect();
            let graph = self.graph.at_most(ranges)?;
            let is_reached = self.graph.at(&largest).as_ref() == Ok(&graph);
            Ok((self.replayed(&graph)?, is_reached))
        };
        match found() {
            Ok((bytes, is_reached)) => Peak {
                bytes: Ok(bytes),
                is_reached,
            },
            Err(error) => Peak {
                bytes: Err(error),
                is_reached: false,
            },
        }
    }

    /// The peak of the plan with the sizes of a graph, which is that of the plan with other sizes.
    fn replayed(&self, graph: &Graph) -> Result<u64, NoShapes> {
        let (other, _) = problem_of(graph, &self.options, &self.device).map_err(refused)?;
        let mut problem = Problem {
            budget: None,
            deadline: None,
            ..self.problem.clone()
        };
        for (storage, other) in problem.storages.iter_mut().zip(&other.storages) {
            storage.bytes = other.bytes;
        }
        for (op, (other, given)) in problem.ops.iter_mut().zip(other.ops.iter().zip(&self.given.ops)) {
            if other.workspace != given.workspace {
                op.workspace = other.workspace;
            }
        }
        problem.validate().map_err(refused)?;
        Ok(replay(&problem, self.plan).map_err(refused)?.peak)
    }
}

/// The first line of an error: a rejection has one for each violation.
fn refused(error: impl std::fmt::Display) -> NoShapes {
    let text = error.to_string();
    NoShapes::Refused(text.lines().next().unwrap_or_default().to_owned())
}

/// Whether a tensor may have other sizes.
fn is_open(graph: &Graph, tensor: TensorId) -> bool {
    graph.tensors[tensor].ty.has_free_dims()
}
