//! Budgets as people write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

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

/// The text is not a budget.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a budget: write a share (`80%`), a size (`512MiB`, `1.5GB`, `1048576`), `min`, `auto` or `none`")]
pub struct BudgetParseError(String);

impl BudgetSpec {
    /// The budget in bytes for a baseline of this peak, rounded down; `None` for `min`, `auto` and `none`.
    #[must_use]
    pub fn bytes(self, baseline_peak: u64) -> Option<u64> {
        match self {
            Self::Share(millionths) => {
                let bytes = u128::from(baseline_peak) * u128::from(millionths) / 1_000_000;
                Some(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            Self::Bytes(bytes) => Some(bytes),
            Self::Min | Self::Auto | Self::None => None,
        }
    }
}

impl FromStr for BudgetSpec {
    type Err = BudgetParseError;

    fn from_str(text: &str) -> Result<Self, BudgetParseError> {
        let error = || BudgetParseError(text.to_owned());
        let trimmed = text.trim();
        match trimmed.to_ascii_lowercase().as_str() {
            "min" => return Ok(Self::Min),
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "%" => return parse_scaled(number, 10_000).map(Self::Share).ok_or_else(error),
            "" | "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return Err(error()),
        };
        parse_scaled(number, scale).map(Self::Bytes).ok_or_else(error)
    }
}

/// A non-negative decimal number times `scale`, rounded down, without passing through floating point.
fn parse_scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 12 {
        return None;
    }
    let digits = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<u128>().ok()
        }
    };
    let denominator = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = digits(whole)?
        .checked_mul(denominator)?
        .checked_add(digits(fraction)?)?;
    u64::try_from(value.checked_mul(u128::from(scale))? / denominator).ok()
}

impl fmt::Display for BudgetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(millionths) => write!(f, "{}%", *millionths as f64 / 10_000.0),
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
    fn what_is_no_budget_is_rejected() {
        for text in [
            "",
            "%",
            "-5%",
            "80 percent",
            "1e9",
            "99999999999999999999GiB",
            "1.2.3MB",
            ".",
        ] {
            assert!(text.parse::<BudgetSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_rounds_down() {
        assert_eq!(BudgetSpec::Share(900_000).bytes(46_319), Some(41_687));
        assert_eq!(BudgetSpec::Share(800_000).bytes(46_319), Some(37_055));
    }
}
