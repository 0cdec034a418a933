//! Sums, products and exact quotients of formulas. All give `None` where a coefficient, a power or the number of terms grows too large.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::formula::{Formula, MOST_POWER, MOST_TERMS, Term};

type Powers = Vec<(usize, u32)>;

impl Formula {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        collected(self.wide().chain(other.wide()))
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        collected(
            self.wide()
                .chain(other.wide().map(|(number, powers)| (-number, powers))),
        )
    }

    /// The product of both.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        let products = self.wide().flat_map(|(one, powers)| {
            other.wide().map(move |(number, others)| {
                let powers = powers.iter().chain(&others).copied().collect();
                (one.saturating_mul(number), powers)
            })
        });
        collected(products)
    }

    /// The formula that gives this one when it is multiplied by `divisor`; `None` where there is none with whole coefficients.
    #[must_use]
    pub fn over(&self, divisor: &Self) -> Option<Self> {
        let (by, steps) = (divisor.leading()?, MOST_TERMS);
        let mut left = self.clone();
        let mut quotient = Self::default();
        for _ in 0..steps {
            let Some(term) = left.leading() else {
                return Some(quotient);
            };
            let step = term.over(by)?;
            left = left.minus(&step.times(divisor)?)?;
            quotient = quotient.plus(&step)?;
        }
        None
    }

    /// The term that leads in long division: in an order that products keep.
    fn leading(&self) -> Option<&Term> {
        self.terms.iter().max_by_key(|term| {
            let powers = term.powers.iter().map(|&(variable, power)| (Reverse(variable), power));
            (term.degree(), powers.collect::<Vec<_>>())
        })
    }

    fn wide(&self) -> impl Iterator<Item = (i128, Powers)> {
        let wide = |term: &Term| (i128::from(term.coefficient), term.powers.clone());
        self.terms.iter().map(wide)
    }
}

impl Term {
    /// The exact quotient of two terms.
    fn over(&self, divisor: &Self) -> Option<Formula> {
        let is_whole = self.coefficient.checked_rem(divisor.coefficient)? == 0;
        let mut powers = self.powers.clone();
        for &(variable, power) in &divisor.powers {
            let own = powers.iter_mut().find(|(own, _)| *own == variable)?;
            own.1 = own.1.checked_sub(power)?;
        }
        let coefficient = self.coefficient.checked_div(divisor.coefficient)?;
        is_whole.then(|| Formula::sum([(coefficient, powers)]))
    }
}

/// The sum of coefficients times powers of variables.
fn collected(terms: impl Iterator<Item = (i128, Powers)>) -> Option<Formula> {
    let mut sum: BTreeMap<Powers, i128> = BTreeMap::new();
    for (number, powers) in terms {
        let mut merged: BTreeMap<usize, u32> = BTreeMap::new();
        for (variable, power) in powers {
            *merged.entry(variable).or_default() += power;
        }
        if merged.values().any(|&power| power > MOST_POWER) {
            return None;
        }
        let slot = sum.entry(merged.into_iter().collect()).or_default();
        *slot = slot.checked_add(number)?;
    }
    sum.retain(|_, number| *number != 0);
    if sum.len() > MOST_TERMS {
        return None;
    }
    let terms = sum
        .into_iter()
        .map(|(powers, number)| Some((i64::try_from(number).ok()?, powers)));
    Some(Formula::sum(terms.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formula::tests::formulas;

    proptest! {
        #[test]
        fn a_product_over_a_factor_is_the_other_factor(one in formulas(), other in formulas()) {
            let product = one.times(&other).unwrap();
            prop_assert_eq!(product.over(&other), (other != Formula::default()).then_some(one));
        }

        #[test]
        fn arithmetic_is_that_of_the_values(one in formulas(), other in formulas(), dims in [0i128..50, 0i128..50, 0i128..50]) {
            let of = |formula: Option<Formula>| formula.unwrap().value(&dims).unwrap();
            let (a, b) = (one.value(&dims).unwrap(), other.value(&dims).unwrap());
            prop_assert_eq!([of(one.plus(&other)), of(one.minus(&other)), of(one.times(&other))], [a + b, a - b, a * b]);
        }
    }

    #[test]
    fn a_remainder_or_a_coefficient_beyond_64_bits_has_no_formula() {
        let (h, w) = (Formula::variable(0), Formula::variable(1));
        assert_eq!(h.plus(&Formula::constant(1)).unwrap().over(&w), None);
        assert_eq!(h.over(&Formula::constant(2)), None);
        let large = Formula::constant(i64::MAX);
        assert_eq!(large.plus(&large), None);
        assert_eq!(large.times(&large), None);
        assert_eq!((0..9).try_fold(Formula::constant(1), |power, _| power.times(&h)), None);
    }
}
