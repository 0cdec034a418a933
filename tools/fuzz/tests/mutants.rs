//! Every target on its seeds and on mutants of them. A mutant that a body panics on is saved, and named with the way to run it again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use remat_fuzz::{Mutants, Seed, TARGETS, Target, seeds};

/// Mutants of each target.
const MUTANTS: u64 = 2_000;
/// Mutants of each target that its reader must accept, so that more than the reader is tested.
const LEAST_ACCEPTED: u64 = MUTANTS / 20;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = TARGETS.iter().flat_map(|target| {
        [
            Trial::test(format!("{}_holds_on_its_seeds", target.name), || on_seeds(target)),
            Trial::test(format!("{}_holds_on_mutants", target.name), || on_mutants(target)),
        ]
    });
    let binaries = Trial::test("every_target_has_a_binary_for_libfuzzer", have_binaries);
    libtest_mimic::run(&arguments, trials.chain([binaries]).collect()).exit_code()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The seeds; a target without any tests nothing.
fn seeds_of(target: &Target) -> Result<Vec<Seed>, Failed> {
    let seeds = seeds(target, &root())?;
    if seeds.len() < 3 {
        return Err(format!("`{}` has {} seeds", target.name, seeds.len()).into());
    }
    Ok(seeds)
}

fn have_binaries() -> Result<(), Failed> {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml"))?;
    for name in TARGETS.iter().map(|target| target.name) {
        let source = std::fs::read_to_string(root().join(format!("fuzz/targets/{name}.rs")))?;
        let named = manifest.contains(&format!("path = \"targets/{name}.rs\""));
        if !named || !source.contains(&format!("fuzz!(\"{name}\")")) {
            return Err(format!("`fuzz` has no binary for `{name}`").into());
        }
    }
    Ok(())
}

fn on_seeds(target: &Target) -> Result<(), Failed> {
    for seed in seeds_of(target)? {
        holds(target, &seed.data).map_err(|why| format!("{}: {why}", seed.path.display()))?;
    }
    Ok(())
}

fn on_mutants(target: &Target) -> Result<(), Failed> {
    let mutants = Mutants::new(target, seeds_of(target)?);
    let mut accepted = 0;
    for number in 0..MUTANTS {
        let (seed, mutant) = mutants.get(number);
        let outcome = holds(target, &mutant).map_err(|why| {
            let (seed, path) = (seed.path.display(), save(target, number, &mutant));
            format!(
                "mutant {number} of {seed}: {why}\nsaved as {path}: into test/fuzz/{} with it",
                target.name
            )
        })?;
        accepted += u64::from(outcome);
    }
    if accepted < LEAST_ACCEPTED {
        return Err(format!("only {accepted} of {MUTANTS} mutants are accepted").into());
    }
    Ok(())
}

/// Runs the body: whether the input was accepted, or the message of its panic.
fn holds(target: &Target, data: &[u8]) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| (target.body)(data))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_default()
    })
}

fn save(target: &Target, number: u64, mutant: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{}-{number}", target.name));
    match std::fs::write(&path, mutant) {
        Ok(()) => format!("`{}`", path.display()),
        Err(error) => format!("nothing ({error})"),
    }
}
