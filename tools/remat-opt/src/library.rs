//! Shared libraries that are loaded at run time, as the command line finds them.

use std::path::{Path, PathBuf};

use remat_files::Surroundings;

use crate::embedding;

/// What a library is looked for with: the path that an option names, or else one of these variables, the first before the second.
pub(crate) fn surroundings(named: Option<&PathBuf>, variables: &[&str]) -> Surroundings {
    let of_process = Surroundings::of_process(variables, |name| std::env::var_os(name));
    let environments = embedding::environments().into_iter();
    Surroundings {
        named: named.cloned().or(of_process.named),
        checkout: checkout(),
        environments: environments.chain(of_process.environments).collect(),
        ..of_process
    }
}

/// The checkout that the program was built from, if it is run by cargo or from the build folder there.
fn checkout() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2)?;
    let is_run_by_cargo = std::env::var_os("CARGO_MANIFEST_DIR").is_some_and(|run| Path::new(&run) == package);
    let executable = std::env::current_exe().ok()?.canonicalize().ok()?;
    let is_in_build_folder = executable.starts_with(root.canonicalize().ok()?.join("target"));
    (is_run_by_cargo || is_in_build_folder).then(|| root.to_owned())
}
