//! Dimensions that a caller gives: which of them stay free in what is written, and which are fixed.

use std::collections::BTreeMap;

use remat::Model;
use schemars::JsonSchema;
use serde::Serialize;

/// Dimensions that the model leaves open and the command line gives.
#[derive(Serialize, JsonSchema)]
pub(super) struct DimsRecord {
    /// Those that stay free, with the sizes that figures are of: what is written takes every other size, too, and is right for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) free_dims: BTreeMap<String, u64>,
    /// Those that are fixed: the inputs of what is written declare them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fixed_dims: BTreeMap<String, u64>,
}

impl DimsRecord {
    pub(super) fn of(model: &Model) -> Self {
        let setup = model.setup();
        let dims = setup.map(|setup| setup.dims.clone()).unwrap_or_default();
        let is_fixed = |name: &String| setup.is_some_and(|setup| setup.fixed_dims.contains(name));
        let (fixed_dims, free_dims) = dims.into_iter().partition(|(name, _)| is_fixed(name));
        Self { free_dims, fixed_dims }
    }
}
