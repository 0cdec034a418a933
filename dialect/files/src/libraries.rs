//! Where a shared library that is loaded at run time may lie.
//!
//! A library is code that is run, so it is looked for only where the user or the environment points, and in the checkout that the program
//! was built from, where it still runs there. The working directory is no such place: a model's folder may come from anybody. Paths
//! that depend on it are left out, an entry of `PATH` like `.` for instance.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A library that a Python wheel brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedLibrary {
    /// Its name without what the system puts around it: `onnxruntime` for `libonnxruntime.so`.
    pub name: &'static str,
    /// Its folder among the packages of a Python environment.
    pub in_wheel: &'static str,
    /// Its folder in a checkout, where it has one besides that of the wheel there.
    pub in_checkout: Option<&'static str>,
    /// What follows the system's suffix in the name by which the loader knows it: `.9` for `libortools.so.9`.
    pub version: &'static str,
}

impl SharedLibrary {
    /// ONNX Runtime.
    pub const ONNX_RUNTIME: Self = Self {
        name: "onnxruntime",
        in_wheel: "onnxruntime/capi",
        in_checkout: Some("third_party/onnxruntime/lib"),
        version: "",
    };
    /// OR-Tools 9, with CP-SAT and HiGHS.
    pub const OR_TOOLS: Self = Self {
        name: "ortools",
        in_wheel: "ortools/.libs",
        in_checkout: None,
        version: ".9",
    };

    /// The name by which the system's loader knows it.
    #[must_use]
    pub fn for_loader(&self) -> PathBuf {
        format!("{DLL_PREFIX}{}{DLL_SUFFIX}{}", self.name, self.version).into()
    }
}

/// What stands for a library where none is to be used.
pub const NO_LIBRARY: &str = "none";

/// Variables that name an active environment of Python or Conda.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// What a program was told of a library, and what it knows of where it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// The path that the user named, on the command line or in a variable. Nothing else is tried then; [`NO_LIBRARY`] stands for none.
    pub named: Option<PathBuf>,
    /// The checkout that the program was built from, where the program runs from its build folder.
    pub checkout: Option<PathBuf>,
    /// Active environments of Python or Conda, the first first.
    pub environments: Vec<PathBuf>,
    /// The folders in which programs are looked up, in this order; the first Python there counts.
    pub search_path: Vec<PathBuf>,
    /// Where `pip install --user` puts packages: `~/.local`, say. It counts together with the Python on the search path.
    pub user_base: Option<PathBuf>,
}

impl Surroundings {
    /// What the variables of a process say, which its program looks up: libraries read no environment. `naming` are those that may name the
    /// library, the first before the second.
    #[must_use]
    pub fn of_process(naming: &[&str], environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let variable = |name: &&str| set(name).map(PathBuf::from);
        let home = || std::env::home_dir().map(|home| home.join(".local"));
        Self {
            named: naming.iter().find_map(variable),
            checkout: None,
            environments: ENVIRONMENTS.iter().filter_map(variable).collect(),
            search_path: set("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect()),
            user_base: variable(&"PYTHONUSERBASE").or_else(home),
        }
    }

    /// Whether no library is to be used.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.named.as_deref() == Some(Path::new(NO_LIBRARY))
    }

    /// Paths of the library to try, in this order: the one that was named and no other; else its folder in the checkout, the wheel or the library
    /// itself in the active environments, the wheel of the first Python on the search path, as far as they exist; and last, on Linux, the bare
    /// name, which the system's loader looks up in its own folders and those of `LD_LIBRARY_PATH`.
    #[must_use]
    pub fn candidates(&self, library: &SharedLibrary) -> Vec<PathBuf> {
        if self.is_none() {
            return Vec::new();
        }
        if let Some(named) = &self.named {
            return vec![named.clone()];
        }
        let name = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", library.name);
        let absolute = |path: &&PathBuf| path.is_absolute();
        let wheel = |environment: &Path| wheel(environment, library);
        let mut places = Vec::new();
        if let Some(checkout) = self.checkout.as_ref().filter(absolute) {
            places.extend(library.in_checkout.map(|folder| checkout.join(folder).join(&name)));
            places.extend(wheel(&checkout.join("third_party/venv")));
        }
        for environment in self.environments.iter().filter(absolute) {
            places.extend(wheel(environment));
            places.push(environment.join("lib").join(&name));
        }
        if let Some(prefixes) = self.search_path.iter().filter(absolute).find_map(|f| python(f)) {
            let user_base = self.user_base.clone().filter(|base| base.is_absolute());
            places.extend(user_base.iter().chain(&prefixes).filter_map(|prefix| wheel(prefix)));
        }
        let mut found = Vec::new();
        for path in places {
            if path.is_file() && !found.contains(&path) {
                found.push(path);
            }
        }
        if cfg!(target_os = "linux") {
            // Loaders of other systems look into the working directory, too.
            found.push(library.for_loader());
        }
        found
    }
}

