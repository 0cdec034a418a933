//! The second memory of a process, for PyTorch on a CPU: a file, to and from which the memory of tensors moves.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use remat_onnxruntime_arena::SecondMemory;

/// The second memory in a folder. There is one for each.
#[pyclass(frozen)]
pub(crate) struct Pages(SecondMemory);

#[pymethods]
impl Pages {
    /// `folder`: on a disk; `/var/tmp` without one.
    #[new]
    #[pyo3(signature = (folder=None))]
    #[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
    fn new(folder: Option<PathBuf>) -> Self {
        Self(SecondMemory::of(folder.as_deref()))
    }

    /// Begins to write bytes from an address on, which stay there until `wait` returns; gives the number of their page. `OSError` where there can
    /// be no file.
    fn write(&self, address: usize, bytes: u64) -> PyResult<u64> {
        self.0.write(address, bytes).map_err(PyOSError::new_err)
    }

    /// Returns when a page is written; `OSError` where it could not be.
    fn wait(&self, py: Python<'_>, page: u64) -> PyResult<()> {
        py.detach(|| self.0.wait(page)).map_err(PyOSError::new_err)
    }

    /// Begins to read a page ahead.
    fn announce(&self, page: u64) {
        self.0.announce(page);
    }

    /// Reads a page to an address; `OSError` where it cannot be read. The caller owns `bytes` writable bytes there.
    fn read(&self, py: Python<'_>, page: u64, address: usize, bytes: usize) -> PyResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        py.detach(|| {
            // SAFETY: the memory of a tensor that was just allocated for the page, and that nobody else has before this returns.
            let to = unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(address), bytes) };
            self.0.read(page, to)
        })
        .map_err(PyOSError::new_err)
    }

    /// Nobody needs a page any more.
    fn release(&self, page: u64) {
        self.0.release(page);
    }
}

/// Bytes that this process wrote to second memories, that it read from them, that are there now, and the most that were.
#[pyfunction]
pub(crate) fn moved_bytes() -> (u64, u64, u64, u64) {
    let moved = SecondMemory::moved();
    (moved.out, moved.back, moved.held, moved.most)
}
