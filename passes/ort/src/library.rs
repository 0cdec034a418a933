//! Where the runtime's shared library may lie.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};

/// What a program was told of the library, and what it knows of where it runs. Libraries read no environment: the program does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// The path that the user named, on the command line or in a variable. Nothing else is tried then.
    pub named: Option<PathBuf>,
    /// The working directory.
    pub working_directory: Option<PathBuf>,
    /// The folder of the executable.
    pub executable_folder: Option<PathBuf>,
    /// The active virtual environment of Python.
    pub virtual_env: Option<PathBuf>,
}

/// Paths to try, in this order: the one that was named and no other; else `third_party/onnxruntime/lib` below the working directory,
/// beside the executable or below its folder, the wheel in the virtual environment, as far as they exist; and last the bare name,
/// which the system's loader looks up.
#[must_use]
pub fn candidates(surroundings: &Surroundings) -> Vec<PathBuf> {
    if let Some(named) = &surroundings.named {
        return vec![named.clone()];
    }
    let name = format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}");
    let fetched = Path::new("third_party/onnxruntime/lib").join(&name);
    let below = |folder: &Option<PathBuf>, path: &Path| folder.as_ref().map(|folder| folder.join(path));
    let places = [
        below(&surroundings.working_directory, &fetched),
        below(&surroundings.executable_folder, Path::new(&name)),
        below(&surroundings.executable_folder, &fetched),
        surroundings.virtual_env.as_deref().and_then(wheel),
    ];
    let mut found: Vec<PathBuf> = places.into_iter().flatten().filter(|path| path.is_file()).collect();
    found.push(PathBuf::from(name));
    found
}

/// The library inside the PyPI wheel `onnxruntime` (or `onnxruntime-gpu`, which unpacks to the same folder), that of the highest name
/// where there are several.
fn wheel(environment: &Path) -> Option<PathBuf> {
    let mut found = Vec::new();
    // lib/python3.11 on Unix, Lib on Windows.
    for lib in [environment.join("lib"), environment.join("Lib")] {
        let pythons = entries(&lib).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("python")
        });
        for root in pythons.chain([lib.clone()]) {
            found.extend(entries(&root.join("site-packages/onnxruntime/capi")));
        }
    }
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name
            .strip_prefix(DLL_PREFIX)
            .and_then(|rest| rest.strip_prefix("onnxruntime."));
        // `libonnxruntime.so.1.31.1`, `libonnxruntime.1.31.1.dylib`, `onnxruntime.dll`.
        rest.is_some_and(|rest| format!(".{rest}").contains(DLL_SUFFIX))
    };
    found.into_iter().filter(is_library).max()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, "").expect("it can be written");
    }

    #[test]
    fn a_named_library_is_the_only_candidate_even_where_it_does_not_exist() {
        let named = PathBuf::from("nowhere/libonnxruntime.so");
        let surroundings = Surroundings {
            named: Some(named.clone()),
            working_directory: Some(PathBuf::from(".")),
            ..Surroundings::default()
        };
        assert_eq!(candidates(&surroundings), [named]);
    }

    #[test]
    fn what_exists_comes_before_what_the_loader_finds() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let name = PathBuf::from(format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}"));
        let fetched = folder.path().join("third_party/onnxruntime/lib").join(&name);
        let surroundings = Surroundings {
            working_directory: Some(folder.path().to_owned()),
            virtual_env: Some(folder.path().join("venv")),
            ..Surroundings::default()
        };
        assert_eq!(candidates(&surroundings), std::slice::from_ref(&name));
        touch(&fetched);
        assert_eq!(candidates(&surroundings), [fetched, name]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_library_of_the_wheel_is_found_beside_its_provider_libraries() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let capi = folder.path().join("lib/python3.11/site-packages/onnxruntime/capi");
        touch(&capi.join("libonnxruntime_providers_shared.so"));
        assert_eq!(wheel(folder.path()), None);
        touch(&capi.join("libonnxruntime.so.1.31.1"));
        assert_eq!(wheel(folder.path()), Some(capi.join("libonnxruntime.so.1.31.1")));
    }
}
