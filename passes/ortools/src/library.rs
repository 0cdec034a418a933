//! The library of OR-Tools, loaded when a solver first needs it.
//!
//! It is the one inside of the Python wheel `ortools`, which holds CP-SAT and HiGHS and exports a C interface of each. The program says
//! where it may lie ([`look_in`]); it is loaded once and never unloaded, because threads that do not stop in time are left behind in it.
#![cfg_attr(any(unix, windows), expect(unsafe_code, reason = "takes functions out of a library"))]

#[cfg(any(unix, windows))]
mod load;

use std::ffi::{c_char, c_double, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use remat_files::{SharedLibrary, Surroundings, shown};
use remat_solve::External;
use thiserror::Error;

/// The major version whose interfaces are known, and the first minor one of it that passes the tests here.
const MAJOR: c_int = 9;
const LEAST_MINOR: c_int = 15;

/// Why there is no OR-Tools.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It lies in none of the places that were looked at.
    #[error("OR-Tools is not installed")]
    Absent,
    /// A library cannot be loaded, or is none of OR-Tools.
    #[error("`{path}` cannot be used as OR-Tools' library: {why}", path = shown(path.display()), why = shown(why))]
    Unusable {
        /// Where it lies.
        path: PathBuf,
        /// What the system's loader says.
        why: String,
    },
    /// A library of another version.
    #[error("`{path}` is OR-Tools {major}.{minor}, needed is {MAJOR}.{LEAST_MINOR} or a later {MAJOR}", path = shown(path.display()))]
    Version {
        /// Where it lies.
        path: PathBuf,
        /// Its major version.
        major: i32,
        /// Its minor version.
        minor: i32,
    },
}

/// Declares a table of functions of the library, and how it is filled.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($function:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)+ }) => {
        $(#[$doc])*
        #[expect(non_snake_case, reason = "names of the library")]
        pub(crate) struct $table {
            $(pub(crate) $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $table {
            #[cfg(any(unix, windows))]
            fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the library exports functions of these names with these types, as its headers declare them.
                    $($function: unsafe { *library.get(stringify!($function))? },)+
                })
            }
        }
    };
}

functions! {
    /// `ortools/sat/c_api/cp_solver_c.h`.
    CpSat {
        SolveCpNewEnv: fn() -> *mut c_void;
        SolveCpDestroyEnv: fn(*mut c_void);
        SolveCpStopSearch: fn(*mut c_void);
        SolveCpInterruptible: fn(
            *mut c_void, *const c_void, c_int, *const c_void, c_int, *mut *mut c_void, *mut c_int,
        );
    }
}

/// What HiGHS calls while it works.
pub(crate) type HighsCallback = extern "C" fn(c_int, *const c_char, *const c_void, *mut c_int, *mut c_void);

functions! {
    /// `highs_c_api.h`, of the library `highs` that OR-Tools' own is linked with.
    HighsC {
        Highs_create: fn() -> *mut c_void;
        Highs_destroy: fn(*mut c_void);
        Highs_passMip: fn(
            *mut c_void, c_int, c_int, c_int, c_int, c_int, c_double,
            *const c_double, *const c_double, *const c_double, *const c_double, *const c_double,
            *const c_int, *const c_int, *const c_double, *const c_int,
        ) -> c_int;
        Highs_addRows: fn(
            *mut c_void, c_int, *const c_double, *const c_double, c_int, *const c_int, *const c_int, *const c_double,
        ) -> c_int;
        Highs_setBoolOptionValue: fn(*mut c_void, *const c_char, c_int) -> c_int;
        Highs_setIntOptionValue: fn(*mut c_void, *const c_char, c_int) -> c_int;
        Highs_setDoubleOptionValue: fn(*mut c_void, *const c_char, c_double) -> c_int;
        Highs_setSolution: fn(
            *mut c_void, *const c_double, *const c_double, *const c_double, *const c_double,
        ) -> c_int;
        Highs_getSolution: fn(*const c_void, *mut c_double, *mut c_double, *mut c_double, *mut c_double) -> c_int;
        Highs_setCallback: fn(*mut c_void, HighsCallback, *mut c_void) -> c_int;
        Highs_startCallback: fn(*mut c_void, c_int) -> c_int;
        Highs_stopCallback: fn(*mut c_void, c_int) -> c_int;
        Highs_getCallbackDataOutItem: fn(*const c_void, *const c_char) -> *const c_void;
        Highs_run: fn(*mut c_void) -> c_int;
        Highs_getModelStatus: fn(*const c_void) -> c_int;
        Highs_getDualRay: fn(*mut c_void, *mut c_int, *mut c_double) -> c_int;
        Highs_getDoubleInfoValue: fn(*const c_void, *const c_char, *mut c_double) -> c_int;
    }
}

