//! From a model and a budget to a file that is known to run in ONNX Runtime as predicted: [`deploy`].
//!
//! A deployment is one loop over candidates, which are data:
//!
//! ```text
//!   Candidate { opened: the model of a strategy, plan, margin, lowering: { branch, static shapes, anchors, reserve } }
//!
//!   models --> candidate --> plan --> file --> predicted --> measured --> kept --> the best of them is completed, and written
//!      ^          ^       (search)  (file)   (simulate)    (measure)    (kept)            |
//!      |          |                                           |                           |
//!      |          +---- the same plan with less in the file --+---------------------------+
//!      |          |     (a table: relax)                                                  |
//!      |          +---- another plan: a margin, or more time (kept)                       |
//!      +--------------- other tiles, or the next strategy (models) -----------------------+
//! ```
//!
//! What the runtime makes of a file is first simulated ([`Prediction`]), then measured ([`Check`]). Without a runtime at hand nothing is fused and
//! nothing measured: the first file of which nothing bad is predicted is the result.
//!
//! What must hold of every file that is written stands in one place (`KnownFile::first_broken`): its bits are those of the original model, it
//! takes no more memory than that in any setting, and it keeps the budget. With the arena on and no budget in bytes that holds by what was measured, or where
//! there is no time or no runtime to measure it, by what is predicted of both. A budget is about the peak with the arena off; under one,
//! files that take no more with the arena are preferred, and none is rejected for it.
//!
//! Which file is the best stands in one place, too (`Rank`): closer to the budget, no more than the original model with the arena, within the limit of
//! time, then the least time under a budget, else the lowest peak. A budget in per cent is a share of what the runtime takes for the original model
//! (`original`). Where no plan for the model of a strategy keeps a budget, or its best file does not, the next strategy is tried; of files that
//! exceed it, the closest is the result.
//!
//! Of models with fused chains tile by tile (`tiles`) several are measured, as long as another one is estimated to take less and there is time. Where
//! additions follow convolutions of constant weights, they are planned as the runtime lays them out, as in the strategy for layouts.
//!
//! All of it shares one limit (`clock`, where all shares of it stand). A first plan is measured early, so that there is a file to write whenever the
//! time is over. From then on an error is no reason to end without it.

mod arena_off;
mod candidate;
mod check;
mod clock;
mod context;
mod deploy;
mod deployment;
mod error;
mod file;
mod kept;
mod layout;
mod measure;
mod models;
mod offer;
mod open;
mod original;
mod peaks;
mod plain;
mod relax;
mod request;
mod search;
mod strategy;
mod tiles;
mod transfers;

pub use arena_off::ArenaOff;
pub use check::{Check, Outputs};
pub use clock::LeftOut;
pub use deploy::deploy;
pub use deployment::{Deployment, LowerLevelResult};
pub use error::{DeployError, Rejected, Rejection};
pub use layout::Padding;
pub use measure::default_growth;
pub use offer::offer;
pub use open::{open_for_plan, order_for_plan, padding};
pub use original::{open_model, with_baseline};
pub use peaks::{Basis, BeforeAfter, Growth, HigherPeak, Measured, Missed, Peak};
pub use remat_onnxruntime_lower::{OrderHint, Shapes};
pub use remat_onnxruntime_observe::{
    ArenaAt, ArenaMeasured, ArenaPlanError, ArenaPlanRequest, ArenaPlanned, CudaPlanRequest, CudaPlanned,
    InferredSizes, Ledgers, MANIFEST, PORTABLE, ProcessLimit, ProcessRequest, ProcessWithin, ProcessWritten,
    ProfileRequest, Program, Promise, Setting, SettingBytes, SettingOptions, SettingTried, SettingsRequest,
    SettingsTried, WeightBytes, arena_library_path, arena_plan_path, has_arena_library, measured_ledgers,
    measured_profile, plan_arena, plan_cuda, try_settings, write_arena_library, write_process,
};
pub use remat_onnxruntime_predict::{
    PlannedBodies, Prediction, simulated, with_planned_bodies, with_simulated_baseline,
};
pub use request::{DeployRequest, Profiler};
pub use strategy::Strategy;
pub use transfers::with_pages_of_the_runtime;
