//! What a model takes before and after.

use std::cmp::Ordering;
use std::fmt;

use remat::{BaselineOf, Solution};
use remat_onnxruntime_deploy::{ArenaPlanned, BeforeAfter, Deployment, Growth, Missed, Setting, SettingsTried};
use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{bytes, change, pair};

/// Memory before and after: by how much the process of a session grows where that was measured, else the heap, else what plans count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct Memory {
    #[serde(flatten)]
    pub(super) most: BeforeAfter,
    /// What both figures are.
    pub(super) of: Measure,
    /// Whether they are of the first run alone, because later runs of one of the two were not measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_first_run_only: bool,
    /// Growth of the process in the first run; absent where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_run: Option<BeforeAfter>,
    /// Growth of the process without the plan of memory, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_alone: Option<BeforeAfter>,
    /// Bytes that the loaded session takes more than that of the original, before any run: part of `after_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_loaded_bytes: Option<u64>,
    /// Peak of the heap in ONNX Runtime with the memory arena off, which budgets are about; absent where these are the figures above.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffers: Option<BeforeAfter>,
}

/// What figures before and after are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// The largest growth of the process in any run of a session with default options, measured.
    GrowthDefaultSession,
    /// The same with memory arena and memory pattern off.
    GrowthArenaOff,
    /// The same with default options before, and with the plan of memory after.
    GrowthArenaPlan,
    /// The same with default options before, and with the recommended ones after.
    GrowthSettings,
    /// The heap peak of a run in ONNX Runtime with the memory arena off, measured.
    HeapMeasured,
    /// The same, simulated.
    HeapPredicted,
    /// What plans count, for running every op once and for the plan.
    Plan,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GrowthDefaultSession => "growth of the process, default session, measured",
            Self::GrowthArenaOff => "growth of the process, memory arena off, measured",
            Self::GrowthArenaPlan => "growth of the process, default session before, planned memory after, measured",
            Self::GrowthSettings => "growth of the process, default session and recommended options, measured",
            Self::HeapMeasured => "heap of ONNX Runtime with the memory arena off, measured",
            Self::HeapPredicted => "heap of ONNX Runtime with the memory arena off, predicted and not measured",
            Self::Plan => "as plans count it, not measured",
        })
    }
}

/// What sessions of a written model have beyond defaults.
#[derive(Clone, Copy)]
pub(super) struct Session<'a> {
    /// Whether the memory arena is on.
    pub(super) arena: bool,
    /// The plan of memory, where there is one.
    pub(super) plan: Option<&'a ArenaPlanned>,
    /// The settings that were tried, where they were.
    pub(super) settings: Option<&'a SettingsTried>,
}

impl Memory {
    /// A plan, for a model that takes `before` bytes as plans count it.
    pub(super) fn of_plan(before: u64, solution: &Solution) -> Self {
        Self::of(Measure::Plan, before, solution.replay.peak)
    }

    /// A file for ONNX Runtime; the original takes `before` bytes as plans count it.
    pub(super) fn of_file(before: u64, found: &Deployment, session: Session<'_>) -> Self {
        let heap = Self::of_heap(before, found);
        let unknown = Growth {
            first: None,
            later: None,
        };
        let check = found.check.as_ref();
        let more = check.map_or(0, |check| check.after.more_loaded(&check.before));
        let growth = check.map(|check| (check.before.growth(), check.after.growth()));
        let ([original_off, original], [off, stock]) = growth.unwrap_or(([unknown; 2], [unknown; 2]));
        let (of, before, after) = match session {
            Session { plan: Some(plan), .. } => {
                let after = Growth {
                    first: plan.measured.resident_first_bytes,
                    later: plan.measured.resident_later_bytes,
                };
                // Both were measured one after the other.
                let before = Growth {
                    first: plan.measured.original_first_bytes,
                    later: plan.measured.original_later_bytes,
                };
                (Measure::GrowthArenaPlan, before, after)
            }
            Session {
                settings: Some(settings),
                ..
            } => {
                let best = settings.of(settings.recommended);
                let of = match settings.recommended {
                    Setting::Default => Measure::GrowthDefaultSession,
                    _ => Measure::GrowthSettings,
                };
                let after = Growth {
                    first: best.and_then(|best| best.measured.resident_first_bytes),
                    later: best.and_then(|best| best.measured.resident_later_bytes),
                };
                (of, original, after)
            }
            Session { arena: true, .. } => (Measure::GrowthDefaultSession, original, stock),
            Session { arena: false, .. } => (Measure::GrowthArenaOff, original_off, off),
        };
        let [after, stock] = [after, stock].map(|growth| growth.and(more));
        let has_later = before.knows_later_runs_beside(after);
        let is_default = of == Measure::GrowthDefaultSession && session.settings.is_none();
        let first_run = before.first.zip(after.first).filter(|_| is_default && has_later);
        let Some(most) = before.most_beside(after) else {
            return heap;
        };
        Self {
            is_first_run_only: !has_later,
            first_run: first_run.map(|(before_bytes, after_bytes)| BeforeAfter {
                before_bytes,
                after_bytes,
            }),
            file_alone: (original.knows_later_runs_beside(stock) && session.plan.is_some())
                .then(|| original.most_beside(stock))
                .flatten(),
            buffers: Some(heap.most).filter(|_| heap.of == Measure::HeapMeasured),
            more_loaded_bytes: Some(more).filter(|&more| more > 0),
            ..Self::of(of, most.before_bytes, most.after_bytes)
        }
    }