/// The functions of a library that was loaded.
pub(crate) struct Library {
    path: PathBuf,
    version: (c_int, c_int),
    pub(crate) cp_sat: CpSat,
    pub(crate) highs: HighsC,
}

static PLACES: OnceLock<Vec<PathBuf>> = OnceLock::new();
static LOADED: OnceLock<Result<Library, LibraryError>> = OnceLock::new();

/// Says where the library may lie, before a solver needs it. Whether that is news: what was said first holds for the whole process.
///
/// A process that says nothing has what the system's loader finds.
pub fn look_in(surroundings: &Surroundings) -> bool {
    PLACES.set(surroundings.candidates(&SharedLibrary::OR_TOOLS)).is_ok()
}

/// The path and the version, major and minor, of the library, which is loaded where it was not yet.
///
/// # Errors
/// [`LibraryError`] if there is none, or none of use.
pub fn loaded() -> Result<(&'static Path, (i32, i32)), &'static LibraryError> {
    library().map(|library| (library.path.as_path(), library.version))
}

/// The library, as what solvers work with.
#[derive(Clone, Copy, Debug)]
pub struct OrTools;

impl External for OrTools {
    fn missing(&self) -> Option<String> {
        library().err().map(ToString::to_string)
    }
}

/// The library, loaded where it was not yet.
pub(crate) fn library() -> Result<&'static Library, &'static LibraryError> {
    let load = || {
        let places = PLACES.get_or_init(|| Surroundings::default().candidates(&SharedLibrary::OR_TOOLS));
        first_of(places)
    };
    LOADED.get_or_init(load).as_ref()
}

/// The library at a path.
#[cfg(any(unix, windows))]
fn load(path: &Path) -> Result<Library, LibraryError> {
    Library::load(path)
}

/// Nothing loads libraries here, in a browser for instance.
#[cfg(not(any(unix, windows)))]
fn load(_: &Path) -> Result<Library, LibraryError> {
    Err(LibraryError::Absent)
}

/// The first library that can be used; else what is wrong with the first that is there.
fn first_of(places: &[PathBuf]) -> Result<Library, LibraryError> {
    let mut first = None;
    for path in places {
        match load(path) {
            Ok(library) => {
                tracing::debug!(path = %path.display(), version = ?library.version, "OR-Tools");
                return Ok(library);
            }
            // What the loader does not find is not there.
            Err(LibraryError::Unusable { .. }) if *path == SharedLibrary::OR_TOOLS.for_loader() => {}
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(LibraryError::Absent))
}

#[cfg(test)]
pub(crate) mod tests {
    use remat_testing::{Trial, trial};

    use super::*;

    pub(crate) fn trials() -> Vec<Trial> {
        vec![
            trial!(what_is_there_and_of_no_use_is_named),
            trial!(another_library_is_none_of_or_tools),
        ]
    }

    fn what_is_there_and_of_no_use_is_named() {
        let nowhere = PathBuf::from("/no/such/folder/libortools.so.9");
        let why = first_of(std::slice::from_ref(&nowhere)).err();
        assert!(matches!(why, Some(LibraryError::Unusable { path, .. }) if path == nowhere));
        assert_eq!(first_of(&[]).err(), Some(LibraryError::Absent));
    }

    #[cfg(target_os = "linux")]
    fn another_library_is_none_of_or_tools() {
        let libc = PathBuf::from("libc.so.6");
        let why = first_of(&[libc.clone(), PathBuf::from("nowhere.so")]).err();
        assert!(matches!(why, Some(LibraryError::Unusable { path, why }) if path == libc && why.contains("OrTools")));
    }
}
