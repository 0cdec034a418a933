//! A table of variables that grows by what is derived from those before: in one form, so that equal quantities are one variable.

use crate::formula::{Derived, Formula, Interval, OpenDim, intervals, values};

/// Most derived variables of a table; quantities beyond have no formula.
const MOST_DERIVED: usize = 512;

/// The open dimensions, and what was derived from them.
///
/// All formulas that it gives are right wherever each dimension lies within its bounds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Variables {
    dims: Vec<OpenDim>,
    derived: Vec<Derived>,
    /// By variable.
    bounds: Vec<Interval>,
}

impl Variables {
    /// The open dimensions alone.
    #[must_use]
    pub fn new(dims: Vec<OpenDim>) -> Self {
        let ranges: Vec<_> = dims.iter().map(|dim| (dim.least, dim.most)).collect();
        let bounds = intervals(&ranges, &[]);
        Self {
            dims,
            derived: Vec::new(),
            bounds,
        }
    }

    /// The open dimensions: the first variables.
    #[must_use]
    pub fn dims(&self) -> &[OpenDim] {
        &self.dims
    }

    /// The variables after them.
    #[must_use]
    pub fn derived(&self) -> &[Derived] {
        &self.derived
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bounds.len()
    }

    /// The values of all variables where the open dimensions have these; `None` where one is beyond all numbers, or a dimension has none.
    #[must_use]
    pub fn values(&self, dims: &[u64]) -> Option<Vec<i128>> {
        values(dims, &self.derived).filter(|_| dims.len() == self.dims.len())
    }

    /// Bounds of a formula's value.
    #[must_use]
    pub fn bounds(&self, formula: &Formula) -> Interval {
        formula.bounds(&self.bounds)
    }

    /// `of` over `by`, rounded down.
    #[must_use]
    pub fn floor(&mut self, of: &Formula, by: u32) -> Option<Formula> {
        if by == 0 {
            return None;
        }
        // What is whole leaves the quotient; of its constant less than the divisor stays.
        let divisor = i64::from(by);
        let part = |number: &dyn Fn(i64) -> i64| {
            Formula::sum(
                of.terms()
                    .map(|(coefficient, powers)| (number(coefficient), powers.to_vec())),
            )
        };
        let whole = part(&|number| number.div_euclid(divisor));
        let rest = part(&|number| number.rem_euclid(divisor));
        let (least, most) = self.bounds(&rest);
        if least >= 0 && most < i128::from(by) {
            return Some(whole);
        }
        // floor((g x + c) / (g m)) = floor((x + floor(c / g)) / m)
        let factor = rest
            .terms()
            .filter(|(_, powers)| !powers.is_empty())
            .fold(divisor, |factor, (number, _)| gcd(factor, number));
        let fraction = if factor > 1 {
            let less = rest
                .terms()
                .map(|(number, powers)| (number.div_euclid(factor), powers.to_vec()));
            self.floor(&Formula::sum(less), u32::try_from(divisor / factor).ok()?)?
        } else if let Some((inner, by)) = self.unnested(&rest, by) {
            self.floor(&inner, by)?
        } else {
            self.variable(Derived::Quotient(rest, by))?
        };
        whole.plus(&fraction)
    }

    /// `of` over `by`, rounded up.
    #[must_use]
    pub fn ceil(&mut self, of: &Formula, by: u32) -> Option<Formula> {
        self.floor(&of.plus(&Formula::constant(i64::from(by) - 1))?, by)
    }

    /// floor((floor(x / m) + y) / n) = floor((x + m y) / (m n)), where the quotient stands once.
    fn unnested(&self, of: &Formula, by: u32) -> Option<(Formula, u32)> {
        let quotient = |variable: usize| match self.derived.get(variable.checked_sub(self.dims.len())?)? {
            Derived::Quotient(inner, divisor) => Some((inner, *divisor)),
            _ => None,
        };
        let uses = |variable: usize| {
            let powers = of.terms().flat_map(|(_, powers)| powers);
            powers.filter(|(other, _)| *other == variable).count()
        };
        of.terms().find_map(|term| {
            let (1, &[(variable, 1)]) = term else { return None };
            let (inner, divisor) = quotient(variable).filter(|_| uses(variable) == 1)?;
            let others = of.minus(&Formula::variable(variable))?;
            let inner = inner.plus(&others.times(&Formula::constant(divisor.into()))?)?;
            Some((inner, by.checked_mul(divisor)?))
        })
    }

