//! Two models that should be one: their bits, memory and time side by side.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    ChildCommand, MeasureOptions, Measurement, OutputDifference, RuntimeError, SessionSettings, TimeComparison,
    compare_bits, compare_time, measure,
};

/// What the comparison of a model with its rewritten form found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelComparison {
    /// The first model.
    pub base: Measurement,
    /// The second model.
    pub rewritten: Measurement,
    /// Their times, run in turns.
    pub times: TimeComparison,
    /// The outputs that differ, for the first seed for which one does; none if all bits agree.
    pub differences: Vec<OutputDifference>,
    /// That seed.
    pub differing_seed: Option<u64>,
}

/// Measures two models, each in a process of its own, compares the bits of their outputs for every seed, and times them in turns:
/// `options.runs` warm runs of each.
///
/// # Errors
/// As [`measure`](crate::measure()). That outputs differ is a finding, not an error.
pub fn compare_models(
    child: &ChildCommand,
    library: &Path,
    (base, rewritten): (&Path, &Path),
    settings: &SessionSettings,
    options: &MeasureOptions,
) -> Result<ModelComparison, RuntimeError> {
    let first = measure(child, library, base, settings, options)?;
    let second = measure(child, library, rewritten, settings, options)?;
    let pair = (base, rewritten);
    let seed = options.seeds.first().copied().unwrap_or(0);
    let times = compare_time(child, library, pair, settings, options.runs, seed)?;
    let differing_seed = first.first_difference(&second).map(|(seed, _)| seed);
    let differences = match differing_seed {
        Some(seed) => compare_bits(child, library, pair, settings, seed)?,
        None => Vec::new(),
    };
    Ok(ModelComparison {
        base: first,
        rewritten: second,
        times,
        differences,
        differing_seed,
    })
}
