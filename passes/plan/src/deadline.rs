//! Deadlines as people write them.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{MILLION, QuantityError, QuantityKind, Written, decimal, nanoseconds, too_large};

/// A deadline on the command line: `1.5x` or `40ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// So many millionths of the time of running every op once.
    Factor(u64),
    /// So many nanoseconds.
    Nanoseconds(u64),
}

impl Deadline {
    /// In nanoseconds, for a model that takes so long by itself; rounded down.
    #[must_use]
    pub fn nanoseconds(self, baseline: u64) -> u64 {
        match self {
            Self::Nanoseconds(nanoseconds) => nanoseconds,
            Self::Factor(millionths) => {
                let time = u128::from(baseline) * u128::from(millionths) / u128::from(MILLION);
                u64::try_from(time).unwrap_or(u64::MAX)
            }
        }
    }
}

impl FromStr for Deadline {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let kind = QuantityKind::Deadline;
        let written = Written::read(text, kind)?;
        if written.unit == "x" {
            let millionths = written.times(MILLION).ok_or_else(|| too_large(text, kind))?;
            return Ok(Self::Factor(millionths));
        }
        nanoseconds(text, &written, kind, 0).map(Self::Nanoseconds)
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(millionths) => write!(f, "{}x", decimal(*millionths, 6)),
            Self::Nanoseconds(nanoseconds) => write!(f, "{nanoseconds}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_and_times_are_deadlines() {
        for (text, deadline) in [
            ("1.5x", Deadline::Factor(1_500_000)),
            ("40ms", Deadline::Nanoseconds(40_000_000)),
            ("2 s", Deadline::Nanoseconds(2_000_000_000)),
            ("7us", Deadline::Nanoseconds(7_000)),
            ("1h", Deadline::Nanoseconds(3_600_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(deadline), "{text}");
        }
        assert_eq!(Deadline::Factor(1_500_000).nanoseconds(7), 10);
        assert_eq!(Deadline::Factor(u64::MAX).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(Deadline::Factor(1_500_000).to_string(), "1.5x");
    }

    #[test]
    fn what_is_no_deadline_is_rejected() {
        for text in ["", "x", "5", "-1x", "soon", "1.2.3s", "99999999999999999s"] {
            assert!(text.parse::<Deadline>().is_err(), "{text}");
        }
    }
}
