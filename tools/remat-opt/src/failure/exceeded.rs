//! Models that take more than they may, of `remat-opt check`.

use std::fmt;

use remat_files::shown;
use schemars::JsonSchema;
use serde::Serialize;

/// Models that take more than they may.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LimitExceeded {
    /// These models, one at least.
    pub(crate) models: Vec<OverLimit>,
}

/// A model that takes more than it may.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct OverLimit {
    /// The model, as the command line names it.
    pub(crate) model: String,
    /// What it takes.
    pub(crate) bytes: u64,
    /// What it may take.
    pub(crate) limit_bytes: u64,
    /// The op at the peak.
    pub(crate) op: String,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [_, _, ..] = self.models[..] {
            write!(f, "{} models exceed their limit: ", self.models.len())?;
        }
        for (place, over) in self.models.iter().enumerate() {
            let OverLimit {
                model,
                bytes,
                limit_bytes,
                op,
            } = over;
            let separator = if place > 0 { "; " } else { "" };
            let (model, op) = (shown(model), shown(op));
            write!(
                f,
                "{separator}`{model}` takes {bytes} bytes and its limit is {limit_bytes}: op `{op}` is at the peak"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for LimitExceeded {}
