//! Plans of memory, as a session asks them what a run takes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remat::plan::parse_bytes;
use remat_onnxruntime_arena::{ArenaPlanFile, MOST_FILE_BYTES, Plans, Shape};

/// Bytes as the command line takes them, `256MiB`.
#[pyfunction]
pub(crate) fn bytes_of(text: &str) -> PyResult<u64> {
    parse_bytes(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The plans of a file.
///
/// `OSError` where it cannot be read, `ValueError` with the line that is not as it should be.
#[pyclass(frozen)]
pub(crate) struct ArenaPlans {
    /// Name, smallest and largest size of every open dimension.
    dims: Vec<(String, u64, u64)>,
    count: usize,
    plans: Plans,
    level: String,
}

#[pymethods]
#[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
impl ArenaPlans {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let mut bytes = Vec::new();
            File::open(&path)?.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            let text = String::from_utf8(bytes).map_err(|_| PyValueError::new_err("it is no text"))?;
            let file = ArenaPlanFile::parse(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let dims = file.dims.iter().map(|dim| (dim.name.clone(), dim.least, dim.most));
            Ok(Self {
                dims: dims.collect(),
                count: file.plans.len(),
                plans: Plans::new(&file),
                level: file.level,
            })
        })
    }

    /// The graph optimization level of the sessions that the plans are for.
    #[getter]
    fn level(&self) -> &str {
        &self.level
    }

    /// Name, smallest and largest size of every open dimension.
    #[getter]
    fn dims(&self) -> Vec<(String, u64, u64)> {
        self.dims.clone()
    }

    /// The largest block of any sizes that the plans are for.
    #[getter]
    fn block_bytes(&self) -> u64 {
        self.plans.block_bytes()
    }

    /// Bytes of a run with these sizes: the block of the plan that takes most, and what it leaves outside of the block. `None` where a buffer is larger than
    /// any memory. `ValueError` names a dimension that has no size.
    fn run_bytes(&self, sizes: BTreeMap<String, u64>) -> PyResult<Option<u64>> {
        let size = |(name, _, _): &(String, u64, u64)| {
            let missing = || PyValueError::new_err(format!("`{name}` has no size"));
            sizes.get(name).copied().ok_or_else(missing)
        };
        let sizes: Vec<u64> = self.dims.iter().map(size).collect::<PyResult<_>>()?;
        let mut most = 0;
        for plan in 0..self.count {
            let Some(bytes) = self.plans.shape(plan, &sizes).and_then(|shape| bytes(&shape)) else {
                return Ok(None);
            };
            most = bytes.max(most);
        }
        Ok(Some(most))
    }
}

/// The block of a run, and the buffers that have no place in it.
fn bytes(shape: &Shape) -> Option<u64> {
    let buffers = shape.offsets().iter().zip(shape.sizes());
    let mut outside = buffers.filter(|(offset, _)| offset.is_none()).map(|(_, &size)| size);
    outside.try_fold(shape.block_bytes(), u64::checked_add)
}
