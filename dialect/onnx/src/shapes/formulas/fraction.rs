//! Elements that models compute sizes with: whole numbers, and in floating point, quotients.

use remat_formula::{Formula, Interval, Variables};

/// Factors of floating point have numerators up to this: with larger ones, products of sizes are rounded.
const MOST_NUMERATOR: i64 = 1024;
/// The same for their denominators.
const MOST_DENOMINATOR: u32 = 1 << 20;

/// A formula over a positive number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fraction {
    pub(super) over: Formula,
    pub(super) by: u32,
}

impl From<Formula> for Fraction {
    fn from(over: Formula) -> Self {
        Self { over, by: 1 }
    }
}

impl Fraction {
    /// A number with few binary places; `None` for others.
    pub(super) fn of_float(value: f64) -> Option<Self> {
        let exact = Self::exact(value)?;
        let is_small =
            exact.by == 1 || (exact.by <= MOST_DENOMINATOR && exact.over.as_constant()?.abs() <= MOST_NUMERATOR);
        is_small.then_some(exact)
    }

    /// A number with so many binary places that its denominator is one; `None` for others.
    pub(super) fn exact(value: f64) -> Option<Self> {
        let (mut over, mut by) = (value, 1_u32);
        while over.fract() != 0.0 {
            (over, by) = (over * 2.0, by.checked_mul(2)?);
        }
        (over.is_finite() && over.abs() < 9e15).then(|| Self {
            over: Formula::constant(over as i64),
            by,
        })
    }

    /// The formula, if there is nothing to divide.
    pub(super) fn whole(&self) -> Option<&Formula> {
        (self.by == 1).then_some(&self.over)
    }

    /// The number, if it is a whole one.
    pub(super) fn as_constant(&self) -> Option<i64> {
        self.whole()?.as_constant()
    }

    /// The sum of both.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        Self::new(
            self.scaled(other)?.plus(&other.scaled(self)?)?,
            self.by.checked_mul(other.by)?,
        )
    }

    /// The difference of both.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        Self::new(
            self.scaled(other)?.minus(&other.scaled(self)?)?,
            self.by.checked_mul(other.by)?,
        )
    }

    /// The product of both.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        Self::new(self.over.times(&other.over)?, self.by.checked_mul(other.by)?)
    }

    /// The exact quotient of both.
    pub(super) fn over(&self, other: &Self) -> Option<Self> {
        let over = self.scaled(other)?;
        match other.over.as_constant() {
            Some(number) => Self::new(
                over,
                self.by.checked_mul(u32::try_from(number).ok().filter(|&by| by > 0)?)?,
            ),
            None => Self::new(over.over(&other.over)?, self.by),
        }
    }

    /// The greatest whole number that is not above it.
    pub(super) fn floor(&self, variables: &mut Variables) -> Option<Formula> {
        variables.floor(&self.over, self.by)
    }

    /// The smallest whole number that is not below it.
    pub(super) fn ceil(&self, variables: &mut Variables) -> Option<Formula> {
        variables.ceil(&self.over, self.by)
    }

    /// The whole number towards zero, of what is not negative.
    pub(super) fn truncated(&self, variables: &mut Variables) -> Option<Formula> {
        if self.by == 1 {
            return Some(self.over.clone());
        }
        let is_positive = variables.bounds(&self.over).0 >= 0;
        is_positive.then(|| self.floor(variables))?
    }

    /// Bounds of the difference of both, times a positive number: their signs count.
    pub(super) fn difference(&self, other: &Self, variables: &Variables) -> Option<Interval> {
        Some(variables.bounds(&self.minus(other)?.over))
    }

    fn scaled(&self, other: &Self) -> Option<Formula> {
        self.over.times(&Formula::constant(other.by.into()))
    }

    fn new(over: Formula, by: u32) -> Option<Self> {
        let whole = over.over(&Formula::constant(by.into()));
        Some(whole.map_or(Self { over, by }, Self::from))
    }
}

#[cfg(test)]
mod tests {
    use remat_formula::OpenDim;

    use super::*;

    #[test]
    fn factors_of_few_binary_places_are_exact() {
        let h = Fraction::from(Formula::variable(0));
        let half = Fraction::of_float(0.5).unwrap();
        assert_eq!(h.times(&half).unwrap().by, 2);
        assert_eq!(
            h.times(&half)
                .unwrap()
                .times(&Fraction::of_float(4.0).unwrap())
                .unwrap()
                .by,
            1
        );
        assert_eq!(h.over(&half).unwrap().whole(), h.plus(&h).unwrap().whole());
        for wrong in [0.1, f64::NAN, f64::INFINITY, 1025.0 / 1024.0, 1e300] {
            assert_eq!(Fraction::of_float(wrong), None, "{wrong}");
        }
        let dim = OpenDim {
            name: "h".to_owned(),
            least: 1,
            most: 9,
        };
        let mut variables = Variables::new(vec![dim]);
        let quotient = h.times(&half).unwrap();
        assert_eq!(quotient.truncated(&mut variables), quotient.floor(&mut variables));
        let negative = Fraction::from(Formula::default()).minus(&quotient).unwrap();
        assert_eq!(negative.truncated(&mut variables), None);
    }
}
