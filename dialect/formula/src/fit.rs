//! Formulas for numbers that are known for some sizes of the open dimensions.
//!
//! The number of variables that matter, their powers, and what is derived from them are found one dimension at a time: where all other
//! dimensions are the same, the numbers have to be a polynomial of this one, or of a quotient or minimum of it. The coefficients follow from
//! linear equations modulo a prime, and the formula counts only if it gives every number that is known, exactly.

use std::collections::BTreeMap;

use crate::formula::{Derived, Formula, MOST_VARIABLES, values};
use crate::variables::Variables;

/// Highest power of one dimension.
const MOST_POWER: u32 = 3;
/// Most coefficients that are looked for.
const MOST_COEFFICIENTS: usize = 48;
/// Largest divisor of a quotient that is tried: strides of networks are powers of two, blocks of kernels too.
const MOST_DIVISOR: u64 = 64;
/// Largest number that a minimum is tried with.
const MOST_MINIMUM: u64 = 256;
/// Share of a bound, as a divisor, by which another one may be larger that is smaller elsewhere.
const CLOSE: u128 = 8;
/// A Mersenne prime, larger than twice any size.
const PRIME: u64 = (1 << 61) - 1;

/// Formulas that share their derived variables.
#[derive(Clone, Debug)]
pub struct Fit {
    samples: Vec<Vec<u64>>,
    /// Samples that differ in one dimension only, for each dimension.
    lines: Vec<Vec<Vec<usize>>>,
    dims: usize,
    /// The dimension on which numbers depend by a product only, up to some number.
    capped: Option<usize>,
    derived: Vec<Derived>,
    /// The values of all variables in every sample.
    variables: Vec<Vec<i128>>,
}

/// How numbers depend on one dimension.
#[derive(Clone)]
struct Basis {
    /// Variables and their highest powers.
    powers: Vec<(usize, u32)>,
    /// Whether lower powers count, too, and a number without any: a polynomial, else a product.
    is_sum: bool,
    /// So many points of a line more than there are coefficients say that it is so.
    spare: usize,
}

impl Basis {
    fn product(variable: usize, power: u32, spare: usize) -> Self {
        Self {
            powers: vec![(variable, power)],
            is_sum: false,
            spare,
        }
    }

    fn sum(powers: &[(usize, u32)], spare: usize) -> Self {
        Self {
            powers: powers.to_vec(),
            is_sum: true,
            spare,
        }
    }

    /// What the coefficients are of.
    fn factors(&self) -> Vec<Vec<(usize, u32)>> {
        if !self.is_sum {
            return vec![self.powers.clone()];
        }
        // Two variables of one dimension are added, not multiplied.
        let powers = self.powers.iter();
        let powers = powers.flat_map(|&(variable, most)| (1..=most).map(move |power| vec![(variable, power)]));
        [Vec::new()].into_iter().chain(powers).collect()
    }
}

/// Points beyond the coefficients for what is a guess among few, and among many.
const SPARE: usize = 1;
const SPARE_OF_MANY: usize = 3;

impl Fit {
    /// Numbers will be given for these sizes of the open dimensions, at least one, each with as many sizes. Formulas may use variables that are
    /// `derived` already.
    #[must_use]
    pub fn new(samples: Vec<Vec<u64>>, derived: Vec<Derived>) -> Self {
        let dims = samples.first().map_or(0, Vec::len);
        let lines = (0..dims).map(|dim| lines(&samples, dim)).collect();
        let variables = samples
            .iter()
            .map(|sample| values(sample, &derived).unwrap_or_default());
        Self {
            lines,
            dims,
            capped: None,
            variables: variables.collect(),
            derived,
            samples,
        }
    }

    /// Numbers depend on this dimension by a product only, up to some size of it: the number of threads that have workspace of their own.
    #[must_use]
    pub fn capped(mut self, dim: usize) -> Self {
        self.capped = Some(dim);
        self
    }

