//! What runs of all stated shapes take, and in which of them the budget holds.

use remat::formula::{PeakBound, Proof, Ranges, Within};
use remat::plan::Plan;
use remat::{LoadOptions, Model, NoShapes, ShapesMissed};
use remat_files::shown;
use remat_onnxruntime_deploy::ArenaPlanned;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::Shapes;
use crate::units::{bytes, count, percent};

/// The shapes that are stated, and what is known of them all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RangeRecord {
    /// The shapes, as `--shapes` takes them.
    shapes: String,
    /// The most bytes that a run takes in any of them: with planned memory, block and what is outside, else as plans count it.
    peak_bound_bytes: Option<u64>,
    /// What proves it.
    bound_proof: Option<Proof>,
    /// With up to how many threads within a node that holds; absent where threads change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_threads: Option<u64>,
    /// In which shapes the budget holds; absent without one, and where nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Within>,
    /// Why nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

impl RangeRecord {
    /// Of a plan as such; `None` where no shapes are stated.
    pub(crate) fn of_plan(
        (model, plan): (&Model, &Plan),
        shapes: &Shapes,
        load: &LoadOptions,
        budget: Option<u64>,
    ) -> Option<Self> {
        let found = || -> Result<Self, NoShapes> {
            let at = model.at_shapes(plan, &shapes.ranges, load)?;
            let bound = at.bound()?;
            let holds_for_all = |budget: u64| bound.bytes <= budget;
            let within = budget.map(|budget| match holds_for_all(budget) {
                true => Ok(None),
                false => at.within(budget, &shapes.frequent).map(Some),
            });
            let within = within.transpose()?.flatten();
            Ok(Self {
                peak_bound_bytes: Some(bound.bytes),
                bound_proof: Some(bound.proof),
                budget: within.or_else(|| budget.map(|budget| kept(budget, bound, &shapes.ranges))),
                ..Self::unknown(shapes)
            })
        };
        shapes.are_stated().then(|| {
            found().unwrap_or_else(|why| Self {
                unknown: Some(why.to_string()),
                ..Self::unknown(shapes)
            })
        })
    }

    /// Of a plan of memory.
    pub(crate) fn of_memory(planned: &ArenaPlanned, shapes: &Shapes, budget: Option<u64>) -> Option<Self> {
        let bound = planned.bound?;
        let within = budget.map(|budget| match bound.bytes <= budget {
            true => kept(budget, bound, &shapes.ranges),
            false => planned.within(budget, &shapes.frequent),
        });
        shapes.are_stated().then(|| Self {
            peak_bound_bytes: Some(bound.bytes),
            bound_proof: Some(bound.proof),
            bound_threads: Some(planned.bound_threads),
            budget: within,
            ..Self::unknown(shapes)
        })
    }

    fn unknown(shapes: &Shapes) -> Self {
        Self {
            shapes: shapes.ranges.to_string(),
            peak_bound_bytes: None,
            bound_proof: None,
            bound_threads: None,
            budget: None,
            unknown: None,
        }
    }

    /// What is printed of it.
    pub(crate) fn lines(&self) -> Vec<String> {
        if let Some(why) = &self.unknown {
            return vec![format!("what other shapes take is not known: {}", shown(why))];
        }
        let Some(bound) = self.peak_bound_bytes else {
            return Vec::new();
        };
        let proof = match self.bound_proof {
            Some(Proof::Intervals(parts)) => format!(" (by intervals, in {})", count(parts, "part")),
            _ => String::new(),
        };
        let threads = self.bound_threads.map(|threads| {
            let threads = count(usize::try_from(threads).unwrap_or(usize::MAX), "thread");
            format!(", with up to {threads}")
        });
        let mut lines = vec![format!(
            "at most {} in any run of these shapes{}{proof}: {}",
            bytes(bound),
            threads.unwrap_or_default(),
            shown(&self.shapes)
        )];
        lines.extend(self.budget.as_ref().map(budget));
        lines
    }

