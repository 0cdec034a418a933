//! Lists of budgets on the command line.

use remat::plan::{BudgetSpec, parse_share};

/// Most budgets that one range may stand for.
const MOST_IN_RANGE: u64 = 1000;

/// One item of `--budgets`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Budgets(Vec<BudgetSpec>);

impl Budgets {
    /// The budgets of all items.
    pub(crate) fn all(items: &[Self]) -> Vec<BudgetSpec> {
        items.iter().flat_map(|item| item.0.iter().copied()).collect()
    }
}

/// A budget, or a range of shares `90%..50%:5%` with both ends.
pub(crate) fn parse_budgets(text: &str) -> Result<Budgets, String> {
    let one = |text: &str| text.parse::<BudgetSpec>().map_err(|error| error.to_string());
    let Some((from, rest)) = text.split_once("..") else {
        return match one(text)? {
            budget @ (BudgetSpec::Share(_) | BudgetSpec::Bytes(_) | BudgetSpec::Min) => Ok(Budgets(vec![budget])),
            budget @ (BudgetSpec::Auto | BudgetSpec::None) => Err(format!(
                "`{budget}` is not a budget for a sweep: name shares, sizes or `min`"
            )),
        };
    };
    let not_range = || format!("`{text}` is not a range of shares: write `90%..50%:5%`");
    let (to, step) = rest.split_once(':').ok_or_else(not_range)?;
    let share = |text: &str| {
        if text.trim_end().ends_with('%') {
            parse_share(text).map_err(|error| error.to_string())
        } else {
            Err(not_range())
        }
    };
    let (from, to, step) = (share(from)?, share(to)?, share(step)?);
    let (low, high) = (from.min(to), from.max(to));
    if step == 0 || (high - low) / step >= MOST_IN_RANGE {
        return Err(format!("`{text}` stands for more than {MOST_IN_RANGE} budgets"));
    }
    let count = (high - low) / step;
    Ok(Budgets(
        (0..=count).map(|n| BudgetSpec::Share(high - n * step)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(text: &str) -> Vec<String> {
        let budgets = parse_budgets(text).unwrap();
        budgets.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_range_has_both_ends_and_may_be_written_either_way() {
        assert_eq!(shares("90%..75%:5%"), ["90%", "85%", "80%", "75%"]);
        assert_eq!(shares("75%..90%:5%"), ["90%", "85%", "80%", "75%"]);
        assert_eq!(shares("90%..80%:7%"), ["90%", "83%"]);
        assert_eq!(shares("min"), ["min"]);
        assert_eq!(shares("512MiB"), [(512u64 << 20).to_string()]);
    }

    #[test]
    fn what_is_no_list_of_budgets_is_rejected() {
        for text in [
            "auto",
            "none",
            "90%..50%",
            "90%..50%:0%",
            "1GB..2GB:1MB",
            "90%..50%:0.0001%",
            "..",
        ] {
            assert!(parse_budgets(text).is_err(), "{text}");
        }
    }
}
