//! `remat-fuzz`: the seeds of a target for libFuzzer, and a target on single files.

use std::ops::Range;
use std::panic::catch_unwind;
use std::path::Path;

use anyhow::{Context, bail};
use remat_fuzz::{Mutants, TARGETS, Target, seeds};

const USAGE: &str = "usage: remat-fuzz seeds TARGET FOLDER    copy the seeds of a target into a folder
       remat-fuzz run TARGET FILE...     run a target on files
       remat-fuzz mutants TARGET FIRST COUNT FOLDER    run a target on mutants of its seeds; what it panics on is left in the folder";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["seeds", name, folder] => copy(target(name)?, Path::new(folder)),
        ["run", name, files @ ..] => run(target(name)?, files),
        ["mutants", name, first, count, folder] => {
            let first: u64 = first.parse().context("FIRST is a number")?;
            let count: u64 = count.parse().context("COUNT is a number")?;
            mutants(target(name)?, first..first.saturating_add(count), Path::new(folder))
        }
        _ => bail!("{USAGE}"),
    }
}

fn target(name: &str) -> anyhow::Result<&'static Target> {
    let names = TARGETS.iter().map(|target| target.name);
    let known = || names.collect::<Vec<_>>().join("`, `");
    let found = TARGETS.iter().find(|target| target.name == name);
    found.with_context(|| format!("there is no target `{name}`: known are `{}`", known()))
}

/// Files are named by what is in them, as libFuzzer does.
fn copy(target: &Target, folder: &Path) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for seed in seeds(target, &root)? {
        let path = folder.join(&blake3::hash(&seed.data).to_hex()[..16]);
        remat_files::write(&path, &seed.data).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what the program is run for")]
fn run(target: &Target, files: &[&str]) -> anyhow::Result<()> {
    for file in files {
        let data = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
        let accepted = (target.body)(&data);
        println!("{file}: {}", if accepted { "accepted" } else { "refused" });
    }
    Ok(())
}

/// Goes on after a panic: the folder shows in the end what there was.
fn mutants(target: &Target, numbers: Range<u64>, folder: &Path) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mutants = Mutants::new(target, seeds(target, &root)?);
    for number in numbers {
        let (_, mutant) = mutants.get(number);
        let path = folder.join(format!("{}-{number}", target.name));
        if catch_unwind(|| (target.body)(&mutant)).is_err() {
            remat_files::write(&path, &mutant).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}