    /// The variables that follow from the open dimensions, those that formulas so far made necessary among them.
    #[must_use]
    pub fn derived(&self) -> &[Derived] {
        &self.derived
    }

    /// A formula that gives these numbers, one for each sample; `None` where none of the form was found.
    #[must_use]
    pub fn exact(&mut self, numbers: &[u64]) -> Option<Formula> {
        let first = *numbers.first()?;
        if numbers.iter().all(|&number| number == first) {
            return i64::try_from(first).ok().map(Formula::constant);
        }
        let kept = self.derived.len();
        let found = self.with_bases(numbers);
        if found.is_none() {
            self.forget(kept);
        }
        found
    }

    /// A formula over other variables as one over those of this: `dims` says which dimension of the samples each of theirs is. One that has the same
    /// size in all of the samples is that number: it may be that of no input. `None` where more variables would be needed than formulas may have.
    #[must_use]
    pub fn adopted(&mut self, formula: &Formula, of: &Variables, dims: &[usize]) -> Option<Formula> {
        let kept = self.derived.len();
        let found = self.over_own(formula, of, dims);
        if found.is_none() {
            self.forget(kept);
        }
        found
    }

    fn over_own(&mut self, formula: &Formula, of: &Variables, dims: &[usize]) -> Option<Formula> {
        let mut sum = Formula::constant(0);
        for (coefficient, powers) in formula.terms() {
            let mut product = Formula::constant(coefficient);
            for &(variable, power) in powers {
                let own = self.own(variable, of, dims)?;
                for _ in 0..power {
                    product = product.times(&own)?;
                }
            }
            sum = sum.plus(&product)?;
        }
        Some(sum)
    }

    /// What stands for one of the others' variables.
    fn own(&mut self, variable: usize, of: &Variables, dims: &[usize]) -> Option<Formula> {
        let Some(place) = variable.checked_sub(of.dims().len()) else {
            let dim = *dims.get(variable)?;
            let mut sizes = self.samples.iter().filter_map(|sample| sample.get(dim));
            let first = *sizes.next()?;
            return match sizes.all(|&size| size == first) {
                true => i64::try_from(first).ok().map(Formula::constant),
                false => Some(Formula::variable(dim)),
            };
        };
        let derived = match of.derived().get(place)? {
            Derived::Quotient(one, by) => Derived::Quotient(self.over_own(one, of, dims)?, *by),
            Derived::Max(one, other) => Derived::Max(self.over_own(one, of, dims)?, self.over_own(other, of, dims)?),
            Derived::Min(one, other) => Derived::Min(self.over_own(one, of, dims)?, self.over_own(other, of, dims)?),
        };
        if let Some(number) = derived.as_constant() {
            return Some(Formula::constant(number));
        }
        if let Some(known) = self.derived.iter().position(|known| *known == derived) {
            return Some(Formula::variable(self.dims + known));
        }
        let variable = self.dims + self.derived.len();
        if variable >= MOST_VARIABLES {
            return None;
        }
        self.derive(derived);
        Some(Formula::variable(variable))
    }

    fn with_bases(&mut self, numbers: &[u64]) -> Option<Formula> {
        let mut bases = Vec::new();
        for dim in 0..self.dims {
            if self.lines[dim].iter().any(|line| varies(line, numbers)) {
                bases.push(self.basis(dim, numbers)?);
            }
        }
        self.solved(&products(&bases)?, numbers)
    }

