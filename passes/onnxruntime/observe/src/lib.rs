//! What one file takes in ONNX Runtime, whoever wrote it: what each of its ops takes ([`measured_profile`]), where every buffer of a run lies in one
//! block ([`plan_arena`]), and what a whole process takes, and the form that makes it take least ([`write_process`]), and which settings of a session come close without
//! such a plan ([`try_settings`]).

mod error;
mod fused;
mod plan;
mod process;
mod profile;
mod setting;
mod settings;
mod snippet;

pub use error::ArenaPlanError;
pub use fused::map_to_fused;
pub use plan::{
    ArenaAt, ArenaMeasured, ArenaPlanRequest, ArenaPlanned, CudaPlanRequest, CudaPlanned, InferredSizes,
    arena_library_path, arena_plan_path, has_arena_library, hash as model_hash, order_buffers, plan_arena, plan_cuda,
    write_arena_library,
};
pub use process::{
    Ledgers, MANIFEST, PORTABLE, ProcessLimit, ProcessRequest, ProcessWithin, ProcessWritten, Program, Promise,
    WeightBytes, measured_ledgers, write_process,
};
pub use profile::{ProfileRequest, measured_profile};
pub use setting::{Setting, SettingBytes, SettingOptions, SettingTried, SettingsTried};
pub use settings::{SettingsRequest, no_larger_growth, try_settings};
