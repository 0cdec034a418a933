//! Recorded programs as pages for a browser, for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remat_page::Page;

/// The page of a recorded program, as HTML. `document`: JSON, as of `Page::from_json`.
///
/// `ValueError` for another document.
#[pyfunction]
pub(crate) fn recorded_page(py: Python<'_>, document: &str) -> PyResult<String> {
    py.detach(|| {
        let page = Page::from_json(document).map_err(|error| PyValueError::new_err(error.to_string()))?;
        page.render().map_err(|error| PyValueError::new_err(error.to_string()))
    })
}
