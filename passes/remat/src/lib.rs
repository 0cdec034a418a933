//! The pipeline: from a model and a budget to a rewritten model.
//!
//! ```text
//! model.onnx ─┐
//! graph.json ─┼─> Model ── solve ──> Solution ── rewrite ──> Graph ── save ──> model.remat.onnx
//! problem.json┘   (graph, profile,   (checked plan,                            plan.json
//!                  problem, baseline)  certificate)
//! ```
//!
//! [`Model::open`] reads and profiles, [`solve`] finds a plan and has the checker replay it, [`rewrite`] applies it, and [`save`]
//! writes it.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = remat::Model::open("model.onnx".as_ref(), &remat::LoadOptions::default())?;
//! let request = remat::SolveRequest { budget: "80%".parse()?, max_overhead: None, solver: "auto".into() };
//! let solution = remat::solve(&model, &request, &remat::solver::SolveControl::new())?;
//! println!("{} -> {} bytes", model.baseline().peak, solution.replay.peak);
//! remat::save(&model, &solution, &remat::Target::Onnx, "small.onnx".as_ref())?;
//! # Ok(())
//! # }
//! ```
//!
//! [`sweep`] does the middle part for many budgets at once: the front of memory against time. [`compare`] does it for many solvers,
//! and [`max_batch`] for many sizes of the model.
//!
//! [`solve_for`] takes a [`Goal`] besides: energy instead of time, and a deadline. A [`SecondMemory`] is part of how a model is opened.
//!
//! [`place_buffers`] gives buffers that are needed for a while their offsets in a block. [`Solution::place`] does so for the storages of a
//! plan, and [`solve_in_block`] finds plans whose block keeps the budget.
//!
//! Every plan and every placement that leaves this crate has passed `remat-verify`.

mod auto;
mod baseline;
mod batch;
mod bodies;
mod capacity;
mod check;
mod claims;
mod compare;
mod error;
mod finding;
mod goal;
mod input;
mod members;
mod model;
mod options;
mod parts;
mod placement;
mod refusal;
mod registry;
mod save;
mod schedule;
mod setup;
mod shapes;
mod solution;
mod sweep;
mod tiles;
mod turns;
mod watch;

pub use auto::Auto;
pub use baseline::{BaselineOf, BaselinePeak};
pub use batch::{BatchFinding, BatchRequest, BatchTrial, MaxBatch, NoBatch, OtherForm, max_batch};
pub use bodies::BodyCost;
pub use capacity::{DeviceCapacity, DeviceMemory, ExternalBytes};
pub use check::{PlanError, Setting, check_plan};
pub use compare::{
    COMPARISON_FORMAT, CompareError, CompareRequest, ComparedRun, ComparedSolver, Comparison, ComparisonFile,
    RunRecord, compare, compare_in_bodies,
};
pub use error::{Error, ErrorKind};
pub use finding::{Finding, FindingKind, NoPlans};
pub use goal::{Goal, SecondMemory};
pub use input::{ForeignFormat, Format, ReadError, extension, read, read_text};
pub use members::{IndependentBatch, MembersError};
pub use model::Model;
pub use options::{LoadOptions, SetupError};
pub use placement::{Placed, PlacementError, place_buffers};
pub use refusal::{explained, solve_or_explain};
pub use registry::{default_solver, solver_named, solvers};
pub use save::{Output, SaveError, Target, rewrite, save};
pub use schedule::check_schedule;
pub use setup::contradiction;
pub use shapes::{NoShapes, PlanAtShapes, ShapesMissed};
pub use solution::{
    BugReport, LowestPeak, Overhead, PlacedPlan, Refusal, Solution, SolveError, SolveRequest, solve, solve_for,
};
pub use sweep::{
    BodyPlanner, BodySweep, Effort, FRONT_FORMAT, FormPoint, Front, FrontFile, FrontFileError, FrontPoint, PointRecord,
    SweepError, SweepRequest, TiledSweep, sweep, sweep_in_bodies, sweep_in_tiles,
};
pub use tiles::{
    FissionError, FissionRequest, TileChoice, TiledModel, TilingOutlook, tile, tile_to_measure, tiling_outlook,
};
pub use turns::solve_in_block;

pub use remat_checkmate as checkmate;
pub use remat_classic as classic;
pub use remat_cost as profile;
pub use remat_dtr as dtr;
pub use remat_fission as fission;
pub use remat_formula as formula;
pub use remat_ir as ir;
pub use remat_moccasin as moccasin;
pub use remat_onnx as onnx;
pub use remat_onnx_mlir as onnx_mlir;
pub use remat_ortools as ortools;
pub use remat_place as place;
pub use remat_plan as plan;
pub use remat_poet as poet;
pub use remat_solve as solver;
pub use remat_verify as verify;
