//! The version of a shared library of the runtime.

use std::ffi::CStr;
use std::path::Path;

/// What the library states as its version.
#[expect(unsafe_code, reason = "the version is had through the library's C interface only")]
pub(crate) fn of(library: &Path) -> Result<String, String> {
    // SAFETY: the library is loaded already, so that no code of its start runs here; it exports `OrtGetApiBase`, which the crate
    // `ort` has called before with this type.
    let version = unsafe {
        let library = libloading::Library::new(library).map_err(|error| error.to_string())?;
        let base = library
            .get::<unsafe extern "C" fn() -> *const ort::sys::OrtApiBase>(b"OrtGetApiBase\0")
            .map_err(|error| error.to_string())?;
        // The text is a constant of the library, which stays loaded.
        CStr::from_ptr(((*base()).GetVersionString)())
    };
    Ok(version.to_string_lossy().into_owned())
}
