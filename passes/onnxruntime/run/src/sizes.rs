//! Two models at other sizes of the dimensions that both leave free: what was made for one size must be right at every other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::time::Instant;

use remat_files::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measure::digest;
use crate::planned::{ArenaFigures, ArenaLibrary};
use crate::runner::{Runner, Task};
use crate::session::{Feed, Loaded};
use crate::{CompareSizes, OutputDigest, Runtime, RuntimeError, SessionSettings, Sizes};

/// How often the process that compares other sizes takes what one takes that measures a model, about: they may be larger.
pub const SIZES_AS_RUNS: u32 = 8;

/// What came of a run of both models at another size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SizeComparison {
    /// The free dimensions, those whose value is that of the settings among them.
    pub dims: BTreeMap<String, u64>,
    /// How the second model does beside the first.
    pub outcome: SizeOutcome,
}

/// How a model does at a size at which another one runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeOutcome {
    /// All outputs have the same bits.
    Same,
    /// This output differs bitwise.
    #[serde(rename = "bits-differ")]
    OtherBits(String),
    /// This output has another type or shape, or is missing.
    #[serde(rename = "form-differs")]
    OtherForm(String),
    /// It does not run.
    Fails(String),
}

impl fmt::Display for SizeOutcome {
    /// What the model does, as in "it ...".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("has the same outputs"),
            Self::OtherBits(output) => write!(f, "differs bitwise in output `{}`", shown(output)),
            Self::OtherForm(output) => write!(f, "has another shape of output `{}`", shown(output)),
            Self::Fails(why) => write!(f, "does not run ({})", shown(why)),
        }
    }
}

/// Values of dimensions as text: `batch=2,n=513`, as the command line takes them.
#[must_use]
pub fn dims_text(dims: &BTreeMap<String, u64>) -> String {
    let dims: Vec<String> = dims
        .iter()
        .map(|(name, size)| format!("{}={size}", shown(name)))
        .collect();
    dims.join(",")
}

/// What was compared at other sizes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SizesCompared {
    /// The dimensions that the first model leaves open, but for those that are fixed on purpose in the second one.
    pub free: BTreeSet<String>,
    /// The sizes at which the first model runs: for each dimension one below and one above where there are such.
    pub compared: Vec<SizeComparison>,
    /// How the second model's session followed its plans, if it has the arena library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub planned: Option<ArenaFigures>,
}

impl SizesCompared {
    /// The first size at which the second model is not as the first; `may_round`: other bits are none.
    #[must_use]
    pub fn first_difference(&self, may_round: bool) -> Option<&SizeComparison> {
        let differs = |found: &&SizeComparison| match found.outcome {
            SizeOutcome::Same => false,
            SizeOutcome::OtherBits(_) => !may_round,
            SizeOutcome::OtherForm(_) | SizeOutcome::Fails(_) => true,
        };
        self.compared.iter().find(differs)
    }
}

/// Runs two models once each at several sizes of the dimensions that the first one leaves open, in one process and on the same inputs, and
/// compares the bits of their outputs.
///
/// # Errors
/// As [`measure`](crate::measure()). That the second model differs or fails is a finding, not an error.
pub fn compare_sizes(
    runner: &Runner<'_>,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    options: CompareSizes,
) -> Result<SizesCompared, RuntimeError> {
    let task = Task::CompareSizes {
        base: base.to_owned(),
        other: other.to_owned(),
        options,
    };
    runner.ask(settings, task)
}

/// The child's part of [`compare_sizes`].
pub(crate) fn compare_sizes_here(
    runtime: &Runtime,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    options: &CompareSizes,
) -> Result<SizesCompared, RuntimeError> {
    let with_library = SessionSettings {
        arena_library: options.arena_library.clone(),
        ..settings.clone()
    };
    let of_base = SessionSettings {
        level: options.base_level.unwrap_or(settings.level),
        ..settings.clone()
    };
    let mut pair = Pair {
        base: runtime.open(base, &of_base)?,
        other: runtime.open(other, &with_library)?,
        seed: options.seed,
    };
    let library = options
        .arena_library
        .as_ref()
        .map(|_| ArenaLibrary::loaded(&with_library));
    let library = library.transpose()?;
    let open = pair.base.open_dims();
    let (free, compared) = match &options.sizes {
        Sizes::Around { fixed } => {
            let free: BTreeSet<String> = open.difference(fixed).cloned().collect();
            let compared = pair.around(&free, settings)?;
            (free, compared)
        }
        Sizes::These { shapes, time } => {
            let start = Instant::now();
            let mut compared = Vec::new();
            for shape in shapes {
                if !compared.is_empty() && time.is_some_and(|most| start.elapsed() >= most) {
                    break;
                }
                compared.extend(pair.compare(shape, settings)?);
            }
            (open, compared)
        }
    };
    Ok(SizesCompared {
        free,
        compared,
        planned: library.map(|library| library.figures()),
    })
}

/// Two models in one process.
struct Pair {
    base: Loaded,
    other: Loaded,
    seed: u64,
}

impl Pair {
    /// What comes of these sizes; `None` where the first model does not run with them: it says which sizes there are.
    fn compare(
        &mut self,
        dims: &BTreeMap<String, u64>,
        settings: &SessionSettings,
    ) -> Result<Option<SizeComparison>, RuntimeError> {
        let mut all = settings.dims.clone();
        all.extend(dims.clone());
        self.base.set_dims(all);
        let feed = self.base.seeded(self.seed)?;
        let Ok(expected) = outputs(&mut self.base, &feed) else {
            return Ok(None);
        };
        let outcome = match outputs(&mut self.other, &feed) {
            Err(error) => SizeOutcome::Fails(error.to_string()),
            Ok(found) => outcome(&expected, &found),
        };
        let dims = dims.clone();
        Ok(Some(SizeComparison { dims, outcome }))
    }

