//! Budgets as people write them.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{MILLION, QuantityError, QuantityKind, Written, bytes, percent};

/// A budget on the command line: `80%`, `512MiB`, `1.5GB`, `1048576`, `min` or `auto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BudgetSpec {
    /// A share of the baseline peak, in millionths.
    Share(u64),
    /// A number of bytes.
    Bytes(u64),
    /// The lowest peak the solver finds.
    Min,
    /// The lowest peak whose estimated overhead stays within the allowed one.
    Auto,
    /// No limit.
    None,
}

impl BudgetSpec {
    /// The budget in bytes for a baseline of this peak, rounded down; `None` for `min`, `auto` and `none`.
    #[must_use]
    pub fn bytes(self, baseline_peak: u64) -> Option<u64> {
        match self {
            Self::Share(millionths) => {
                let bytes = u128::from(baseline_peak) * u128::from(millionths) / u128::from(MILLION);
                Some(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            Self::Bytes(bytes) => Some(bytes),
            Self::Min | Self::Auto | Self::None => None,
        }
    }
}

impl FromStr for BudgetSpec {
    type Err = QuantityError;

    /// Nothing that leaves no room (`0`) or asks for nothing (more than `100%`) is a budget.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let kind = QuantityKind::Budget;
        match text.trim().to_ascii_lowercase().as_str() {
            "min" => return Ok(Self::Min),
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let written = Written::read(text, kind)?;
        let budget = if written.unit == "%" {
            let share = written.times(MILLION / 100).filter(|&share| share <= MILLION);
            let why = "it is more than the model takes as it is; write `none` for no limit";
            Self::Share(share.ok_or_else(|| QuantityError::new(text, kind, why))?)
        } else {
            Self::Bytes(bytes(text, &written, kind)?)
        };
        if written.is_zero() {
            let why = "nothing fits into it; write `min` for the lowest peak that is found, `none` for no limit";
            return Err(QuantityError::new(text, kind, why));
        }
        Ok(budget)
    }
}

impl fmt::Display for BudgetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(millionths) => f.write_str(&percent(*millionths)),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Min => f.write_str("min"),
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sizes_and_words_are_budgets() {
        for (text, budget) in [
            ("80%", BudgetSpec::Share(800_000)),
            ("12.5 %", BudgetSpec::Share(125_000)),
            ("100%", BudgetSpec::Share(1_000_000)),
            ("1048576", BudgetSpec::Bytes(1 << 20)),
            ("512MiB", BudgetSpec::Bytes(512 << 20)),
            ("1.5GB", BudgetSpec::Bytes(1_500_000_000)),
            ("min", BudgetSpec::Min),
            ("AUTO", BudgetSpec::Auto),
        ] {
            assert_eq!(text.parse(), Ok(budget), "{text}");
        }
    }

    #[test]
    fn what_is_no_budget_is_rejected_with_what_was_meant() {
        for (text, part) in [
            ("", "write a share (`80%`)"),
            ("%", "write a share (`80%`)"),
            ("-5%", "must not be negative"),
            ("80 percent", "write a share (`80%`)"),
            ("1e9", "write a share (`80%`)"),
            ("99999999999999999999GiB", "too large"),
            ("1.2.3MB", "write a share (`80%`)"),
            (".", "write a share (`80%`)"),
            ("0.8", "did you mean `80%`?"),
            (".125", "did you mean `12.5%`?"),
            ("1.5", "is a unit missing"),
            ("0", "nothing fits into it"),
            ("0%", "nothing fits into it"),
            ("0.0", "is a unit missing"),
            ("1.0", "did you mean `100%`?"),
            ("101%", "more than the model takes"),
            ("MiB", "the number is missing"),
            ("512Mi", "did you mean `512MiB`?"),
        ] {
            let error = text.parse::<BudgetSpec>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_share_rounds_down() {
        assert_eq!(BudgetSpec::Share(900_000).bytes(46_319), Some(41_687));
        assert_eq!(BudgetSpec::Share(800_000).bytes(46_319), Some(37_055));
    }
}
