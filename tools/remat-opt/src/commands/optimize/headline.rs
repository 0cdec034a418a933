//! What a model takes before and after, both by the same measure.

use std::fmt;

use remat::{BaselineOf, Solution};
use remat_onnxruntime_deploy::{Deployment, Missed};
use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{bytes, percent};

/// Memory before and after, by one measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct Headline {
    /// What the model takes as it came.
    pub(super) before_bytes: u64,
    /// What it takes as planned.
    pub(super) after_bytes: u64,
    /// What both figures are.
    pub(super) of: Measure,
}

/// What figures before and after are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// The heap peak of a run in ONNX Runtime with the memory arena off, measured: what budgets are about.
    HeapMeasured,
    /// The same, simulated.
    HeapPredicted,
    /// What plans count, for running every op once and for the plan.
    Plan,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeapMeasured => "heap of ONNX Runtime with the memory arena off, measured",
            Self::HeapPredicted => "heap of ONNX Runtime with the memory arena off, predicted and not measured",
            Self::Plan => "as plans count it, not measured",
        })
    }
}

impl Headline {
    /// A plan, for a model that takes `before` bytes as it came, as plans count it.
    pub(super) fn of_plan(before: u64, solution: &Solution) -> Self {
        Self {
            before_bytes: before,
            after_bytes: solution.replay.peak,
            of: Measure::Plan,
        }
    }

    /// A file for ONNX Runtime: what was measured, else what is predicted of both, else what plans count.
    pub(super) fn of_file(before: u64, found: &Deployment) -> Self {
        let measured = found.check.as_ref();
        let measured = measured.and_then(|check| check.before.exact.zip(check.after.exact));
        let baseline = found.model.baseline_peak();
        match measured {
            Some((before_bytes, after_bytes)) => Self {
                before_bytes,
                after_bytes,
                of: Measure::HeapMeasured,
            },
            None if baseline.of == BaselineOf::Simulated => Self {
                before_bytes: baseline.bytes,
                after_bytes: found.prediction.peak_bytes,
                of: Measure::HeapPredicted,
            },
            None => Self::of_plan(before, &found.solution),
        }
    }

    /// Whether these are figures of plans, beside a model that takes `baseline` as it came.
    pub(super) fn is_all_counted(&self, baseline: u64) -> bool {
        self.of == Measure::Plan && self.before_bytes == baseline
    }

    /// The line of a report.
    pub(super) fn line(&self) -> String {
        let Self {
            before_bytes: before,
            after_bytes: after,
            of,
        } = *self;
        format!(
            "peak      {} -> {} ({:.1} %), {of}",
            bytes(before),
            bytes(after),
            percent(after, before)
        )
    }

    /// What is said first where memory is lost instead of saved.
    pub(super) fn warning(&self) -> Option<String> {
        let more = self.after_bytes.saturating_sub(self.before_bytes);
        (more > 0).then(|| {
            format!(
                "warning   it takes {} more than the original: {} ({})",
                bytes(more),
                bytes(self.after_bytes),
                self.of
            )
        })
    }
}

/// What becomes of the file that comes closest to a budget that none keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closest {
    /// It is written, as was forced.
    Written,
    /// It is not, unless that is forced.
    Kept,
    /// No output was named.
    NoOutput,
    /// The output is no model: it is about the closest file all the same.
    Described,
}

impl fmt::Display for Closest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Written => "the closest file is written, as `--force` says",
            Self::Kept => "nothing is written (`--force` writes the closest file)",
            Self::NoOutput => "no output is named, so nothing is written",
            Self::Described => "what is written is that of the closest file",
        })
    }
}

/// What is said first of a budget that no file keeps.
pub(super) fn missed(missed: &Missed, closest: Closest) -> String {
    let Missed {
        budget,
        reached,
        is_measured,
    } = *missed;
    let of = if is_measured {
        Measure::HeapMeasured
    } else {
        Measure::HeapPredicted
    };
    format!(
        "budget    missed by {}: {} reached, {} asked for ({of}); {closest}",
        bytes(reached.saturating_sub(budget)),
        bytes(reached),
        bytes(budget)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headline(before_bytes: u64, after_bytes: u64) -> Headline {
        Headline {
            before_bytes,
            after_bytes,
            of: Measure::HeapMeasured,
        }
    }

    #[test]
    fn more_than_the_original_is_a_warning() {
        assert_eq!(headline(2_048, 2_048).warning(), None);
        let warning = headline(2_048, 3_072).warning().expect("it takes more");
        assert!(warning.contains("1.0 KiB more than the original"), "{warning}");
    }

    #[test]
    fn a_budget_that_is_missed_is_said_with_its_figures_and_their_origin() {
        let said = |is_measured| {
            let found = Missed {
                budget: 1_024,
                reached: 1_536,
                is_measured,
            };
            missed(&found, Closest::Kept)
        };
        assert!(said(true).starts_with("budget    missed by 512 B: 1.5 KiB reached, 1.0 KiB asked for"));
        assert!(said(false).contains("predicted") && !said(true).contains("predicted"));
    }
}