/// What the Python in `folder` is installed in, if there is one: its virtual environment, or the prefix of the executable that it is a
/// link to. It is not run: that would be code from yet another place.
fn python(folder: &Path) -> Option<Vec<PathBuf>> {
    let names = ["python3", "python"].map(|name| folder.join(format!("{name}{EXE_SUFFIX}")));
    let found = names.into_iter().find(|path| path.is_file())?;
    let prefix = |executable: &Path| -> Option<PathBuf> {
        let folder = executable.parent()?;
        let is_below = ["bin", "Scripts"].iter().any(|name| folder.ends_with(name));
        Some(if is_below { folder.parent()? } else { folder }.to_owned())
    };
    let own = prefix(&found)?;
    if own.join("pyvenv.cfg").is_file() {
        return Some(vec![own]);
    }
    let mut prefixes = vec![own];
    prefixes.extend(found.canonicalize().ok().and_then(|real| prefix(&real)));
    // Distributions of Linux keep what an administrator installs beside their own.
    prefixes.extend(
        prefixes
            .iter()
            .any(|own| own == Path::new("/usr"))
            .then(|| "/usr/local".into()),
    );
    Some(prefixes)
}

/// The library inside its wheel (that of `onnxruntime-gpu` unpacks to the same folder as `onnxruntime`), that of the highest name where there
/// are several.
fn wheel(environment: &Path, library: &SharedLibrary) -> Option<PathBuf> {
    let mut found = Vec::new();
    // lib/python3.11 on Unix, Lib on Windows.
    for lib in [environment.join("lib"), environment.join("Lib")] {
        let pythons = entries(&lib).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("python")
        });
        for root in pythons.chain([lib.clone()]) {
            for packages in ["site-packages", "dist-packages"] {
                found.extend(entries(&root.join(packages).join(library.in_wheel)));
            }
        }
    }
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name
            .strip_prefix(DLL_PREFIX)
            .and_then(|rest| rest.strip_prefix(library.name));
        // `libonnxruntime.so.1.31.1`, `libonnxruntime.1.31.1.dylib`, `onnxruntime.dll`.
        rest.is_some_and(|rest| rest.starts_with('.') && rest.contains(DLL_SUFFIX))
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
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    const LIBRARY: SharedLibrary = SharedLibrary::ONNX_RUNTIME;
    const NAME: &str = "libonnxruntime.so";
    const WHEEL: &str = "lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1";

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, "").expect("it can be written");
    }

    #[test]
    fn a_named_library_is_the_only_candidate_even_where_it_does_not_exist() {
        let named = PathBuf::from("nowhere/libonnxruntime.so");
        let folder = tempfile::tempdir().expect("a temporary folder");
        touch(&folder.path().join(WHEEL));
        let surroundings = Surroundings {
            named: Some(named.clone()),
            environments: vec![folder.path().to_owned()],
            ..Surroundings::default()
        };
        assert_eq!(surroundings.candidates(&LIBRARY), [named]);
        let none = Surroundings {
            named: Some(NO_LIBRARY.into()),
            ..surroundings
        };
        assert!(none.candidates(&LIBRARY).is_empty());
    }

    #[test]
    fn a_library_with_a_version_in_its_name_is_found_in_wheel_checkout_and_by_the_loader() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let in_wheel = folder
            .path()
            .join("third_party/venv/lib/python3.11/site-packages/ortools/.libs/libortools.so.9");
        touch(&in_wheel);
        touch(&in_wheel.with_file_name("libortools_other.so.9"));
        let surroundings = Surroundings {
            checkout: Some(folder.path().to_owned()),
            ..Surroundings::default()
        };
        assert_eq!(
            surroundings.candidates(&SharedLibrary::OR_TOOLS),
            [in_wheel, PathBuf::from("libortools.so.9")]
        );
    }

    #[test]
    fn a_process_says_what_its_variables_say() {
        let environment = |name: &str| {
            let value = match name {
                "SECOND" => "/named.so",
                "FIRST" | "VIRTUAL_ENV" => "",
                "CONDA_PREFIX" => "/conda",
                "PATH" => "/a:/b",
                "PYTHONUSERBASE" => "/user",
                _ => return None,
            };
            Some(OsString::from(value))
        };
        let expected = Surroundings {
            named: Some("/named.so".into()),
            checkout: None,
            environments: vec!["/conda".into()],
            search_path: vec!["/a".into(), "/b".into()],
            user_base: Some("/user".into()),
        };
        assert_eq!(Surroundings::of_process(&["FIRST", "SECOND"], environment), expected);
    }

    #[test]
    fn the_checkout_comes_before_environments_and_those_before_python_and_the_loader() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let surroundings = Surroundings {
            checkout: Some(at("checkout")),
            environments: vec![at("venv"), at("conda")],
            search_path: vec![at("empty"), at("prefix/bin"), at("other/bin")],
            user_base: Some(at("user")),
            named: None,
        };
        assert_eq!(surroundings.candidates(&LIBRARY), [PathBuf::from(NAME)]);
        let expected = [
            at("checkout/third_party/onnxruntime/lib").join(NAME),
            at("venv").join(WHEEL),
            at("conda").join(WHEEL),
            at("conda/lib").join(NAME),
            at("user").join(WHEEL),
            at("prefix").join(WHEEL),
            PathBuf::from(NAME),
        ];
        for path in &expected[..6] {
            touch(path);
        }
        touch(&at("other").join(WHEEL));
        touch(&at("prefix/bin/python3"));
        touch(&at("other/bin/python3"));
        assert_eq!(surroundings.candidates(&LIBRARY), expected);
    }

    #[test]
    fn what_depends_on_the_working_directory_is_left_out() {
        let here = std::env::current_dir().expect("it is there");
        let folder = tempfile::tempdir_in(&here).expect("a temporary folder");
        let relative = folder.path().strip_prefix(&here).expect("it is here");
        touch(&folder.path().join(WHEEL));
        touch(&folder.path().join("bin/python3"));
        touch(&folder.path().join("third_party/onnxruntime/lib").join(NAME));
        let surroundings = Surroundings {
            named: None,
            checkout: Some(relative.to_owned()),
            environments: vec![relative.to_owned(), PathBuf::new()],
            search_path: vec![relative.join("bin"), PathBuf::new(), PathBuf::from(".")],
            user_base: Some(relative.to_owned()),
        };
        assert_eq!(surroundings.candidates(&LIBRARY), [PathBuf::from(NAME)]);
    }

    #[test]
    fn a_virtual_environment_on_the_search_path_is_its_own_prefix() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        touch(&at("base/bin/python3.11"));
        touch(&at("base").join(WHEEL));
        touch(&at("venv/pyvenv.cfg"));
        std::fs::create_dir_all(at("venv/bin")).expect("it can be made");
        std::os::unix::fs::symlink(at("base/bin/python3.11"), at("venv/bin/python3")).expect("it can be made");
        let surroundings = Surroundings {
            search_path: vec![at("venv/bin")],
            ..Surroundings::default()
        };
        assert_eq!(surroundings.candidates(&LIBRARY), [PathBuf::from(NAME)]);
        // Outside of an environment, the link says where the packages are.
        std::fs::remove_file(at("venv/pyvenv.cfg")).expect("it is there");
        assert_eq!(
            surroundings.candidates(&LIBRARY)[0],
            at("base").join(WHEEL).canonicalize().expect("it is there")
        );
    }

    #[test]
    fn the_library_of_the_wheel_is_found_beside_its_provider_libraries() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let capi = folder.path().join("lib/python3.11/site-packages/onnxruntime/capi");
        touch(&capi.join("libonnxruntime_providers_shared.so"));
        assert_eq!(wheel(folder.path(), &LIBRARY), None);
        touch(&capi.join("libonnxruntime.so.1.31.1"));
        assert_eq!(
            wheel(folder.path(), &LIBRARY),
            Some(capi.join("libonnxruntime.so.1.31.1"))
        );
    }
}
