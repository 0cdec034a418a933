//! Sizes as formulas: polynomials with whole coefficients in the dimensions that a model leaves open, and in what follows from these.
//!
//! ```text
//! 4*d0*d1^2+64           d0 and d1 are the first two variables
//! ```
//!
//! The variables are the open dimensions, in their order, and then the derived ones: quotients that are rounded down, maxima and minima of
//! formulas in the variables before. [`crate::Variables`] makes these, in one form.

use std::fmt;

/// Most variables.
pub const MOST_VARIABLES: usize = 64;
/// Highest power of a variable.
pub(crate) const MOST_POWER: u32 = 8;
/// Most terms of a formula.
pub(crate) const MOST_TERMS: usize = 64;

/// A polynomial; without terms it is 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Formula {
    /// Each product of powers once, none with the coefficient 0.
    pub(crate) terms: Vec<Term>,
}

/// A coefficient times powers of variables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Term {
    pub(crate) coefficient: i64,
    /// Variables and their powers, at least 1, by variable.
    pub(crate) powers: Vec<(usize, u32)>,
}

impl Term {
    pub(crate) fn degree(&self) -> u32 {
        self.powers.iter().map(|&(_, power)| power).sum()
    }
}

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

/// A dimension that a model leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenDim {
    /// Its name.
    pub name: String,
    /// Its smallest size.
    pub least: u64,
    /// Its largest size.
    pub most: u64,
}

/// The smallest and the largest value.
pub type Interval = (i128, i128);

impl Formula {
    /// A number.
    #[must_use]
    pub fn constant(value: i64) -> Self {
        Self::sum([(value, Vec::new())])
    }

    /// A variable.
    #[must_use]
    pub fn variable(variable: usize) -> Self {
        Self::sum([(1, vec![(variable, 1)])])
    }

    /// The sum of coefficients times powers of variables.
    pub fn sum(terms: impl IntoIterator<Item = (i64, Vec<(usize, u32)>)>) -> Self {
        let mut sum: Vec<Term> = Vec::new();
        for (coefficient, mut powers) in terms {
            powers.sort_unstable();
            powers.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
            powers.retain(|&(_, power)| power > 0);
            match sum.iter_mut().find(|term| term.powers == powers) {
                Some(term) => term.coefficient = term.coefficient.saturating_add(coefficient),
                None => sum.push(Term { coefficient, powers }),
            }
        }
        sum.retain(|term| term.coefficient != 0);
        // The highest degree comes first.
        sum.sort_by(|one, other| {
            other
                .degree()
                .cmp(&one.degree())
                .then_with(|| one.powers.cmp(&other.powers))
        });
        Self { terms: sum }
    }

    /// Its terms: coefficients, and variables with their powers.
    pub fn terms(&self) -> impl Iterator<Item = (i64, &[(usize, u32)])> {
        self.terms.iter().map(|term| (term.coefficient, term.powers.as_slice()))
    }

    /// The number that it is, if there is no variable in it.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [term] if term.powers.is_empty() => Some(term.coefficient),
            _ => None,
        }
    }

    /// Its value where the variables have these; `None` where that is beyond all numbers.
    #[must_use]
    pub fn value(&self, variables: &[i128]) -> Option<i128> {
        self.terms.iter().try_fold(0i128, |sum, term| {
            let product = term
                .powers
                .iter()
                .try_fold(i128::from(term.coefficient), |product, &(variable, power)| {
                    product.checked_mul(variables.get(variable)?.checked_pow(power)?)
                });
            sum.checked_add(product?)
        })
    }

    /// Bounds of its value where the variables lie in these intervals.
    pub fn bounds(&self, variables: &[Interval]) -> Interval {
        let mut sum = (0i128, 0i128);
        for term in &self.terms {
            let mut product = (i128::from(term.coefficient), i128::from(term.coefficient));
            for &(variable, power) in &term.powers {
                product = times(
                    product,
                    raised(variables.get(variable).copied().unwrap_or_default(), power),
                );
            }
            sum = (sum.0.saturating_add(product.0), sum.1.saturating_add(product.1));
        }
        sum
    }

    /// Reads what [`Display`](fmt::Display) writes. Variables are below `variables`.
    pub fn parse(text: &str, variables: usize) -> Option<Self> {
        let mut terms = Vec::new();
        let mut rest = text;
        let mut sign = 1;
        if let Some(after) = rest.strip_prefix('-') {
            (rest, sign) = (after, -1);
        }
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            let (term, after) = rest.split_at(end);
            let (coefficient, powers) = parse_term(term, variables)?;
            terms.push((coefficient.checked_mul(sign)?, powers));
            if terms.len() > MOST_TERMS {
                return None;
            }
            match after.split_at_checked(1) {
                Some((operator, after)) => (rest, sign) = (after, if operator == "-" { -1 } else { 1 }),
                None => return Some(Self::sum(terms)),
            }
        }
    }
}