    /// A number that is nowhere below these, where they do not shrink as sizes grow: a product of some dimensions, or a constant, whichever is the
    /// smallest for the largest sizes.
    ///
    /// Sizes between two samples count: there, numbers are as large as those of the larger one at most, so the bound of the smaller one has
    /// to be no smaller.
    #[must_use]
    pub fn bound(&self, numbers: &[u64]) -> Formula {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut best: Option<(u128, u128, Formula)> = None;
        for chosen in 0u32..1 << self.dims.min(6) {
            let of: Vec<usize> = (0..self.dims).filter(|dim| chosen >> dim & 1 == 1).collect();
            let product = |sample: &[u64]| {
                let sizes = of.iter().map(|&dim| sample[dim].max(1));
                sizes.fold(1u64, u64::saturating_mul)
            };
            let own = self
                .samples
                .iter()
                .map(|sample| product(sample))
                .zip(numbers.iter().copied());
            let below = self
                .steps(numbers)
                .map(|(smaller, number)| (product(&self.samples[smaller]), number));
            let factor = own.chain(below).map(|(product, number)| number.div_ceil(product)).max();
            let factor = factor.unwrap_or(0);
            let values = self
                .samples
                .iter()
                .map(|sample| u128::from(product(sample)) * u128::from(factor));
            let (most, sum) = values.fold((0, 0), |(most, sum): (u128, u128), value| {
                (most.max(value), sum + value)
            });
            let is_better = |&(least, others, _): &(u128, u128, Formula)| {
                let close = least / CLOSE;
                most + close < least || most <= least + close && sum < others
            };
            if best.as_ref().is_none_or(is_better) {
                let powers = of.iter().map(|&dim| (dim, 1)).collect();
                best = Some((most, sum, Formula::sum([(whole(factor), powers)])));
            }
        }
        best.map(|(_, _, formula)| formula).unwrap_or_default()
    }

    /// For pairs of samples that are next to each other on a line, the smaller one and the number of the larger one.
    fn steps<'n>(&'n self, numbers: &'n [u64]) -> impl Iterator<Item = (usize, u64)> + 'n {
        // Up to its cap, a number grows with this dimension as a product does.
        let dims = (0..self.dims).filter(|&dim| self.capped != Some(dim));
        dims.flat_map(move |dim| {
            self.lines[dim].iter().flat_map(move |line| {
                let mut line = line.clone();
                line.sort_by_key(|&sample| self.samples[sample][dim]);
                let pairs: Vec<(usize, usize)> = line.windows(2).map(|pair| (pair[0], pair[1])).collect();
                pairs.into_iter().map(|(smaller, larger)| (smaller, numbers[larger]))
            })
        })
    }

    /// The simplest basis in which the numbers are as they are along every line of this dimension.
    fn basis(&mut self, dim: usize, numbers: &[u64]) -> Option<Basis> {
        let products = |variable, spare| [1, 2].map(|power| Basis::product(variable, power, spare));
        let sums = |variable, spare| [1, 2].map(|power| Basis::sum(&[(variable, power)], spare));
        if self.capped == Some(dim) {
            let one = |variable| vec![Basis::product(variable, 1, SPARE)];
            let found = self.first_that_holds(dim, one(dim), numbers);
            return found.or_else(|| self.with_derived(dim, one, numbers));
        }
        let plain = products(dim, SPARE).into_iter().chain(sums(dim, SPARE)).collect();
        let of_derived = |variable| {
            let (products, sums) = (products(variable, SPARE_OF_MANY), sums(variable, SPARE_OF_MANY));
            products.into_iter().chain(sums).collect()
        };
        // A sum of two variables comes last: all that one explains, it explains more simply.
        let of_both = |variable| vec![Basis::sum(&[(dim, 1), (variable, 1)], SPARE_OF_MANY)];
        self.first_that_holds(dim, plain, numbers)
            .or_else(|| self.with_derived(dim, of_derived, numbers))
            .or_else(|| self.first_that_holds(dim, vec![Basis::sum(&[(dim, MOST_POWER)], SPARE)], numbers))
            .or_else(|| self.with_derived(dim, of_both, numbers))
    }

    fn first_that_holds(&self, dim: usize, bases: Vec<Basis>, numbers: &[u64]) -> Option<Basis> {
        bases.into_iter().find(|basis| self.holds(dim, basis, numbers))
    }