    /// What is printed of it where the bound is said already: that the budget does not hold for every shape, or that nothing is known.
    pub(crate) fn exceptions(&self) -> Vec<String> {
        match self.unknown.is_some() || self.require_budget().is_err() {
            true => self.lines().into_iter().next_back().into_iter().collect(),
            false => Vec::new(),
        }
    }

    /// Whether it says in which shapes the budget holds.
    pub(crate) fn judges_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// The most bytes that a run takes in any shape.
    pub(crate) fn bound(&self) -> Option<u64> {
        self.peak_bound_bytes
    }

    /// That the budget holds for every shape, where there is one.
    ///
    /// # Errors
    /// [`ShapesMissed`] if it does not.
    pub(crate) fn require_budget(&self) -> Result<(), ShapesMissed> {
        match &self.budget {
            Some(within) if !within.is_kept() => Err(ShapesMissed(within.clone())),
            _ => Ok(()),
        }
    }
}

/// A budget that the bound keeps.
fn kept(budget: u64, bound: PeakBound, ranges: &Ranges) -> Within {
    Within {
        budget_bytes: budget,
        judged: ranges.shapes(),
        holds: ranges.shapes(),
        is_every: true,
        highest_shape: ranges.largest(),
        highest_bytes: bound.bytes,
    }
}

fn budget(within: &Within) -> String {
    let budget = bytes(within.budget_bytes);
    let highest = format!(
        "{} takes {}",
        shown(Ranges::fixed(&within.highest_shape)),
        bytes(within.highest_bytes)
    );
    let tried = if within.is_every { "" } else { " that were tried" };
    match (within.is_kept(), within.is_every) {
        (true, true) => format!("the budget of {budget} holds for all of them"),
        (true, false) => format!(
            "the budget of {budget} holds in all {}{tried}: {highest}",
            within.judged
        ),
        (false, _) => format!(
            "the budget of {budget} holds in {} of {} shapes{tried} ({:.1} %): {highest}",
            within.holds,
            within.judged,
            percent(within.holds, within.judged),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_holds_for_some_shapes_says_for_how_many() {
        let ranges: Ranges = "n=1..8".parse().expect("they are ranges");
        let shapes = Shapes {
            ranges: ranges.clone(),
            frequent: Vec::new(),
        };
        let bound = PeakBound {
            bytes: 8 << 20,
            proof: Proof::Intervals(3),
        };
        let record = |within| RangeRecord {
            peak_bound_bytes: Some(bound.bytes),
            bound_proof: Some(bound.proof),
            budget: within,
            ..RangeRecord::unknown(&shapes)
        };
        let all = record(Some(kept(9 << 20, bound, &ranges)));
        assert!(all.require_budget().is_ok());
        insta::assert_snapshot!(all.lines().join("\n"), @r"
        at most 8.0 MiB in any run of these shapes (by intervals, in 3 parts): n=1..8
        the budget of 9.0 MiB holds for all of them
        ");
        let some = record(Some(Within {
            budget_bytes: 6 << 20,
            holds: 6,
            ..kept(0, bound, &ranges)
        }));
        insta::assert_snapshot!(some.lines()[1], @"the budget of 6.0 MiB holds in 6 of 8 shapes (75.0 %): n=8 takes 8.0 MiB");
        insta::assert_snapshot!(some.require_budget().unwrap_err(), @"the budget of 6291456 bytes holds in 6 of 8 shapes: with n=8 it takes 8388608 bytes");
        let unknown = RangeRecord {
            unknown: Some("the size of `t` does not follow from the open dimensions".to_owned()),
            ..RangeRecord::unknown(&shapes)
        };
        insta::assert_snapshot!(unknown.lines().join("\n"), @"what other shapes take is not known: the size of `t` does not follow from the open dimensions");
    }
}
