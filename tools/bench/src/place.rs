//! `remat-bench place`: buffers in one block, how low and how soon, over several seeds, beside MiniMalloc.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use remat::place::{BufferFile, load, read_csv};
use remat::plan::{Blocks, PlacementProof, Status};
use remat::solver::SolveControl;
use remat::{Placed, place_buffers};

use crate::console;
use crate::files::{files, stem};
use crate::table::{Output, Table};

/// Seconds of processor time that MiniMalloc (g++ -O3) took for its challenging instances at 1,048,576 bytes on the machine on which offsets were
/// tried first, an AMD EPYC with two shared cores.
const NOTED: [(&str, f64); 11] = [
    ("A", 7.56),
    ("B", 5.35),
    ("C", 0.94),
    ("D", 4.03),
    ("E", 4.76),
    ("F", 7.16),
    ("G", 1.53),
    ("H", 2.32),
    ("I", 5.03),
    ("J", 1.45),
    ("K", 0.87),
];
/// The capacity in the names of those files.
const NOTED_CAPACITY: u64 = 1 << 20;

const HEADER: [&str; 10] = [
    "buffers",
    "block",
    "proof",
    "number",
    "load",
    "height",
    "above load",
    "seconds",
    "MiniMalloc, noted",
    "MiniMalloc, measured",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of buffers in MiniMalloc's form, or folders of such. `NAME.BYTES.csv` is placed within these bytes, too.
    #[arg(value_name = "PATH", default_value = "../shared/offsets")]
    paths: Vec<PathBuf>,
    /// Seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Longest time of a search, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    time: f64,
    /// MiniMalloc's program, which is run on what has a capacity.
    #[arg(long, value_name = "BINARY")]
    minimalloc: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.0..1e6).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is not a number of seconds"))
}

/// Places every file with every seed. Files that are not there are told, and are no failure.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for path in &args.paths {
        if !path.exists() {
            console::tell(&format!(
                "SKIPPED: `{}` is not there; MiniMalloc's buffers are at https://github.com/google/minimalloc",
                path.display()
            ));
            continue;
        }
        for file in files(path, &[".csv"])? {
            let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
            let buffers = read_csv(&text).with_context(|| format!("`{}`", file.display()))?;
            if let Some(capacity) = capacity(&file) {
                rows.push(row(args, &file, &buffers, Some(capacity))?);
            }
            rows.push(row(args, &file, &buffers, None)?);
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    args.output.give("place", "", &Table::new(3, &HEADER, rows))
}

/// `A` and 1048576 of `A.1048576.csv`.
fn capacity(file: &Path) -> Option<u64> {
    let (_, capacity) = file.file_stem()?.to_str()?.rsplit_once('.')?;
    capacity.parse().ok()
}

fn name(file: &Path) -> String {
    // Without the capacity, the end of a name looks like another extension.
    capacity(file).map_or_else(|| stem(file), |_| stem(Path::new(&stem(file))))
}

fn row(args: &Args, file: &Path, buffers: &BufferFile, capacity: Option<u64>) -> anyhow::Result<Vec<String>> {
    let blocks = capacity.map_or(Blocks::Lowest, |capacity| Blocks::Given(vec![capacity]));
    let mut trials = Vec::new();
    for seed in 1..=args.seeds {
        let limit = Duration::from_secs_f64(args.time);
        let began = Instant::now();
        let control = SolveControl::new().time_limit(limit).seed(seed);
        let placed = place_buffers(buffers, &blocks, &control)?;
        trials.push((began.elapsed().as_secs_f64(), placed));
    }
    let load = load(&buffers.buffers);
    let heights = trials
        .iter()
        .filter_map(|(_, placed)| placed.outcome.certificate.height);
    let range = |values: &[String]| match values {
        [] => "-".to_owned(),
        [first, .., last] if first != last => format!("{first}..{last}"),
        [first, ..] => first.clone(),
    };
    let mut sorted: Vec<u64> = heights.collect();
    sorted.sort_unstable();
    let shown: Vec<String> = sorted.iter().map(u64::to_string).collect();
    let above = |height: &u64| {
        format!(
            "{:.2} %",
            100.0 * height.saturating_sub(load) as f64 / load.max(1) as f64
        )
    };
    let above: Vec<String> = sorted.iter().map(above).collect();
    let mut times: Vec<f64> = trials.iter().map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    let times: Vec<String> = times.iter().map(|time| format!("{time:.2}")).collect();
    let noted = NOTED
        .iter()
        .find(|(known, _)| capacity == Some(NOTED_CAPACITY) && *known == name(file));
    let measured = match (&args.minimalloc, capacity) {
        (Some(binary), Some(capacity)) => minimalloc(binary, file, capacity)?,
        _ => "-".to_owned(),
    };
    Ok(vec![
        name(file),
        capacity.map_or("lowest".to_owned(), |capacity| format!("within {capacity}")),
        proof(&trials, &blocks),
        buffers.buffers.len().to_string(),
        load.to_string(),
        range(&shown),
        range(&above),
        range(&times),
        noted.map_or("-".to_owned(), |(_, seconds)| format!("{seconds:.2}")),
        measured,
    ])
}

