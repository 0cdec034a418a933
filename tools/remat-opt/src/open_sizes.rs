//! The dimensions that a model leaves open, and memory as a formula of them.

use remat::plan::StorageId;
use remat::profile::SizeFormulas;
use remat_files::shown;
use schemars::JsonSchema;
use serde::Serialize;

use crate::units;

/// Sizes of a model for other sizes of its open dimensions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OpenSizes {
    /// The dimensions, in the order of the inputs that have them.
    dims: Vec<OpenDim>,
    /// Bytes of what is resident at the peak, as a formula: sums and products of the dimensions, `floor(../..)`, `max(.., ..)` and `min(.., ..)`.
    /// With other sizes the peak may lie at another step.
    peak_formula: String,
    /// That at the sizes given.
    peak_formula_bytes: u64,
    /// Bytes at the peak beyond, at the sizes given: of the kernel, of what the data decides, and of what is rounded up.
    peak_other_bytes: u64,
    /// What names in formulas stand for that are none of dimensions: `v7 = max(.., ..)`.
    definitions: Vec<String>,
}

/// A dimension that the model leaves open.
#[derive(Serialize, JsonSchema)]
struct OpenDim {
    /// Its name; `INPUT[AXIS]` where the model gives none.
    name: String,
    /// The size that was given.
    size: u64,
}

impl OpenSizes {
    /// Of what is resident at the peak, which comes to so many bytes.
    pub(crate) fn new(sizes: &SizeFormulas, resident: &[(StorageId, u64)], peak: u64) -> Self {
        let storages = || resident.iter().map(|&(storage, _)| storage);
        let load = sizes.load(storages(), peak);
        let names = sizes.variables.names();
        let formulas = storages().filter_map(|storage| sizes.bytes(storage));
        let dims = sizes.variables.dims().iter().zip(&sizes.given);
        Self {
            dims: dims
                .map(|(dim, &size)| OpenDim {
                    name: dim.name.clone(),
                    size,
                })
                .collect(),
            peak_formula: names.text(&load.formula),
            peak_formula_bytes: load.bytes,
            peak_other_bytes: load.rest,
            definitions: names.definitions(formulas.chain([&load.formula])),
        }
    }

    /// What is printed of them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let dims = self.dims.iter();
        let dims: Vec<_> = dims.map(|dim| format!("{}={}", shown(&dim.name), dim.size)).collect();
        let other = match self.peak_other_bytes {
            0 => String::new(),
            bytes => format!("; {} more for the kernel and what has no formula", units::bytes(bytes)),
        };
        let peak = format!(
            "peak as a formula: {} bytes, here {}{other}",
            shown(&self.peak_formula),
            units::bytes(self.peak_formula_bytes)
        );
        let definitions = self.definitions.iter().map(|line| format!("  where {}", shown(line)));
        [format!("open dimensions: {}", dims.join(", ")), peak]
            .into_iter()
            .chain(definitions)
            .collect()
    }
}