    /// A basis with a derived variable: one that is there, or a new one.
    fn with_derived(&mut self, dim: usize, bases: impl Fn(usize) -> Vec<Basis>, numbers: &[u64]) -> Option<Basis> {
        let known = self.derived_of(dim);
        let known = known.into_iter().flat_map(&bases).collect();
        if let Some(found) = self.first_that_holds(dim, known, numbers) {
            return Some(found);
        }
        let variable = self.dims + self.derived.len();
        if variable >= MOST_VARIABLES {
            return None;
        }
        for candidate in self.candidates(dim) {
            self.derive(candidate);
            if let Some(found) = self.first_that_holds(dim, bases(variable), numbers) {
                return Some(found);
            }
            self.forget(variable - self.dims);
        }
        None
    }

    /// What may be derived from a dimension: sizes of windows are quotients that are rounded up or down, and workspace grows up to a number
    /// of threads.
    fn candidates(&self, dim: usize) -> Vec<Derived> {
        let of = Formula::variable(dim);
        if self.capped == Some(dim) {
            let sizes = self.samples.iter().map(|sample| sample[dim]);
            let top = sizes.max().unwrap_or(0).min(MOST_MINIMUM);
            let minimum = |top| Derived::Min(of.clone(), Formula::constant(i64::try_from(top).unwrap_or(0)));
            return (2..top).map(minimum).collect();
        }
        let divisors = (2..=MOST_DIVISOR).filter(|by| by.is_power_of_two() || *by <= 16);
        let quotients = divisors.flat_map(|by| (0..by).map(move |more| (more, by)));
        quotients.map(|(more, by)| quotient(&of, more, by)).collect()
    }

    fn derive(&mut self, derived: Derived) {
        self.derived.push(derived);
        for (sample, variables) in self.samples.iter().zip(&mut self.variables) {
            *variables = values(sample, &self.derived).unwrap_or_default();
        }
    }

    fn forget(&mut self, kept: usize) {
        self.derived.truncate(kept);
        for variables in &mut self.variables {
            variables.truncate(self.dims + kept);
        }
    }

    /// Variables that were derived from this dimension alone.
    fn derived_of(&self, dim: usize) -> Vec<usize> {
        let is_of = |of: &Formula| {
            of.terms()
                .all(|(_, powers)| powers.iter().all(|&(variable, _)| variable == dim))
        };
        let of_dim = |derived: &Derived| match derived {
            Derived::Quotient(of, _) => is_of(of),
            Derived::Max(one, other) | Derived::Min(one, other) => is_of(one) && is_of(other),
        };
        let places = self.derived.iter().enumerate().filter(|(_, derived)| of_dim(derived));
        places.map(|(place, _)| self.dims + place).collect()
    }

    /// Whether the numbers are as this basis says along every line, and at least one line says so.
    fn holds(&self, dim: usize, basis: &Basis, numbers: &[u64]) -> bool {
        let factors = basis.factors();
        let mut is_said = false;
        for line in self.lines[dim].iter().filter(|line| varies(line, numbers)) {
            let mut rows: Vec<Vec<u64>> = line.iter().map(|&sample| self.row(&factors, sample, numbers)).collect();
            rows.sort_unstable();
            rows.dedup();
            let points = rows.len();
            match solve(rows, factors.len()) {
                // All sizes that are known of this dimension say enough if they are few.
                Some((_, determined)) => {
                    let is_all = points == self.sizes(dim) && points <= 2;
                    let is_enough = points >= factors.len() + basis.spare || is_all;
                    is_said |= determined == factors.len() && is_enough;
                }
                None => return false,
            }
        }
        is_said
    }

