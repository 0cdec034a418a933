//! Two models that may round otherwise: how far their outputs lie apart, on inputs of several kinds.
//!
//! A difference is measured against the largest magnitude of the output, on the same inputs or on ordinary ones, whichever is larger: where all of
//! an output cancels, what is left are roundings of the first model, too. Where a difference on ordinary inputs is above the limit, the first model
//! runs on inputs whose last bits differ as well: what that changes is no fault of the second model.
//!
//! On inputs of other kinds differences are told and judge nothing: a normalization of what is constant divides the roundings of a mean by almost
//! nothing, and the first model may be the one that is far from the truth. A number that is none any more is a fault on all inputs.

use std::path::Path;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::differing;
use crate::inputs::{InputKind, changed, nudge};
use crate::runner::{Runner, Task};
use crate::session::Loaded;
use crate::time::{Rest, nanoseconds};
use crate::{CloseOptions, Output, Runtime, RuntimeError, SessionSettings};

/// How far outputs may lie apart, as a multiple of what another last bit of the inputs changes: a model rounds in many places, inputs are rounded in
/// one.
const NUDGES: f64 = 16.0;

/// Channels that an image has at most: three colours and how opaque it is.
const CHANNELS: i64 = 4;

/// How far the outputs of two models lie apart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Closeness {
    /// The kinds of inputs that both ran on, ordinary ones first.
    pub inputs: Vec<InputCloseness>,
    /// The largest relative difference that is no fault.
    pub limit: f64,
    /// What was found for each output of the first model, in the order of the signature.
    pub outputs: Vec<OutputCloseness>,
}

/// How far outputs lie apart on inputs of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InputCloseness {
    /// The kind.
    pub kind: InputKind,
    /// The largest relative difference of all outputs.
    pub relative_difference: f64,
}

/// How far an output lies apart from that of another model: the largest difference on any inputs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputCloseness {
    /// Name of the output.
    pub name: String,
    /// The largest difference between two elements, as a share of the largest magnitude of the output, on inputs with a fault if there are some; 0 for
    /// outputs that are no floating-point numbers.
    pub relative_difference: f64,
    /// The kind of inputs on which it was found.
    pub inputs: InputKind,
    /// Elements whose bits differ, on the inputs where most do.
    pub differing: u64,
    /// Elements of the output.
    pub elements: u64,
    /// Ratio of the range of the output to the mean square of the difference, in decibels, on ordinary inputs; for images, which have four axes and
    /// up to four channels. Absent where they are the same.
    pub psnr_db: Option<f64>,
    /// What is wrong with it, beyond rounding.
    pub fault: Option<CloseFault>,
}

/// What does not come from rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CloseFault {
    /// It has another type or shape, or is missing.
    Form,
    /// An element is NaN or infinite, and that of the first model is not.
    NotFinite,
    /// The relative difference is above the limit, and not what another last bit of the inputs changes, too.
    Apart,
}

impl Closeness {
    /// The largest relative difference of all outputs on ordinary inputs.
    #[must_use]
    pub fn relative_difference(&self) -> f64 {
        self.inputs.first().map_or(0.0, |inputs| inputs.relative_difference)
    }

    /// The inputs on which outputs lie farthest apart.
    #[must_use]
    pub fn farthest(&self) -> Option<InputCloseness> {
        let farther = |a: InputCloseness, b: InputCloseness| {
            if b.relative_difference > a.relative_difference {
                b
            } else {
                a
            }
        };
        self.inputs.iter().copied().reduce(farther)
    }

    /// Whether every bit was the same on all inputs.
    #[must_use]
    pub fn is_identical(&self) -> bool {
        let is_same = |output: &OutputCloseness| output.differing == 0 && output.fault.is_none();
        self.outputs.iter().all(is_same)
    }

    /// The lowest ratio of the images among the outputs, in decibels; `None` where there are none that differ.
    #[must_use]
    pub fn psnr_db(&self) -> Option<f64> {
        self.outputs.iter().filter_map(|output| output.psnr_db).reduce(f64::min)
    }

    /// The first output that differs by more than rounding explains.
    #[must_use]
    pub fn fault(&self) -> Option<(&OutputCloseness, CloseFault)> {
        self.outputs.iter().find_map(|output| Some((output, output.fault?)))
    }
}

