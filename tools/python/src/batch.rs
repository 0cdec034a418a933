//! The batch of a model, as a session asks for it that runs some members at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remat::{IndependentBatch, MembersError};

/// A proof that a model computes every member of a batch by itself.
///
/// Where that is not proved, `ValueError` with the sentence that says why not, and the op that it names.
#[pyclass(frozen)]
pub(crate) struct Batch {
    found: IndependentBatch,
}

#[pymethods]
#[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
impl Batch {
    /// Reads the model and proves it along the open dimension `dim`, or the first one of the first input that has one there; others are looked at
    /// within `ranges`.
    #[new]
    #[pyo3(signature = (path, dim=None, ranges=BTreeMap::new()))]
    fn new(py: Python<'_>, path: PathBuf, dim: Option<&str>, ranges: BTreeMap<String, (u64, u64)>) -> PyResult<Self> {
        let found = py.detach(|| IndependentBatch::open(&path, dim, &ranges));
        let found = found.map_err(raised)?;
        Ok(Self { found })
    }

    /// The name of the dimension that is the batch.
    #[getter]
    fn dim(&self) -> &str {
        self.found.dim()
    }

    /// By input the axis that is the batch.
    #[getter]
    fn inputs(&self) -> BTreeMap<&str, Option<usize>> {
        self.found.inputs().collect()
    }

    /// By output the axis that is the batch.
    #[getter]
    fn outputs(&self) -> BTreeMap<&str, Option<usize>> {
        self.found.outputs().collect()
    }

    /// The first op, by name and kind, that may round otherwise in one of these parts, each from a member to before another one.
    fn other_bits(
        &self,
        py: Python<'_>,
        dims: BTreeMap<String, u64>,
        parts: Vec<(u64, u64)>,
        threads: u32,
    ) -> PyResult<Option<(String, String)>> {
        let parts: Vec<_> = parts.into_iter().map(|(begin, end)| begin..end).collect();
        let found = py.detach(|| self.found.other_bits(&dims, &parts, threads));
        found.map_err(raised)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn raised(error: MembersError) -> PyErr {
    PyValueError::new_err((error.to_string(), error.op().map(str::to_owned)))
}