    /// How many sizes of a dimension there are.
    fn sizes(&self, dim: usize) -> usize {
        let mut sizes: Vec<u64> = self.samples.iter().map(|sample| sample[dim]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    }

    /// The values of products of variables in a sample, and the number there.
    fn row(&self, products: &[Vec<(usize, u32)>], sample: usize, numbers: &[u64]) -> Vec<u64> {
        let of = |powers: &Vec<(usize, u32)>| {
            powers.iter().fold(1, |product, &(variable, power)| {
                let value = self.variables[sample].get(variable).copied().unwrap_or(0);
                let value = u64::try_from(value.rem_euclid(i128::from(PRIME))).unwrap_or(0);
                (0..power).fold(product, |product, _| times(product, value))
            })
        };
        products.iter().map(of).chain([numbers[sample] % PRIME]).collect()
    }

    /// The sum of these products that gives the numbers; `None` where none does.
    fn solved(&self, products: &[Vec<(usize, u32)>], numbers: &[u64]) -> Option<Formula> {
        let rows = (0..self.samples.len())
            .map(|sample| self.row(products, sample, numbers))
            .collect();
        let (coefficients, _) = solve(rows, products.len())?;
        let signed = |coefficient: u64| {
            let above = coefficient.cast_signed() - PRIME.cast_signed();
            if coefficient > PRIME / 2 {
                above
            } else {
                coefficient.cast_signed()
            }
        };
        let terms = coefficients.into_iter().map(signed).zip(products.iter().cloned());
        let formula = Formula::sum(terms);
        let gives = |(variables, &number): (&Vec<i128>, &u64)| formula.value(variables) == Some(i128::from(number));
        self.variables.iter().zip(numbers).all(gives).then_some(formula)
    }
}

fn quotient(of: &Formula, more: u64, by: u64) -> Derived {
    let mut terms: Vec<(i64, Vec<(usize, u32)>)> =
        of.terms().map(|(number, powers)| (number, powers.to_vec())).collect();
    terms.push((i64::try_from(more).unwrap_or(0), Vec::new()));
    Derived::Quotient(Formula::sum(terms), u32::try_from(by).unwrap_or(1))
}

fn varies(line: &[usize], numbers: &[u64]) -> bool {
    line.windows(2).any(|pair| numbers[pair[0]] != numbers[pair[1]])
}

/// Samples that are the same but for one dimension, at least two of them each.
fn lines(samples: &[Vec<u64>], dim: usize) -> Vec<Vec<usize>> {
    let mut lines: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    for (place, sample) in samples.iter().enumerate() {
        let others = sample.iter().enumerate().filter(|&(other, _)| other != dim);
        lines
            .entry(others.map(|(_, &size)| size).collect())
            .or_default()
            .push(place);
    }
    lines.into_values().filter(|line| line.len() > 1).collect()
}

/// All products of factors of the bases; `None` where they are too many.
fn products(bases: &[Basis]) -> Option<Vec<Vec<(usize, u32)>>> {
    let mut all = vec![Vec::new()];
    for basis in bases {
        let factors = basis.factors();
        let with = |product: &Vec<(usize, u32)>| {
            let product = product.clone();
            factors
                .iter()
                .map(move |factor| product.iter().chain(factor).copied().collect())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MOST_COEFFICIENTS {
            return None;
        }
    }
    Some(all)
}

/// A solution modulo the prime of linear equations, each with its right side last, and how many of the unknowns it determines: the others
/// are 0. `None` where there is no solution.
fn solve(mut rows: Vec<Vec<u64>>, unknowns: usize) -> Option<(Vec<u64>, usize)> {
    let mut determined = Vec::new();
    for column in 0..unknowns {
        let done = determined.len();
        let Some(pivot) = (done..rows.len()).find(|&row| rows[row][column] != 0) else {
            continue;
        };
        rows.swap(done, pivot);
        determined.push(column);
        let inverse = power(rows[done][column], PRIME - 2);
        for value in &mut rows[done] {
            *value = times(*value, inverse);
        }
        let (above, rest) = rows.split_at_mut(done);
        let (pivot, below) = rest.split_first_mut()?;
        for row in above.iter_mut().chain(below) {
            let factor = row[column];
            if factor != 0 {
                for (value, &of) in row.iter_mut().zip(pivot.iter()) {
                    *value = (*value + PRIME - times(factor, of)) % PRIME;
                }
            }
        }
    }
    let is_held = rows.get(determined.len()..)?.iter().all(|row| row[unknowns] == 0);
    let mut solution = vec![0; unknowns];
    for (row, &column) in rows.iter().zip(&determined) {
        solution[column] = row[unknowns];
    }
    is_held.then_some((solution, determined.len()))
}

fn times(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other) % u128::from(PRIME);
    u64::try_from(product).unwrap_or(0)
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines through two points, and some points besides.
    fn samples(dims: usize) -> Vec<Vec<u64>> {
        let sizes = [1u64, 2, 3, 4, 5, 6, 8, 10, 13, 17, 18, 33, 34, 49, 65, 66, 97, 130];
        let mut samples: Vec<Vec<u64>> = Vec::new();
        for base in [1u64, 3] {
            for dim in 0..dims {
                samples.extend(sizes.iter().map(|&size| {
                    let mut sample = vec![base; dims];
                    sample[dim] = size;
                    sample
                }));
            }
        }
        samples.extend((0..24u64).map(|place| {
            (0..dims as u64)
                .map(|dim| 2 + (place * 7 + dim * 5) % (11 + dim))
                .collect()
        }));
        samples.sort_unstable();
        samples.dedup();
        samples
    }

    fn numbers(samples: &[Vec<u64>], of: impl Fn(&[u64]) -> u64) -> Vec<u64> {
        samples.iter().map(|sample| of(sample)).collect()
    }

    fn is_found(dims: usize, of: impl Fn(&[u64]) -> u64) {
        let mut fit = Fit::new(samples(dims), Vec::new());
        let known = numbers(&samples(dims), &of);
        let formula = fit.exact(&known).expect("there is a formula");
        for other in [[5u64, 77, 211], [40, 12, 7], [2, 509, 64], [64, 31, 93]] {
            let other = &other[..dims];
            let found = formula.value(&values(other, fit.derived()).expect("small"));
            assert_eq!(
                found,
                Some(i128::from(of(other))),
                "{formula} of {other:?}, {:?}",
                fit.derived()
            );
        }
    }

    #[test]
    fn what_networks_allocate_is_found() {
        is_found(2, |d| 4 * d[0] * d[1] * 768);
        is_found(2, |d| 48 * d[0] * d[1] * d[1]);
        is_found(2, |d| 4 * d[0] * (d[1] + 7) * 64 + 128);
        // A window of 3 with a stride of 2, after one of 7.
        is_found(3, |d| 256 * d[0] * (d[1] + 3).div_euclid(4) * (d[2] + 1).div_euclid(2));
        is_found(2, |d| 64 * d[0] * d[1].div_ceil(32) + 8 * d[1] * d[0]);
        is_found(1, |d| 4 * d[0].div_ceil(3) * 5);
        // A constant and a product.
        is_found(2, |d| 8 * d[1] * d[0] + 4 * d[0]);
    }

    #[test]
    fn what_is_no_formula_is_none_and_has_a_bound() {
        let samples = samples(2);
        let numbers = numbers(&samples, |d| 64 * (d[0] * d[1] % 7 + d[0] * d[0] % 5 * d[1]) + 64);
        let mut fit = Fit::new(samples.clone(), Vec::new());
        assert_eq!(fit.exact(&numbers), None);
        assert!(fit.derived().is_empty());
        let bound = fit.bound(&numbers);
        for (sample, &number) in samples.iter().zip(&numbers) {
            let value = bound.value(&values(sample, &[]).expect("small"));
            assert!(value >= Some(i128::from(number)), "{bound}");
        }
    }

    #[test]
    fn workspace_grows_up_to_a_number_of_threads() {
        let of = |d: &[u64]| 65536 * d[0].min(5) * d[1];
        let mut fit = Fit::new(samples(2), Vec::new()).capped(0);
        let formula = fit.exact(&numbers(&samples(2), of)).expect("there is a formula");
        assert_eq!(formula.to_string(), "65536*d1*d2");
        assert_eq!(
            fit.derived(),
            [Derived::Min(Formula::variable(0), Formula::constant(5))]
        );
    }

    #[test]
    fn a_bound_holds_between_the_samples() {
        // Workspace of a convolution: a block for each thread, or less where there is less to do.
        let of = |d: &[u64]| (65536 * d[0]).min(1000 * d[1]) + if d[1] > 40 { 64 } else { 0 };
        let samples: Vec<Vec<u64>> = [1u64, 2, 4, 8]
            .into_iter()
            .flat_map(|threads| [4u64, 5, 7, 12, 20, 33, 52, 68, 600].map(|size| vec![threads, size]))
            .collect();
        let numbers = numbers(&samples, of);
        let mut fit = Fit::new(samples, Vec::new()).capped(0);
        assert_eq!(fit.exact(&numbers), None);
        let bound = fit.bound(&numbers);
        for size in 4..600u64 {
            for threads in 1..=8 {
                let value = bound.value(&[threads.into(), size.into()]);
                assert!(
                    value >= Some(of(&[threads, size]).into()),
                    "{bound} at {threads}, {size}"
                );
            }
        }
        assert_eq!(bound.value(&[1, 600]), Some(65600));
    }

    #[test]
    fn few_points_do_not_say_much() {
        let of = |numbers: &[u64]| {
            let samples = (1..=numbers.len() as u64).map(|size| vec![size]).collect();
            Fit::new(samples, Vec::new())
                .exact(numbers)
                .map(|formula| formula.to_string())
        };
        assert_eq!(of(&[64, 96]), Some("32*d0+32".to_owned()));
        assert_eq!(of(&[64, 96, 128]), Some("32*d0+32".to_owned()));
        assert_eq!(of(&[64, 96, 192]), None);
        assert_eq!(of(&[64, 64, 128, 64]), None);
    }

    #[test]
    fn formulas_share_what_is_derived() {
        let samples = samples(2);
        let mut fit = Fit::new(samples.clone(), Vec::new());
        let half = |d: &[u64]| d[1].div_ceil(2);
        let one = fit.exact(&numbers(&samples, |d| 4 * d[0] * half(d)));
        let other = fit.exact(&numbers(&samples, |d| 8 * half(d) * half(d) + 4));
        assert_eq!(one.map(|one| one.to_string()), Some("4*d0*d2".to_owned()));
        assert_eq!(other.map(|other| other.to_string()), Some("8*d2^2+4".to_owned()));
        assert_eq!(fit.derived(), [quotient(&Formula::variable(1), 1, 2)]);
    }

    proptest! {
        #[test]
        fn every_polynomial_of_low_degree_is_found(coefficients in prop::collection::vec(0u64..5000, 6)) {
            let [a, b, c, d, e, f] = coefficients[..] else { unreachable!() };
            let of = |s: &[u64]| a + b * s[0] + c * s[1] + d * s[0] * s[1] + e * s[1] * s[1] + f * s[0] * s[1] * s[1];
            let mut fit = Fit::new(samples(2), Vec::new());
            let formula = fit.exact(&numbers(&samples(2), of)).expect("it is a polynomial");
            prop_assert_eq!(formula.value(&[19, 83]), Some(i128::from(of(&[19, 83]))));
        }

        #[test]
        fn no_numbers_make_it_panic(numbers in prop::collection::vec(any::<u64>(), 12)) {
            let samples = (0..12u64).map(|place| vec![place % 4, place / 4]).collect();
            let mut fit = Fit::new(samples, Vec::new());
            let _ = fit.exact(&numbers);
            let _ = fit.bound(&numbers);
        }
    }
}
