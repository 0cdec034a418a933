//! The independent checker: replays a plan step by step and judges it by rules with a code each; [`Code`] lists them.
//!
//! It knows no solver and shares no code with any: of `remat-plan` it uses the tables of [`Problem`](remat_plan::Problem),
//! the steps of [`Plan`](remat_plan::Plan) and the names in [`PlanFile`](remat_plan::PlanFile), and derives everything else
//! itself. It counts in integers only, with checked arithmetic. Time and memory are linear in the sizes of problem and plan.
//!
//! # What a step does
//! - A *run* (compute or recompute) of an op needs every tensor the op reads. It creates each storage whose root the op
//!   defines; where that storage is still resident, the run makes a *transient duplicate* that takes memory during the step only, and all
//!   tensors of the resident storage stay as they are. Creating a storage again undefines the views into its last instance,
//!   and drops a copy that lies in the second memory. Results that are views are defined by running their op while the storage
//!   they look into is resident.
//! - A *free* releases a storage, and with it every tensor that lives there.
//! - A *page-out* takes a storage away, a *page-in* brings it back with all its tensors. What moves when, which copies stay in the
//!   second memory, and what waits for what is [said with the plan](remat_plan#the-second-memory); the checker derives it anew.
//! - External storages are never counted. A tensor in one is there once its op ran, a tensor without producer always.
//!
//! During a run these count: the resident storages, every storage the run creates (duplicates included), the op's workspace.
//! During a page-in: the resident storages and the one that comes back. The peak is the largest such sum. With DMA storages on
//! their way count too, each from or until the moment at which its bytes are taken.
//!
//! # What happens after a violation
//! All violations are collected, and the replay goes on so that one mistake does not bring on others:
//! - a run is carried out whatever its label says, and what it lacks is taken as present: the same loss is reported at its
//!   first reader only, and does not count as memory;
//! - a free, page-out or page-in that the state forbids is left out;
//! - a paging step where the problem allows no paging is carried out at no cost;
//! - a sum that overflows stays at the largest number;
//! - a step that names nothing known is left out.
//!
//! # Certificates
//! [`check_certificate`] judges what a solver claims about its plan, or about there being none, and [`check_against`] holds a claim
//! against a plan that is known from elsewhere. `C` codes are theirs.
//!
//! # Placements
//! [`check_placement`] judges where buffers lie, and [`check_placement_certificate`] what is claimed about it. `P` codes are theirs.
//! [`check_block`] does both for the block of a plan, whose [`intervals`] it finds itself.
//!
//! # Fission
//! Graphs whose ops run in tiles are judged by `remat-fission-check`, which collects its [`Findings`] under the `F` codes.

mod baseline;
mod block;
mod certificate;
mod clock;
mod code;
mod explain;
mod file;
mod inspect;
mod intervals;
mod memory;
mod placement;
mod rejection;
mod replay;
mod text;

pub use block::check_block;
pub use certificate::{check_against, check_certificate, is_covered};
pub use clock::Span;
pub use code::{Code, UnknownCode};
pub use file::{CheckError, check_body_bytes, check_file};
pub use inspect::resident_at;
pub use intervals::{Interval, intervals};
pub use placement::{PlacementFigures, check_placement, check_placement_certificate};
pub use rejection::{Findings, MAX_VIOLATIONS, Rejection, Violation};
pub use replay::{Replay, StepTrace, replay};
