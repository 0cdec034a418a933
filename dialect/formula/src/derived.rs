//! Variables that follow from others.

use crate::{Formula, Interval};

/// A variable that follows from those before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Derived {
    /// A formula over a number, rounded down.
    Quotient(Formula, u32),
    /// The larger of two.
    Max(Formula, Formula),
    /// The smaller of two.
    Min(Formula, Formula),
}

impl Derived {
    /// Its value where the variables before it have these.
    fn value(&self, variables: &[i128]) -> Option<i128> {
        Some(match self {
            Self::Quotient(of, by) => of.value(variables)?.div_euclid(i128::from(*by).max(1)),
            Self::Max(one, other) => one.value(variables)?.max(other.value(variables)?),
            Self::Min(one, other) => one.value(variables)?.min(other.value(variables)?),
        })
    }

    /// Bounds of its value where the variables before it lie in these intervals.
    pub(crate) fn bounds(&self, variables: &[Interval]) -> Interval {
        let both = |of: &Formula| of.bounds(variables);
        match self {
            Self::Quotient(of, by) => {
                let (least, most) = both(of);
                let by = i128::from(*by).max(1);
                (least.div_euclid(by), most.div_euclid(by))
            }
            Self::Max(one, other) => {
                let (one, other) = (both(one), both(other));
                (one.0.max(other.0), one.1.max(other.1))
            }
            Self::Min(one, other) => {
                let (one, other) = (both(one), both(other));
                (one.0.min(other.0), one.1.min(other.1))
            }
        }
    }
}

/// The values of all variables where the open dimensions have these; `None` where one is beyond all numbers.
pub fn values(dims: &[u64], derived: &[Derived]) -> Option<Vec<i128>> {
    let mut values: Vec<i128> = dims.iter().map(|&dim| i128::from(dim)).collect();
    for one in derived {
        let value = one.value(&values)?;
        values.push(value);
    }
    Some(values)
}

/// The bounds of all variables where the open dimensions lie in these intervals.
pub fn intervals(dims: &[(u64, u64)], derived: &[Derived]) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = dims
        .iter()
        .map(|&(least, most)| (i128::from(least), i128::from(most)))
        .collect();
    for one in derived {
        let bounds = one.bounds(&intervals);
        intervals.push(bounds);
    }
    intervals
}
