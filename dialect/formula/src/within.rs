//! What runs of all shapes take at most, and in which of them a budget holds.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Bound, Part, Ranges, Shape};

/// What proves the bound of a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Every size is the largest in the largest shape: that needs most.
    LargestShape,
    /// Intervals, in so many parts of the range.
    Intervals(usize),
}

impl Proof {
    /// What these parts prove a bound by.
    #[must_use]
    pub fn of<T: Bound>(parts: &[Part<T>]) -> Self {
        match parts {
            [one] if one.known.is_reached() => Self::LargestShape,
            parts => Self::Intervals(parts.len()),
        }
    }
}

/// What runs of all shapes take at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct PeakBound {
    /// Bytes at the peak.
    pub bytes: u64,
    /// What proves it, of formulas.
    pub proof: Proof,
}

/// In which shapes a budget holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Within {
    /// The budget in bytes.
    pub budget_bytes: u64,
    /// How many shapes it was held against: frequent ones, each as often as it was seen, or all, or corners and random ones.
    pub judged: u64,
    /// In how many of them it holds.
    pub holds: u64,
    /// Whether no shape of the ranges was left out.
    pub is_every: bool,
    /// The shape of those with the highest peak.
    pub highest_shape: Shape,
    /// That peak in bytes.
    pub highest_bytes: u64,
}

impl Within {
    /// Holds a budget against what shapes take: frequent ones with their weights, or, without any, up to `most` shapes of the ranges.
    ///
    /// # Errors
    /// The first error of `peak`, which says how many bytes a shape takes.
    pub fn judge<E>(
        budget: u64,
        (ranges, weights, most): (&Ranges, &[(Shape, u64)], usize),
        mut peak: impl FnMut(&Shape) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let shapes = match weights {
            [] => ranges.to_judge(most).into_iter().map(|shape| (shape, 1)).collect(),
            weights => weights.to_vec(),
        };
        let mut found = Self {
            budget_bytes: budget,
            judged: 0,
            holds: 0,
            is_every: weights.is_empty() && ranges.shapes() <= most as u64,
            highest_shape: Shape::new(),
            highest_bytes: 0,
        };
        for (shape, weight) in shapes {
            let bytes = peak(&shape)?;
            found.judged = found.judged.saturating_add(weight);
            if bytes <= budget {
                found.holds = found.holds.saturating_add(weight);
            }
            if bytes >= found.highest_bytes {
                (found.highest_shape, found.highest_bytes) = (shape, bytes);
            }
        }
        Ok(found)
    }

    /// Whether the budget holds in all shapes that it was held against.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.holds == self.judged
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::ranges::read;

    fn judged(ranges: &str, weights: &[(u64, u64)]) -> Within {
        let ranges = read(ranges);
        let shape = |n| Shape::from([("n".to_owned(), n)]);
        let weights: Vec<(Shape, u64)> = weights.iter().map(|&(n, weight)| (shape(n), weight)).collect();
        let peak = |shape: &Shape| Ok::<_, Infallible>(10 * shape["n"]);
        let Ok(found) = Within::judge(75, (&ranges, &weights, 16), peak);
        found
    }

    #[test]
    fn a_budget_holds_in_a_share_of_the_shapes() {
        let all = judged("n=1..10", &[]);
        assert_eq!((all.holds, all.judged, all.is_every), (7, 10, true));
        assert_eq!((all.highest_shape["n"], all.highest_bytes), (10, 100));
        assert!(!all.is_kept() && judged("n=1..7", &[]).is_kept());
        let some = judged("n=1..100", &[]);
        assert!(!some.is_every && some.judged <= 16 && some.highest_bytes == 1000);
    }

    #[test]
    fn frequent_shapes_count_as_often_as_they_are_seen() {
        let found = judged("n=1..10", &[(2, 30), (9, 10)]);
        assert_eq!((found.holds, found.judged, found.is_every), (30, 40, false));
    }
}
