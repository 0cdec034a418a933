//! Dimensions that a caller gives: which of them stay free in what is written, which are fixed, and what was run at other sizes.

use std::collections::BTreeMap;

use remat::Model;
use remat_files::shown;
use remat_onnxruntime_deploy::{Deployment, Outputs, Strategy};
use remat_onnxruntime_run::dims_text;
use schemars::JsonSchema;
use serde::Serialize;

/// Dimensions that the model leaves open and the command line gives.
#[derive(Serialize, JsonSchema)]
pub(super) struct DimsRecord {
    /// Those that stay free, with the sizes that figures are of: what is written takes every other size, too, and is right for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    free_dims: BTreeMap<String, u64>,
    /// Those that are fixed: the inputs of what is written declare them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fixed_dims: BTreeMap<String, u64>,
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

/// The lines about them; `found` is what was made for ONNX Runtime, where something was.
pub(super) fn lines(model: &Model, found: Option<&Deployment>) -> Vec<String> {
    let DimsRecord { free_dims, fixed_dims } = DimsRecord::of(model);
    let mut lines = Vec::new();
    if !free_dims.is_empty() {
        lines.push(format!(
            "dims      {} free: figures are those of this size, {}",
            dims_text(&free_dims),
            others(found)
        ));
        let names: Vec<&str> = free_dims.keys().map(String::as_str).collect();
        lines.push(format!(
            "          stretches are not cut along what is free: `--fix-dim {}` allows it, for this size alone",
            shown(names.join(","))
        ));
    }
    if !fixed_dims.is_empty() {
        let dims = dims_text(&fixed_dims);
        lines.push(format!(
            "dims      {dims} fixed: the inputs declare it, and no other size is taken; `--dim {dims}` keeps it free",
        ));
    }
    lines
}

/// What is known of other sizes.
fn others(found: Option<&Deployment>) -> String {
    if found.is_some_and(|found| found.strategy == Strategy::Untouched) {
        return "and the model stays as it came".to_owned();
    }
    let check = found.and_then(|found| found.check.as_ref());
    let Some((check, ran)) = check.and_then(|check| Some((check, check.sizes.as_ref()?))) else {
        return "others were not run".to_owned();
    };
    if ran.compared.is_empty() {
        return "and the model as it came runs at none of the others that were tried".to_owned();
    }
    let sizes: Vec<String> = ran.compared.iter().map(|one| dims_text(&one.dims)).collect();
    let alike = match check.outputs {
        Outputs::Identical => "are bit-identical",
        Outputs::MayRoundOtherwise => "have their shapes",
    };
    format!("outputs {alike} with {}, too", sizes.join(" and with "))
}
