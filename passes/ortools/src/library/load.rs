//! OR-Tools' library from a path.
#![expect(unsafe_code, reason = "loads a shared library and calls functions of it")]

use std::error::Error as _;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::path::Path;

use super::{CpSat, HighsC, LEAST_MINOR, Library, LibraryError, MAJOR};

impl Library {
    pub(super) fn load(path: &Path) -> Result<Self, LibraryError> {
        let unusable = |error: libloading::Error| LibraryError::Unusable {
            path: path.to_owned(),
            // What the loader says stands in the source.
            why: error.source().map_or_else(|| error.to_string(), ToString::to_string),
        };
        // SAFETY: the library runs code of its own when it is loaded, as every program that is linked with it has it; it stays
        // loaded for good, so that its functions can be called at any time.
        let library = ManuallyDrop::new(unsafe { libloading::Library::new(path) }.map_err(unusable)?);
        // SAFETY: functions of `ortools/base/version.h`, in the spelling of C++ compilers that follow the Itanium rules; they take
        // nothing and return an `int`.
        let version = unsafe {
            let number = |name: &str| Ok((*library.get::<unsafe extern "C" fn() -> c_int>(name)?)());
            [MAJOR_VERSION, MINOR_VERSION].map(number)
        };
        let [major, minor] = version;
        let version = (major.map_err(unusable)?, minor.map_err(unusable)?);
        if version.0 != MAJOR || version.1 < LEAST_MINOR {
            let (major, minor) = version;
            let path = path.to_owned();
            return Err(LibraryError::Version { path, major, minor });
        }
        Ok(Self {
            path: path.to_owned(),
            version,
            cp_sat: CpSat::of(&library).map_err(unusable)?,
            highs: HighsC::of(&library).map_err(unusable)?,
        })
    }
}

/// `operations_research::OrToolsMajorVersion()` and its like.
const MAJOR_VERSION: &str = "_ZN19operations_research19OrToolsMajorVersionEv";
const MINOR_VERSION: &str = "_ZN19operations_research19OrToolsMinorVersionEv";