/// `4*d0*d1^2`.
fn parse_term(text: &str, variables: usize) -> Option<(i64, Vec<(usize, u32)>)> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_plain)
    };
    let (mut coefficient, mut powers) = (1, Vec::new());
    for (place, factor) in text.split('*').enumerate() {
        let Some(variable) = factor.strip_prefix('d') else {
            coefficient = number(factor).filter(|_| place == 0)?;
            continue;
        };
        let (variable, power) = variable.split_once('^').unwrap_or((variable, "1"));
        let variable = usize::try_from(number(variable)?)
            .ok()
            .filter(|&variable| variable < variables)?;
        let power = u32::try_from(number(power)?)
            .ok()
            .filter(|power| (1..=MOST_POWER).contains(power))?;
        powers.push((variable, power));
    }
    Some((coefficient, powers))
}

impl Formula {
    /// Its text, with the names that `name` gives variables.
    pub(crate) fn text(&self, name: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for (place, term) in self.terms.iter().enumerate() {
            if term.coefficient < 0 {
                text.push('-');
            } else if place > 0 {
                text.push('+');
            }
            let size = term.coefficient.unsigned_abs();
            let number = (size != 1 || term.powers.is_empty()).then(|| size.to_string());
            let powers = term.powers.iter().map(|&(variable, power)| match power {
                1 => name(variable),
                _ => format!("{}^{power}", name(variable)),
            });
            text += &number.into_iter().chain(powers).collect::<Vec<_>>().join("*");
        }
        if self.terms.is_empty() {
            text.push('0');
        }
        text
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|variable| format!("d{variable}")))
    }
}

impl Derived {
    /// The number that it is, if there is no variable in it.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        self.value(&[])?.try_into().ok()
    }

    /// Its value where the variables before it have these.
    fn value(&self, variables: &[i128]) -> Option<i128> {
        Some(match self {
            Self::Quotient(of, by) => of.value(variables)?.div_euclid(i128::from(*by).max(1)),
            Self::Max(one, other) => one.value(variables)?.max(other.value(variables)?),
            Self::Min(one, other) => one.value(variables)?.min(other.value(variables)?),
        })
    }

    /// Bounds of its value where the variables before it lie in these intervals.
    #[must_use]
    pub fn bounds(&self, variables: &[Interval]) -> Interval {
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

fn times(one: Interval, other: Interval) -> Interval {
    let products = [(one.0, other.0), (one.0, other.1), (one.1, other.0), (one.1, other.1)];
    let products = products.map(|(one, other)| one.saturating_mul(other));
    let [a, b, c, d] = products;
    (a.min(b).min(c).min(d), a.max(b).max(c).max(d))
}

fn raised((least, most): Interval, power: u32) -> Interval {
    if least >= 0 {
        return (least.saturating_pow(power), most.saturating_pow(power));
    }
    let largest = least.saturating_abs().max(most.saturating_abs()).saturating_pow(power);
    (
        if power.is_multiple_of(2) {
            0
        } else {
            largest.saturating_neg()
        },
        largest,
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn formulas() -> impl Strategy<Value = Formula> {
        let power = (0usize..3, 1u32..3);
        let term = (-50i64..50, prop::collection::vec(power, 0..3));
        prop::collection::vec(term, 0..5).prop_map(Formula::sum)
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(formula in formulas()) {
            prop_assert_eq!(Formula::parse(&formula.to_string(), 3), Some(formula));
        }

        #[test]
        fn values_lie_within_their_bounds(
            formula in formulas(), other in formulas(), by in 1u32..5, dims in [(0u64..9, 0u64..9), (0u64..9, 0u64..9)]
        ) {
            let shrunk = |formula: &Formula| Formula::sum(formula.terms().map(|(number, powers)| {
                (number, powers.iter().map(|&(variable, power)| (variable % 2, power)).collect())
            }));
            let (formula, other) = (shrunk(&formula), shrunk(&other));
            let derived = [
                Derived::Quotient(formula.clone(), by),
                Derived::Max(formula.clone(), other.clone()),
                Derived::Min(Formula::variable(2), other),
            ];
            let ranges = dims.map(|(one, other)| (one.min(other), one.max(other)));
            let bounds = intervals(&ranges, &derived);
            for one in ranges[0].0..=ranges[0].1 {
                for other in ranges[1].0..=ranges[1].1 {
                    let values = values(&[one, other], &derived).unwrap();
                    for (value, (least, most)) in values.iter().zip(&bounds) {
                        prop_assert!(least <= value && value <= most);
                    }
                }
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9d*+^-]{0,20}") {
            let _ = Formula::parse(&text, 2);
        }
    }

    #[test]
    fn formulas_are_written_as_in_a_textbook() {
        let formula = Formula::sum([
            (64, vec![]),
            (-3, vec![(0, 1)]),
            (4, vec![(1, 2), (0, 1)]),
            (2, vec![(0, 1)]),
        ]);
        assert_eq!(formula.to_string(), "4*d0*d1^2-d0+64");
        assert_eq!(formula.value(&[2, 3]), Some(4 * 2 * 9 - 2 + 64));
        for wrong in ["", "4*", "d2", "d0^0", "d0^9", "d0*4", "4 *d0", "+4", "--4", "4+", "x"] {
            assert_eq!(Formula::parse(wrong, 2), None, "{wrong}");
        }
    }
}
