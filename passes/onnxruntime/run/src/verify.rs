//! Two models that should be one: their bits, memory and time side by side.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::{
    CompareSizes, MeasureOptions, Measurement, OutputDifference, PairOptions, Runner, RuntimeError, SIZES_AS_RUNS,
    SessionSettings, SizesCompared, TimeComparison, compare_bits, compare_sizes, compare_time, measure,
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
    /// What came of runs at other sizes of dimensions that the first model leaves open and the second one does not fix on purpose.
    pub sizes: SizesCompared,
}

/// Measures two models, each in a process of its own, compares the bits of their outputs for every seed, and times them in turns:
/// `options.runs` warm runs of each. Where the first one leaves dimensions open that are not `fixed` on purpose in the second one, they also run once
/// at a smaller and at a larger size of each. `begins` is told which of three parts begins: the first model, the second, both in turns.
///
/// A process for the second model is killed after a multiple of what that for the first one took.
///
/// # Errors
/// As [`measure`](crate::measure()). That outputs differ is a finding, not an error.
pub fn compare_models(
    runner: &Runner<'_>,
    (base, rewritten): (&Path, &Path),
    settings: &SessionSettings,
    fixed: &BTreeSet<String>,
    options: &MeasureOptions,
    begins: &dyn Fn(u32),
) -> Result<ModelComparison, RuntimeError> {
    begins(1);
    let start = Instant::now();
    let first = measure(runner, base, settings, options)?;
    let took = start.elapsed();
    begins(2);
    let second = measure(&runner.expecting(took), rewritten, settings, options)?;
    begins(3);
    let runner = &runner.expecting(2 * took);
    let pair = (base, rewritten);
    let in_turns = PairOptions {
        pairs: options.runs,
        seed: options.seeds.first().copied().unwrap_or(0),
        time: options.time,
    };
    let times = compare_time(runner, pair, settings, in_turns)?;
    let differing_seed = first.first_difference(&second).map(|(seed, _)| seed);
    let differences = match differing_seed {
        Some(seed) => compare_bits(runner, pair, settings, seed)?,
        None => Vec::new(),
    };
    let sizes = match differing_seed {
        None => {
            let runner = runner.expecting(SIZES_AS_RUNS * took);
            compare_sizes(&runner, pair, settings, CompareSizes::around(fixed, in_turns.seed))?
        }
        Some(_) => SizesCompared::default(),
    };
    Ok(ModelComparison {
        base: first,
        rewritten: second,
        times,
        differences,
        differing_seed,
        sizes,
    })
}
