//! Two models side by side in one process of their own: time that can be trusted on a noisy machine, and the elements that differ.

use std::path::Path;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runner::{Runner, Task};
use crate::session::{Feed, Loaded};
use crate::time::{Rest, median, nanoseconds};
use crate::{Output, PairOptions, Runtime, RuntimeError, SessionSettings};

/// Times of two models that ran in turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimeComparison {
    /// Median of the first model's warm runs, in nanoseconds.
    pub base_median_ns: u64,
    /// Fastest warm run of the first model, in nanoseconds.
    pub base_min_ns: u64,
    /// Median of the second model's warm runs, in nanoseconds.
    pub other_median_ns: u64,
    /// Fastest warm run of the second model, in nanoseconds.
    pub other_min_ns: u64,
    /// Median over the pairs of neighbouring runs: time of the second model as a multiple of the first's. What slows the machine
    /// down for longer than a run slows both, so this ratio is steadier than that of the medians.
    pub ratio: f64,
}

/// Runs two models in turns in one process and compares the times of their warm runs, the first model ahead in every other pair.
///
/// # Errors
/// As [`measure`](crate::measure()).
pub fn compare_time(
    runner: &Runner<'_>,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    options: PairOptions,
) -> Result<TimeComparison, RuntimeError> {
    let task = Task::CompareTime {
        base: base.to_owned(),
        other: other.to_owned(),
        options,
    };
    runner.ask(settings, task)
}

/// The child's part of [`compare_time`].
pub(crate) fn compare_time_here(
    runtime: &Runtime,
    base: &Path,
    other: &Path,
    settings: &SessionSettings,
    options: &PairOptions,
) -> Result<TimeComparison, RuntimeError> {
    let mut models = [base, other].map(|model| runtime.open(model, settings));
    let [base, other] = &mut models;
    let (base, other) = (opened(base)?, opened(other)?);
    let feeds = [base.seeded(options.seed)?, other.seeded(options.seed)?];
    // The first run allocates what later ones find there.
    let start = Instant::now();
    base.run(&feeds[0])?;
    other.run(&feeds[1])?;
    let rest = Rest::new(options.time, nanoseconds(start));
    let mut times = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    for pair in 0..options.pairs.max(1) {
        if pair > 0 && !rest.has_room() {
            break;
        }
        let (first, second) = if pair % 2 == 0 {
            let first = timed(base, &feeds[0])?;
            (first, timed(other, &feeds[1])?)
        } else {
            let second = timed(other, &feeds[1])?;
            (timed(base, &feeds[0])?, second)
        };
        times[0].push(first);
        times[1].push(second);
        ratios.push(second as f64 / first.max(1) as f64);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let [base_times, other_times] = &mut times;
    Ok(TimeComparison {
        base_median_ns: median(base_times),
        base_min_ns: base_times[0],
        other_median_ns: median(other_times),
        other_min_ns: other_times[0],
        ratio: middle(&ratios),
    })
}

fn opened(model: &mut Result<Loaded, RuntimeError>) -> Result<&mut Loaded, RuntimeError> {
    model.as_mut().map_err(|error| error.clone())
}

fn timed(model: &mut Loaded, feed: &Feed) -> Result<u64, RuntimeError> {
    let start = Instant::now();
    let outputs = model.run(feed)?;
    let time = nanoseconds(start);
    drop(outputs);
    Ok(time)
}

/// The median of sorted numbers.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted {
        [] => 1.0,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// An output in which two models differ.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputDifference {
    /// Name of the output.
    pub name: String,
    /// Elements whose bits differ.
    pub differing: u64,
    /// Elements of the output.
    pub elements: u64,
    /// What else differs: type, shape or presence.
    pub form: Option<String>,
}

/// Runs two models on the same seeded inputs in one process, and counts in which elements their outputs differ. Outputs that agree
/// are left out.
///
/// # Errors
/// As [`measure`](crate::measure()).
pub fn compare_bits(
    runner: &Runner<'_>,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    seed: u64,
) -> Result<Vec<OutputDifference>, RuntimeError> {
    let task = Task::CompareBits {
        base: base.to_owned(),
        other: other.to_owned(),
        seed,
    };
    runner.ask(settings, task)
}

/// The child's part of [`compare_bits`]. The first model's session is gone before the second's is made.
pub(crate) fn compare_bits_here(
    runtime: &Runtime,
    base: &Path,
    other: &Path,
    settings: &SessionSettings,
    seed: u64,
) -> Result<Vec<OutputDifference>, RuntimeError> {
    let base = crate::run_seeded(runtime, base, settings, seed)?;
    let other = crate::run_seeded(runtime, other, settings, seed)?;
    Ok(differences(&base, &other))
}

fn differences(base: &[Output], other: &[Output]) -> Vec<OutputDifference> {
    let named = |outputs: &[Output], name: &str| outputs.iter().position(|output| output.name == name);
    let mut found = Vec::new();
    for before in base {
        match named(other, &before.name).map(|index| &other[index]) {
            Some(after) if after == before => {}
            Some(after) => found.push(difference(before, after)),
            None => found.push(absent(before, "the second model does not have it")),
        }
    }
    let extra = other.iter().filter(|after| named(base, &after.name).is_none());
    found.extend(extra.map(|after| absent(after, "the first model does not have it")));
    found
}

fn difference(before: &Output, after: &Output) -> OutputDifference {
    let form = if before.element != after.element {
        Some(format!("type {} became {}", before.element, after.element))
    } else if before.shape != after.shape {
        Some(format!("shape {:?} became {:?}", before.shape, after.shape))
    } else {
        None
    };
    OutputDifference {
        name: before.name.clone(),
        differing: differing(before, after),
        elements: before.bytes.len().div_ceil(before.element_bytes()) as u64,
        form,
    }
}

/// How many elements have other bits, of those that both have.
pub(crate) fn differing(before: &Output, after: &Output) -> u64 {
    let width = before.element_bytes();
    let pairs = before.bytes.chunks(width).zip(after.bytes.chunks(width));
    pairs.filter(|(before, after)| before != after).count() as u64
}

fn absent(output: &Output, why: &str) -> OutputDifference {
    OutputDifference {
        name: output.name.clone(),
        differing: 0,
        elements: (output.bytes.len() / output.element_bytes()) as u64,
        form: Some(why.to_owned()),
    }
}