/// Runs two models in one process on the same inputs, of several kinds, and measures how far their outputs lie apart.
///
/// # Errors
/// As [`measure`](crate::measure()). That outputs differ is a finding, not an error. Where the first model does not run on inputs of a kind, the kind
/// is left out.
pub fn compare_close(
    runner: &Runner<'_>,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    options: &CloseOptions,
) -> Result<Closeness, RuntimeError> {
    let task = Task::CompareClose {
        base: base.to_owned(),
        other: other.to_owned(),
        options: options.clone(),
    };
    runner.ask(settings, task)
}

/// The child's part of [`compare_close`].
pub(crate) fn compare_close_here(
    runtime: &Runtime,
    (base, other): (&Path, &Path),
    settings: &SessionSettings,
    options: &CloseOptions,
) -> Result<Closeness, RuntimeError> {
    let (mut base, mut other) = (runtime.open(base, settings)?, runtime.open(other, settings)?);
    let first_seed = options.seeds.first().copied().unwrap_or(0);
    let start = Instant::now();
    let mut found = Found::default();
    found.ordinary(&mut base, &mut other, first_seed, options.limit)?;
    let rest = Rest::new(options.time, nanoseconds(start));
    for &seed in options.seeds.iter().skip(1).take_while(|_| rest.has_room()) {
        found.ordinary(&mut base, &mut other, seed, options.limit)?;
    }
    for kind in InputKind::ALL.into_iter().skip(1).take_while(|_| rest.has_room()) {
        let mut feed = base.seeded(first_seed)?;
        if !changed(&mut feed, kind) {
            break;
        }
        // Inputs that the model cannot take are none of it.
        if let Ok(before) = base.bits(&feed) {
            let after = other.bits(&feed)?;
            found.add(kind, (&before, &after), |_| Ok(Vec::new()), options.limit)?;
        }
    }
    Ok(Closeness {
        inputs: found.inputs,
        limit: options.limit,
        outputs: found.outputs,
    })
}

/// By how much the outputs of a model change if ordinary inputs do by their rounding, each relative to the magnitude given.
fn sensitivity(model: &mut Loaded, seed: u64, before: &[Output], magnitudes: &[f64]) -> Result<Vec<f64>, RuntimeError> {
    let mut nearby = model.seeded(seed)?;
    nudge(&mut nearby);
    let after = model.bits(&nearby)?;
    let pairs = before.iter().zip(&after).zip(magnitudes);
    Ok(pairs
        .map(|((before, after), &magnitude)| relative(largest_difference(before, after).unwrap_or(0.0), magnitude))
        .collect())
}

/// What is found, run by run.
#[derive(Default)]
struct Found {
    inputs: Vec<InputCloseness>,
    outputs: Vec<OutputCloseness>,
    /// Largest magnitudes of the outputs on ordinary inputs.
    magnitudes: Vec<f64>,
}

impl Found {
    fn ordinary(&mut self, base: &mut Loaded, other: &mut Loaded, seed: u64, limit: f64) -> Result<(), RuntimeError> {
        let feed = base.seeded(seed)?;
        let (before, after) = (base.bits(&feed)?, other.bits(&feed)?);
        self.magnitudes.resize(before.len(), 0.0);
        for (known, output) in self.magnitudes.iter_mut().zip(&before) {
            *known = known.max(magnitude(output));
        }
        let nearby = |magnitudes: &[f64]| sensitivity(base, seed, &before, magnitudes);
        self.add(InputKind::Ordinary, (&before, &after), nearby, limit)
    }

    /// Adds a run; `sensitivity` is asked where a difference is above the limit.
    fn add(
        &mut self,
        kind: InputKind,
        (before, after): (&[Output], &[Output]),
        sensitivity: impl FnOnce(&[f64]) -> Result<Vec<f64>, RuntimeError>,
        limit: f64,
    ) -> Result<(), RuntimeError> {
        let magnitudes = before
            .iter()
            .zip(&self.magnitudes)
            .map(|(output, &known)| known.max(magnitude(output)));
        let magnitudes: Vec<f64> = magnitudes.collect();
        let mut run: Vec<OutputCloseness> = before
            .iter()
            .enumerate()
            .map(|(place, output)| closeness(kind, output, after.get(place), magnitudes[place], limit))
            .collect();
        if run.iter().any(|output| output.fault == Some(CloseFault::Apart)) {
            let allowed = sensitivity(&magnitudes)?;
            for (output, allowed) in run.iter_mut().zip(allowed) {
                let is_explained = output.relative_difference <= NUDGES * allowed;
                output.fault = output
                    .fault
                    .filter(|&fault| fault != CloseFault::Apart || !is_explained);
            }
        }
        let all = run.iter().map(|output| output.relative_difference);
        let relative_difference = all.fold(0.0, f64::max);
        match self.inputs.iter_mut().find(|inputs| inputs.kind == kind) {
            Some(known) => {
                known.relative_difference = known.relative_difference.max(relative_difference);
            }
            None => self.inputs.push(InputCloseness {
                kind,
                relative_difference,
            }),
        }
        if self.outputs.is_empty() {
            self.outputs = run;
            return Ok(());
        }
        for (known, new) in self.outputs.iter_mut().zip(run) {
            known.include(&new);
        }
        Ok(())
    }
}