/// What is proved by how many of the seeds.
fn proof(trials: &[(f64, Placed)], blocks: &Blocks) -> String {
    let certificates = trials.iter().map(|(_, placed)| &placed.outcome.certificate);
    let proved = certificates.filter(|certificate| matches!(certificate.status, Status::Optimal | Status::Infeasible));
    let proved: Vec<_> = proved.collect();
    let Some(first) = proved.first() else {
        return "open".to_owned();
    };
    let what = match (blocks, first.status, first.proof) {
        (_, Status::Infeasible, _) => "does not fit",
        (Blocks::Given(_), ..) => "fits",
        (Blocks::Lowest, _, PlacementProof::Load) => "load",
        (Blocks::Lowest, _, PlacementProof::Refutation) => "refutation",
        (Blocks::Lowest, _, PlacementProof::CpSat) => "CP-SAT",
    };
    if proved.len() == trials.len() {
        what.to_owned()
    } else {
        format!("{what} ({} of {})", proved.len(), trials.len())
    }
}

/// The time of a run of MiniMalloc in seconds, its reading of the file included.
fn minimalloc(binary: &Path, file: &Path, capacity: u64) -> anyhow::Result<String> {
    let output = std::env::temp_dir().join(format!("remat-bench-place-{}.csv", std::process::id()));
    let began = Instant::now();
    let status = Command::new(binary)
        .arg(format!("--capacity={capacity}"))
        .arg(format!("--input={}", file.display()))
        .arg(format!("--output={}", output.display()))
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{}`", binary.display()))?;
    let took = began.elapsed().as_secs_f64();
    // Where it found nothing there is none.
    let _ = std::fs::remove_file(&output);
    if !status.success() {
        bail!("`{}` failed on `{}`: {status}", binary.display(), file.display());
    }
    Ok(format!("{took:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Form;

    #[test]
    fn names_of_files_say_what_they_are_placed_within() {
        let file = Path::new("/x/A.1048576.csv");
        assert_eq!((name(file), capacity(file)), ("A".to_owned(), Some(1_048_576)));
        let file = Path::new("gpt_train.v2.csv");
        assert_eq!((name(file), capacity(file)), ("gpt_train.v2".to_owned(), None));
    }

    #[test]
    fn a_row_has_height_proof_and_every_column() {
        let buffers = read_csv("id,lower,upper,size\na,0,2,60\nb,1,3,40\n").unwrap();
        let args = Args {
            paths: Vec::new(),
            seeds: 2,
            time: 1.0,
            minimalloc: None,
            output: Output {
                format: Form::Text,
                write: Vec::new(),
            },
        };
        let lowest = row(&args, Path::new("x.csv"), &buffers, None).unwrap();
        assert_eq!(lowest[..7], ["x", "lowest", "load", "2", "100", "100", "0.00 %"]);
        assert_eq!(lowest.len(), HEADER.len());
        let too_small = row(&args, Path::new("A.99.csv"), &buffers, Some(99)).unwrap();
        assert_eq!(too_small[..6], ["A", "within 99", "does not fit", "2", "100", "-"]);
        let noted = row(&args, Path::new("A.1048576.csv"), &buffers, Some(NOTED_CAPACITY)).unwrap();
        assert_eq!(noted[2..], ["fits", "2", "100", "100", "0.00 %", "0.00", "7.56", "-"]);
    }
}
