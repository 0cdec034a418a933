//! Dimensions that a caller gives: which of them stay free in what is written, which are fixed, and what was run at other sizes.

use std::collections::BTreeMap;

use remat::Model;
use remat_files::shown;
use remat_onnxruntime_deploy::Strategy;
use remat_onnxruntime_run::dims_text;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::Report;
use super::measured::OutputsCompared;
use super::summary;
use crate::lines::Entries;

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

/// What is said of them at length.
pub(super) fn add(report: &Report, entries: &mut Entries) {
    let DimsRecord { free_dims, fixed_dims } = &report.dims;
    if !free_dims.is_empty() {
        let names: Vec<&str> = free_dims.keys().map(String::as_str).collect();
        entries.add_all(
            "dims",
            [
                format!(
                    "{} free: figures are those of this size, {}",
                    dims_text(free_dims),
                    others(report)
                ),
                format!(
                    "fused chains are not cut along what is free: `--fix-dim {}` allows it, for this size alone",
                    shown(names.join(","))
                ),
            ],
        );
    }
    if !fixed_dims.is_empty() {
        let dims = dims_text(fixed_dims);
        entries.add(
            "dims",
            format!("{dims} fixed: the inputs declare it, and no other size is taken; `--dim {dims}` keeps it free"),
        );
    }
}

/// What is known of other sizes.
fn others(report: &Report) -> String {
    let runtime = report.in_runtime.as_ref();
    if runtime.is_some_and(|runtime| runtime.strategy == Strategy::Untouched) {
        return "and the original stays as it is".to_owned();
    }
    let measured = runtime.and_then(|runtime| runtime.measured.as_ref());
    let Some(ran) = measured.and_then(|measured| measured.sizes.as_ref()) else {
        return "others were not run".to_owned();
    };
    let alike = match report.outputs {
        OutputsCompared::BitIdentical => "are bit-identical",
        OutputsCompared::RoundingMayDiffer | OutputsCompared::NotCompared => "have their shapes",
    };
    match summary::others(ran) {
        Some(sizes) => format!("outputs {alike} with {sizes}, too"),
        None => "and the original runs at none of the others that were tried".to_owned(),
    }
}
