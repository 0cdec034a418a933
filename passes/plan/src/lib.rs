//! The contract between solvers and everything else.
//!
//! A [`Problem`] says what may be scheduled: ops with durations, the storages they read and define, a budget. A [`Plan`] is
//! the only executable answer: an ordered list of [`Step`]s. A [`Certificate`] says what a solver claims about its plan.
//! Solvers see a `Problem` and return a `Plan`; they never see ONNX or MLIR. Importers never see a solver.
//!
//! # Memory of a plan
//! While a step computes an op, these are resident together: every storage that was computed and not freed, every storage
//! the op defines, and the op's workspace. The peak of a plan is the largest such sum over its compute steps, in bytes.
//! Where an op is recomputed while one of its results is still resident, the duplicate it makes of that result takes memory
//! during the step only, and readers keep reading the resident one.
//!
//! # The second memory
//! Where a problem has [`Paging`], a plan may also move transient storages. `PageOut` takes a resident storage out of memory, and
//! `PageIn` brings it back with all its tensors; a storage that is out cannot be read.
//!
//! *Copies.* A storage that comes back, by a page-in or because its op runs again, leaves a copy behind exactly if the next step
//! that takes it out of memory is another `PageOut`. That one then moves nothing: it takes no time and no energy, and the memory is
//! free at once. Otherwise the copy is dropped. The bytes of a copy count in the second memory from the `PageOut` that moves
//! it on; they must fit its capacity then.
//!
//! *The bus.* There is one, for both directions. Steps begin in the order of the plan. A transfer begins when its step does and all
//! transfers before it have ended, and takes [`Transfer::duration`]. In [`PagingMode::Sync`] the next step begins when the transfer
//! has ended, in [`PagingMode::Dma`] at once. A plan has ended when its last run and its last transfer have; its duration
//! must not exceed the deadline.
//!
//! *Waiting.* A run begins when the run before it has ended and all its operands have arrived. If memory would
//! exceed the budget from then on, with what the run takes and all transfers that are under way or wait for the bus, it waits until
//! enough storages that are on their way out have left, if that helps; without budget nothing waits for memory. A `Free` or `PageOut` of
//! a storage that is still on its way in begins when it has arrived. So a plan that keeps the budget with [`PagingMode::Sync`] keeps
//! it with [`PagingMode::Dma`], too.
//!
//! *Memory in time.* A storage on its way out takes its bytes until its transfer has ended, one on its way in from the
//! beginning of its transfer. During a run these count together with what the run takes; a transfer that begins at the very moment at
//! which a run ends still meets the memory of that run. The peak is taken over all runs and over the beginnings of all transfers into
//! memory.
//!
//! *Energy* is the sum over all runs and over all transfers that move something, in picojoules.
//!
//! # Placement
//! [`Buffer`]s that are needed for a while get offsets in a block: a [`Placement`].
//!
//! # The block of a plan
//! A plan may say where everything that counts lies in one [`Block`]: a [`BlockPlacement`]. Time is counted in steps. An *interval of
//! residency* begins at the step that creates a storage or brings it back, and ends before the step that frees it; a graph output ends with
//! the plan. A storage that is paged out takes its bytes until the last run that begins before its transfer has ended, at least until the
//! transfer begins. One that is paged in takes them from that step on, even where its transfer has to wait. A transient duplicate and a
//! workspace take theirs during one step. Views lie where their storages lie, and what has no bytes has no place.
//!
//! The *load* is the largest sum of bytes at one step. It is the peak where nothing moves by DMA, and no block is smaller.

mod block;
mod budget;
mod certificate;
mod deadline;
mod feasibility;
mod file;
mod instance;
mod lower;
mod paging;
mod placement;
mod plan;
mod problem;
mod prune;
mod quantity;
mod setup;
mod structure;
mod tiling;
mod validate;

pub use block::{Block, BlockPlacement, Bound, PlacedInterval, Resident};
pub use budget::BudgetSpec;
pub use certificate::{BoundCovers, Certificate, Evidence, Status, StopReason};
pub use deadline::Deadline;
pub use feasibility::{Bottleneck, Infeasible};
pub use file::{BodyPlan, PLAN_FORMAT, PLAN_FORMAT_1, PlanFile, PlanFileError, StepKind, StepRecord};
pub use instance::{Instance, NodeId, ValueId, gcd};
pub use lower::{Event, LowerError, baseline, lower_events, lower_sequence};
pub use paging::{Objective, Paging, PagingMode, Transfer};
pub use placement::{
    Blocks, Buffer, BufferError, BufferId, Place, Placement, PlacementCertificate, PlacementProof, validate_buffers,
};
pub use plan::{Plan, Step};
pub use problem::{
    Accounting, AntiDependence, OrderMode, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageRole,
};
pub use prune::prune_sequence;
pub use quantity::{QuantityError, QuantityKind, decimal, parse_bytes, parse_duration, parse_share, percent};
pub use remat_ir::{OpId, StorageId, TensorId};
pub use setup::{DeviceRecord, Setup};
pub use structure::Structure;
pub use tiling::{Again, Axis, FusedChain, Mode, Moved, Tiling, Within};
pub use validate::ProblemError;