    /// The heap: what was measured, else what is predicted of both, else what plans count.
    fn of_heap(before: u64, found: &Deployment) -> Self {
        let measured = found.check.as_ref();
        let measured = measured.and_then(|check| check.before.arena_off.zip(check.after.arena_off));
        let baseline = found.model.baseline_peak();
        match measured {
            Some((before, after)) => Self::of(Measure::HeapMeasured, before, after),
            None if baseline.of == BaselineOf::Simulated => {
                Self::of(Measure::HeapPredicted, baseline.bytes, found.prediction.peak_bytes)
            }
            None => Self::of_plan(before, &found.solution),
        }
    }

    fn of(of: Measure, before_bytes: u64, after_bytes: u64) -> Self {
        Self {
            most: BeforeAfter {
                before_bytes,
                after_bytes,
            },
            of,
            is_first_run_only: false,
            first_run: None,
            more_loaded_bytes: None,
            file_alone: None,
            buffers: None,
        }
    }

    /// What the original takes, in words.
    pub(super) fn before(&self) -> String {
        format!(
            "the original takes {} ({})",
            bytes(self.most.before_bytes),
            self.measure()
        )
    }

    /// Whether these are figures of plans, beside a model that takes `baseline` bytes as it is.
    pub(super) fn is_all_counted(&self, baseline: u64) -> bool {
        self.of == Measure::Plan && self.most.before_bytes == baseline
    }

    /// The first figures, in words; where no less is taken than before, that comes first.
    pub(super) fn line(&self) -> String {
        let BeforeAfter {
            before_bytes,
            after_bytes,
        } = self.most;
        let gain = match after_bytes.cmp(&before_bytes) {
            Ordering::Less => "",
            Ordering::Equal => return format!("nothing gained: {}", self.before()),
            Ordering::Greater => "nothing gained: ",
        };
        let change = change(before_bytes, after_bytes).map_or_else(String::new, |change| format!("   {change}"));
        format!("{gain}{}{change}   {}", pair(before_bytes, after_bytes), self.measure())
    }

    /// What the first figures are, in words.
    fn measure(&self) -> String {
        let runs = if self.is_first_run_only {
            " in the first run"
        } else {
            ""
        };
        format!("{}{runs}", self.of)
    }

    /// The other figures, in words, where there are any.
    pub(super) fn further(&self) -> Option<String> {
        let text =
            |what: &str, figures: BeforeAfter| format!("{what} {}", pair(figures.before_bytes, figures.after_bytes));
        let first_run = self.first_run.map(|figures| text("first run", figures));
        let buffers = self.buffers.map(|figures| text("the buffers alone", figures));
        let alone = self.file_alone.map(|figures| text("the file alone", figures));
        let loaded = self.more_loaded_bytes;
        let loaded = loaded.map(|more| {
            format!(
                "{} of that from loading on, for nodes and weights kept twice",
                bytes(more)
            )
        });
        let all: Vec<String> = loaded
            .into_iter()
            .chain(first_run)
            .chain(alone)
            .chain(buffers)
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
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
            Self::Written => "the closest file is written (`--force`)",
            Self::Kept => "nothing is written (`--force` writes the closest file)",
            Self::NoOutput => "no output is named, so nothing is written",
            Self::Described => "what is written describes the closest file",
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
        "missed by {}: {} reached, {} asked for ({of}); {closest}",
        bytes(reached.saturating_sub(budget)),
        bytes(reached),
        bytes(budget)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_growth_of_the_process_comes_first_and_the_buffers_after_it() {
        let memory = Memory {
            first_run: Some(BeforeAfter {
                before_bytes: 18 * MIB,
                after_bytes: 11 * MIB,
            }),
            more_loaded_bytes: Some(2 * MIB),
            buffers: Some(BeforeAfter {
                before_bytes: 16 * MIB,
                after_bytes: 7 * MIB,
            }),
            ..Memory::of(Measure::GrowthDefaultSession, 31 * MIB, 11 * MIB)
        };
        insta::assert_snapshot!(memory.line(), @"31.0 -> 11.0 MiB   -65 %   growth of the process, default session, measured");
        insta::assert_snapshot!(memory.further().unwrap(), @"2.0 MiB of that from loading on, for nodes and weights kept twice; first run 18.0 -> 11.0 MiB; the buffers alone 16.0 -> 7.0 MiB");
        let json = serde_json::to_value(memory).unwrap();
        assert_eq!(
            (&json["after_bytes"], &json["buffers"]["after_bytes"]),
            (&(11 * MIB).into(), &(7 * MIB).into())
        );
    }

    #[test]
    fn what_is_known_of_the_first_run_alone_says_so() {
        let memory = Memory {
            is_first_run_only: true,
            ..Memory::of(Measure::GrowthDefaultSession, 18 * MIB, 11 * MIB)
        };
        let line = memory.line();
        assert!(
            line.ends_with("growth of the process, default session, measured in the first run"),
            "{line}"
        );
    }

    #[test]
    fn no_less_than_before_is_no_gain() {
        let said = |after| Memory::of(Measure::HeapMeasured, 2_048, after).line();
        assert!(said(2_048).starts_with("nothing gained: the original takes 2.0 KiB ("));
        assert!(said(3_072).starts_with("nothing gained: 2.0 -> 3.0 KiB   +50 %"));
        assert!(said(1_024).starts_with("2.0 -> 1.0 KiB   -50 %"));
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
        assert!(said(true).starts_with("missed by 512 B: 1.5 KiB reached, 1.0 KiB asked for"));
        assert!(said(false).contains("predicted") && !said(true).contains("predicted"));
    }
}
