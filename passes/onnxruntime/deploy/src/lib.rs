//! From a model and a budget to a file that is known to run in ONNX Runtime as predicted: [`deploy`].
//!
//! A deployment is a state machine (`deploy`). Each box is a state, and beside it stands the file that does its work:
//!
//! ```text
//!               next lowering strategy (strategy)
//!                        |
//!                        v       cannot be fused
//!        +-----------> Open ---------------------+
//!        |            (open)                     |
//!        |               | model                 |
//!        |               v                       |
//!        |    +-------> Plan                     |
//!        |    |       (attempt)                  |
//!        |    |          | time, calibration     |
//!        |    |          | margin                |
//!        |    |          v                       |
//!        |    |        Search <--+ prediction    |
//!        |    |   (round, file,  | exceeds the   |
//!        |    |    simulate) ----+ budget        |
//!        |    |          | plan, file, predicted |
//!        |    |          v peak                  |
//!        |    +------- Verify ------------------>|
//!        |  measured  (measure)  other bits,     |
//!        |  peak above   |       higher peak     |
//!        |  prediction   | best file             |
//!        |               v                       v
//!        |           Complete ------------->  Reject
//!        |           (measure)  more with  (rejection)
//!        |               |      the arena        |
//!        |               v                       |
//!        |             Done: the output is       |
//!        |             written                   |
//!        +---------------------------------------+
//! ```
//!
//! What the runtime makes of a file is first simulated ([`Prediction`]), then measured ([`Check`]). Without a runtime at hand nothing is fused and
//! nothing measured: Verify leads to Done.
//!
//! With the arena on and no budget in bytes, a file that takes more than the model as it came is rejected too: by what was measured, or where
//! there is no time or no runtime to measure it, by what is predicted of both. A budget is about the peak with the arena off; under one,
//! files that take no more with the arena are preferred, and none is rejected for it.
//!
//! A budget in per cent is a share of what the runtime takes for the model as it came (`baseline`). Where no plan for the model of a strategy
//! keeps a budget, or its best file does not, the next strategy is tried; of files that exceed it, the closest is the result.
//!
//! Of models with stretches tile by tile (`fission`) several are measured: from Complete another one leads to Plan, as long as it is estimated to take
//! less and there is time, and the file of the lowest measured peak within the limit of time is the result. Where additions follow convolutions of
//! constant weights, they are planned as the runtime lays them out, as in the strategy for layouts.
//!
//! All of it shares one limit (`clock`). A first plan is measured early, so that there is a file to write whenever the time is over. From
//! then on an error in Plan or Search leads to Complete, with the best file so far.

mod arena_off;
mod arena_plan;
mod attempt;
mod baseline;
mod bodies;
mod carry;
mod clock;
mod deploy;
mod error;
mod file;
mod fission;
mod given;
mod lasting;
mod layout;
mod measure;
mod offer;
mod open;
mod padding;
mod peaks;
mod profile;
mod request;
mod round;
mod setting;
mod settings;
mod simulate;
mod sizes;
mod snippet;
mod strategy;
mod sums;

pub use arena_off::ArenaOff;
pub use arena_plan::{
    ArenaCase, ArenaCaseReport, ArenaPlanRequest, ArenaPlanned, arena_library_path, arena_plan_path, plan_arena,
};
pub use baseline::{with_baseline, with_simulated_baseline};
pub use bodies::{PlannedBodies, with_planned_bodies};
pub use clock::LeftOut;
pub use deploy::deploy;
pub use error::{ArenaPlanError, DeployError, Rejected, Rejection};
pub use given::{open_for_plan, order_for_plan};
pub use measure::{Check, Outputs};
pub use offer::offer;
pub use open::padding;
pub use padding::Padding;
pub use peaks::{Basis, HigherPeak, Measured, Peak};
pub use profile::{ProfileRequest, measured_profile};
pub use remat_onnxruntime_lower::{OrderHint, Shapes};
pub use request::{DeployRequest, Deployment, Missed, Offer, Profiler};
pub use setting::{Setting, SettingBytes, SettingOptions, SettingTried, SettingsTried};
pub use settings::{SettingsRequest, try_settings};
pub use simulate::Prediction;
pub use sizes::open_model;
pub use strategy::Strategy;