impl OutputCloseness {
    /// The worse of both in each respect.
    fn include(&mut self, other: &Self) {
        // A fault is told with the inputs on which it was found.
        let is_worse = match (self.fault, other.fault) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            _ => other.relative_difference > self.relative_difference,
        };
        if is_worse {
            (self.relative_difference, self.inputs) = (other.relative_difference, other.inputs);
        }
        self.differing = self.differing.max(other.differing);
        self.psnr_db = [self.psnr_db, other.psnr_db].into_iter().flatten().reduce(f64::min);
        self.fault = self.fault.or(other.fault);
    }
}

fn closeness(kind: InputKind, before: &Output, after: Option<&Output>, magnitude: f64, limit: f64) -> OutputCloseness {
    let mut found = OutputCloseness {
        name: before.name.clone(),
        relative_difference: 0.0,
        inputs: kind,
        differing: 0,
        elements: before.bytes.len().div_ceil(before.element_bytes()) as u64,
        psnr_db: None,
        fault: None,
    };
    let same_form = |after: &&Output| (&after.element, &after.shape) == (&before.element, &before.shape);
    let Some(after) = after.filter(same_form) else {
        found.fault = Some(CloseFault::Form);
        return found;
    };
    found.differing = differing(before, after);
    if found.differing == 0 {
        return found;
    }
    match largest_difference(before, after) {
        None => found.fault = Some(CloseFault::NotFinite),
        Some(difference) => {
            found.relative_difference = relative(difference, magnitude);
            let is_apart = kind == InputKind::Ordinary && found.relative_difference > limit;
            found.fault = is_apart.then_some(CloseFault::Apart);
            found.psnr_db = psnr(before, after).filter(|_| kind == InputKind::Ordinary);
        }
    }
    found
}

/// A difference as a share of a magnitude.
fn relative(difference: f64, magnitude: f64) -> f64 {
    if difference == 0.0 {
        return 0.0;
    }
    (difference / magnitude).min(f64::MAX)
}

/// Elements that are floating-point numbers; none of other types.
fn numbers(output: &Output) -> impl Iterator<Item = f64> + use<> {
    output.numbers().unwrap_or_default().into_iter()
}

/// The largest magnitude of a finite element.
fn magnitude(output: &Output) -> f64 {
    let finite = numbers(output).filter(|number| number.is_finite());
    finite.fold(0.0, |most, number| most.max(number.abs()))
}

/// The largest difference between two elements, where that of the first output is finite; `None` if that of the second then is not.
fn largest_difference(before: &Output, after: &Output) -> Option<f64> {
    let pairs = numbers(before).zip(numbers(after));
    pairs
        .filter(|(before, _)| before.is_finite())
        .try_fold(0.0, |most: f64, (before, after)| {
            after.is_finite().then(|| most.max((before - after).abs()))
        })
}

/// Of an image, the square of the range of its elements over the mean square of the difference, in decibels.
fn psnr(before: &Output, after: &Output) -> Option<f64> {
    let is_image = matches!(before.shape[..], [_, 1..=CHANNELS, rows, columns] if rows.min(columns) > 1);
    let (mut least, mut most, mut squares, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0);
    for (before, after) in numbers(before).zip(numbers(after)).filter(|_| is_image) {
        (least, most) = (least.min(before), most.max(before));
        squares += (before - after) * (before - after);
        count += 1.0;
    }
    let ratio = 10.0 * ((most - least) * (most - least) * count / squares).log10();
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
#[path = "closeness/tests.rs"]
mod tests;
