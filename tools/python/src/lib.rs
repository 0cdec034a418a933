//! The native module of the Python package `remat_opt`: the command line as a function, and its commands as calls that return the object
//! which `--format json` prints. The Python layer beside it makes classes of these objects and exceptions of their errors.
//!
//! Nothing here plans or measures: there is one pipeline, that of the command line. What sessions of ONNX Runtime ask of a model and of its plan of
//! memory while they run are classes: [`batch`], [`plan`]. What PyTorch would reserve on a device is simulated: [`allocator`]; what it does over a step is shown in a browser:
//! [`page`]; what it moves out of memory lies in a file: `pages`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

mod allocator;
mod batch;
mod call;
mod page;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory of PyTorch")]
mod pages;
mod plan;

/// The native side of `remat_opt`.
#[pymodule]
mod _native {
    use super::{OsString, PathBuf, PyResult, Python, pyfunction};

    #[pymodule_export]
    use super::allocator::replay_allocations;
    #[pymodule_export]
    use super::allocator::rerun_allocations;
    #[pymodule_export]
    use super::allocator::rounded_allocation;
    #[pymodule_export]
    use super::allocator::simulate_allocations;
    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::call::call;
    #[pymodule_export]
    use super::page::recorded_page;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::pages::Pages;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::pages::moved_bytes;
    #[pymodule_export]
    use super::plan::ArenaPlans;
    #[pymodule_export]
    use super::plan::bytes_of;

    /// Runs the command line and gives its exit status. The first word stands for the program.
    #[pyfunction]
    fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| remat_opt::run(arguments))
    }

    /// Says how the commands start a process of their own, and which environments this process has its packages from.
    #[pyfunction]
    fn embed(program: PathBuf, arguments: Vec<OsString>, environments: Vec<PathBuf>) {
        remat_opt::embed(remat_opt::Embedding {
            program,
            arguments,
            environments,
        });
    }

    /// The library with which ONNX Runtime obeys plans of memory, as a file.
    #[pyfunction]
    fn arena_library() -> PyResult<&'static [u8]> {
        remat_onnxruntime_arena::LIBRARY
            .ok_or_else(|| pyo3::exceptions::PyOSError::new_err("plans of memory are for Linux only"))
    }

    /// The hash of a file, as plans of memory name it.
    #[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
    #[pyfunction]
    fn model_hash(py: Python<'_>, path: PathBuf) -> PyResult<String> {
        let hash = py.detach(|| remat_onnxruntime_observe::model_hash(&path));
        hash.map_err(|error| pyo3::exceptions::PyOSError::new_err(error.to_string()))
    }

    /// Whether a model moves results to a second memory, so that sessions need the library.
    #[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
    #[pyfunction]
    fn needs_arena_library(path: PathBuf) -> bool {
        remat_onnxruntime_run::needs_arena_library(&path)
    }

    /// The library that counts a process's heap where it is preloaded, as a file.
    #[pyfunction]
    fn heap_meter() -> PyResult<&'static [u8]> {
        remat_onnxruntime_run::HEAP_METER
            .ok_or_else(|| pyo3::exceptions::PyOSError::new_err("the heap meter is for Linux with glibc only"))
    }

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