    /// The larger of two.
    #[must_use]
    pub fn max(&mut self, one: &Formula, other: &Formula) -> Option<Formula> {
        self.extreme(one, other, true)
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(&mut self, one: &Formula, other: &Formula) -> Option<Formula> {
        self.extreme(one, other, false)
    }

    fn extreme(&mut self, one: &Formula, other: &Formula, is_max: bool) -> Option<Formula> {
        let (least, most) = self.bounds(&one.minus(other)?);
        if least >= 0 || most <= 0 {
            return Some(if (least >= 0) == is_max { one } else { other }.clone());
        }
        // max(x, max(x, y)) = max(x, y), and max(x, min(x, y)) = x.
        for (inner, outer) in [(one, other), (other, one)] {
            let (inner_is_max, a, b) = match self.definition(inner) {
                Some(Derived::Max(a, b)) => (true, a, b),
                Some(Derived::Min(a, b)) => (false, a, b),
                _ => continue,
            };
            if a == outer || b == outer {
                return Some(if inner_is_max == is_max { inner } else { outer }.clone());
            }
        }
        // The order of the two does not matter.
        let is_in_order = one.to_string() <= other.to_string();
        let (one, other) = if is_in_order { (one, other) } else { (other, one) };
        let (one, other) = (one.clone(), other.clone());
        self.variable(if is_max {
            Derived::Max(one, other)
        } else {
            Derived::Min(one, other)
        })
    }

    /// What a formula is that is one derived variable.
    fn definition(&self, formula: &Formula) -> Option<&Derived> {
        let mut terms = formula.terms();
        let (Some((1, &[(variable, 1)])), None) = (terms.next(), terms.next()) else {
            return None;
        };
        self.derived.get(variable.checked_sub(self.dims.len())?)
    }

    fn variable(&mut self, derived: Derived) -> Option<Formula> {
        let known = self.derived.iter().position(|other| *other == derived);
        let place = known.or_else(|| {
            let place = Some(self.derived.len()).filter(|&place| place < MOST_DERIVED)?;
            self.bounds.push(derived.bounds(&self.bounds));
            self.derived.push(derived);
            Some(place)
        })?;
        Some(Formula::variable(self.dims.len() + place))
    }
}

fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formula::tests::formulas;

    fn table() -> (Variables, [Formula; 2]) {
        let dim = |name: &str| OpenDim {
            name: name.to_owned(),
            least: 1,
            most: 1 << 31,
        };
        let variables = Variables::new(vec![dim("h"), dim("w")]);
        (variables, [0, 1].map(Formula::variable))
    }

    fn plus(formula: &Formula, number: i64) -> Formula {
        formula.plus(&Formula::constant(number)).unwrap()
    }

    fn two(formula: &Formula) -> Formula {
        formula.times(&Formula::constant(2)).unwrap()
    }

    #[test]
    fn equal_quotients_are_one_variable() {
        let (mut table, [h, _]) = table();
        let half = table.floor(&plus(&h, 1), 2).unwrap();
        assert_eq!(table.floor(&plus(&h, -1), 2), half.minus(&Formula::constant(1)));
        assert_eq!(table.floor(&plus(&two(&h), 1), 2), Some(h.clone()));
        // A quarter in two steps, and at once.
        let quarter = table.floor(&plus(&half, 1), 2).unwrap();
        assert_eq!(table.floor(&plus(&h, 3), 4), Some(quarter.clone()));
        assert_eq!(table.floor(&plus(&two(&h), 7), 8), Some(quarter));
        assert_eq!(table.derived().len(), 2);
        assert_eq!(table.ceil(&h, 2), Some(half));
        assert_eq!(table.floor(&h, 0), None);
    }

    #[test]
    fn an_extreme_that_bounds_decide_is_no_variable() {
        let (mut table, [h, w]) = table();
        assert_eq!(table.max(&Formula::constant(1), &h), Some(h.clone()));
        assert_eq!(table.min(&plus(&h, 1), &h), Some(h.clone()));
        let least = table.min(&h, &w).unwrap();
        assert_eq!(table.min(&w, &h), Some(least.clone()));
        assert_eq!(table.max(&h, &least), Some(h.clone()));
        assert_eq!(table.min(&h, &least), Some(least));
        assert_eq!(table.derived().len(), 1);
    }

    #[test]
    fn a_full_table_has_no_more_variables() {
        let (mut table, [h, _]) = table();
        let mut by = 3..;
        while table.floor(&h, by.next().unwrap()).is_some() {}
        assert_eq!(table.derived().len(), MOST_DERIVED);
    }

    proptest! {
        #[test]
        fn derived_variables_have_the_values_that_they_stand_for(
            formulas in prop::collection::vec(formulas(), 1..6),
            steps in prop::collection::vec((0usize..3, 0usize..6, 0usize..6, 1u32..9), 1..9),
            dims in [1u64..40, 1u64..40, 1u64..40],
        ) {
            let dim = |name: &str| OpenDim { name: name.to_owned(), least: 1, most: 40 };
            let mut table = Variables::new(vec![dim("a"), dim("b"), dim("c")]);
            let mut known: Vec<(Formula, i128)> = Vec::new();
            let given: Vec<i128> = dims.iter().map(|&dim| dim.into()).collect();
            known.extend(formulas.into_iter().map(|formula| {
                let value = formula.value(&given).unwrap();
                (formula, value)
            }));
            for (kind, one, other, by) in steps {
                let (one, a) = known[one % known.len()].clone();
                let (other, b) = known[other % known.len()].clone();
                let (formula, value) = match kind {
                    0 => (table.floor(&one, by), a.div_euclid(by.into())),
                    1 => (table.max(&one, &other), a.max(b)),
                    _ => (table.min(&one, &other), a.min(b)),
                };
                let Some(formula) = formula else { continue };
                let values = table.values(&dims).unwrap();
                prop_assert_eq!(formula.value(&values), Some(value));
                known.push((formula, value));
            }
        }
    }
}