    fn around(
        &mut self,
        free: &BTreeSet<String>,
        settings: &SessionSettings,
    ) -> Result<Vec<SizeComparison>, RuntimeError> {
        let known: BTreeMap<String, u64> = free
            .iter()
            .map(|name| (name.clone(), settings.dims.get(name).copied().unwrap_or(1)))
            .collect();
        let mut compared = Vec::new();
        for sizes in [smaller(&known), larger(&known)] {
            let mut missing = free.clone();
            for dims in sizes {
                let is_new = |name: &String| dims[name] != known[name];
                if !missing.iter().any(is_new) {
                    continue;
                }
                let Some(found) = self.compare(&dims, settings)? else {
                    continue;
                };
                missing.retain(|name| !is_new(name));
                compared.push(found);
                if missing.is_empty() {
                    break;
                }
            }
        }
        Ok(compared)
    }
}

fn outputs(model: &mut Loaded, feed: &Feed) -> Result<Vec<OutputDigest>, RuntimeError> {
    let (names, file) = (model.outputs().to_vec(), model.file().to_owned());
    let (digests, _) = digest(model.run(feed)?, names).map_err(|why| RuntimeError::Run { model: file, why })?;
    Ok(digests)
}

fn outcome(expected: &[OutputDigest], found: &[OutputDigest]) -> SizeOutcome {
    let mut bits = None;
    for (place, before) in expected.iter().enumerate() {
        match found.get(place) {
            Some(after) if after == before => {}
            Some(after)
                if (&after.name, &after.element, &after.shape) == (&before.name, &before.element, &before.shape) =>
            {
                bits = bits.or_else(|| Some(before.name.clone()));
            }
            _ => return SizeOutcome::OtherForm(before.name.clone()),
        }
    }
    bits.map_or(SizeOutcome::Same, SizeOutcome::OtherBits)
}

/// Sizes below those that are known, the nearest first: of all dimensions at once, then of one at a time. Below a size of one there is none: then
/// one above it.
fn smaller(known: &BTreeMap<String, u64>) -> Vec<BTreeMap<String, u64>> {
    sizes(
        known,
        &[
            |size| if size > 1 { Some(size - 1) } else { Some(3) },
            |size| size.checked_sub(8),
            |size| Some(size / 2),
            |size| size.checked_sub(32),
            |_| Some(1),
        ],
    )
}

/// The same above them.
fn larger(known: &BTreeMap<String, u64>) -> Vec<BTreeMap<String, u64>> {
    sizes(
        known,
        &[
            |size| size.checked_add(1),
            |size| size.checked_add(8),
            |size| size.checked_add(32),
            |size| size.checked_mul(2),
        ],
    )
}

fn sizes(known: &BTreeMap<String, u64>, steps: &[fn(u64) -> Option<u64>]) -> Vec<BTreeMap<String, u64>> {
    let other = |step: fn(u64) -> Option<u64>, size: u64| step(size).filter(|&other| other > 0).unwrap_or(size);
    let mut found: Vec<BTreeMap<String, u64>> = Vec::new();
    let mut add = |dims: BTreeMap<String, u64>| {
        if dims != *known && !found.contains(&dims) {
            found.push(dims);
        }
    };
    for &step in steps {
        add(known
            .iter()
            .map(|(name, &size)| (name.clone(), other(step, size)))
            .collect());
    }
    for &step in steps {
        for (name, &size) in known.iter().filter(|_| known.len() > 1) {
            let mut dims = known.clone();
            dims.insert(name.clone(), other(step, size));
            add(dims);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
        list.iter().map(|&(name, size)| (name.to_owned(), size)).collect()
    }

    #[test]
    fn the_nearest_sizes_of_all_dimensions_come_first() {
        let known = dims(&[("batch", 1), ("n", 512)]);
        assert_eq!(smaller(&known)[0], dims(&[("batch", 3), ("n", 511)]));
        assert_eq!(larger(&known)[0], dims(&[("batch", 2), ("n", 513)]));
        assert!(smaller(&known).contains(&dims(&[("batch", 1), ("n", 256)])));
        assert!(larger(&known).contains(&dims(&[("batch", 2), ("n", 512)])));
    }

    #[test]
    fn no_size_is_the_known_one_and_none_is_empty() {
        let known = dims(&[("n", 8)]);
        let all = smaller(&known).into_iter().chain(larger(&known));
        assert!(all.into_iter().all(|sizes| sizes != known && sizes["n"] > 0));
        assert!(smaller(&dims(&[])).is_empty());
    }

    #[test]
    fn what_came_of_a_size_is_said_with_the_output() {
        let said = |outcome: SizeOutcome| outcome.to_string();
        assert_eq!(
            said(SizeOutcome::OtherBits("y".to_owned())),
            "differs bitwise in output `y`"
        );
        assert_eq!(
            said(SizeOutcome::Fails("no\u{1b}".to_owned())),
            "does not run (no\\u001b)"
        );
        assert_eq!(dims_text(&dims(&[("n", 3), ("batch", 2)])), "batch=2,n=3");
    }

    #[test]
    fn other_forms_count_where_bits_do_not() {
        let compared = |outcome| SizesCompared {
            free: BTreeSet::new(),
            planned: None,
            compared: vec![SizeComparison {
                dims: BTreeMap::new(),
                outcome,
            }],
        };
        let bits = compared(SizeOutcome::OtherBits("y".to_owned()));
        assert!(bits.first_difference(false).is_some() && bits.first_difference(true).is_none());
        let form = compared(SizeOutcome::OtherForm("y".to_owned()));
        assert!(form.first_difference(true).is_some());
    }
}
