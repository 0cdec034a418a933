//! Programs in numbers that a solver can count.
//!
//! HiGHS takes a row as kept that is violated by its tolerance, and a number as an integer that is none by as much. With sizes
//! of 2^40 that is more than small values are large, and what they call optimal or infeasible is not. CP-SAT counts in integers, but of 32
//! bits in a part of its presolve (version 9.15; google/or-tools issue 5293): where the terms of a row add up to more than 2^31, it
//! proves what is false.
//!
//! So sizes are *rounded* before any of them sees them: coefficients down, in steps of one size for the whole program where rows share
//! sums, so that no row can add up to more than a limit. For CP-SAT, sums ([`Program::bounded`]) of large sizes are replaced by what they
//! stand for before that, which leaves variables that are on or off only: then a solution that keeps a rounded limit and exceeds the
//! exact one can be excluded by a clause ([`Program::excluded`]).
//!
//! # Why a bound on the rounded program is one on the program
//! Take a solution, and divide its sums by the step, rounded down. A row without sums, divided by its step, has whole numbers on its left
//! that are no larger than before, so it keeps the right side rounded down. Of a row with sums, bring the one that is subtracted to the right:
//! what is left there is a whole number that is no larger than before, so it is at most the right side divided by the step and
//! rounded up, plus that sum divided and rounded down. So every solution of the program is one of the rounded program, at the
//! same cost: no bound on the latter is above the optimum of the former, and where the latter has no solution, neither has the former.
//! The converse does not hold: a solution of the rounded program may exceed the budget by a few steps, and counts only once it is
//! replayed with exact sizes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Literal, Program, Row, Variable};

/// The most that the terms of a row can add up to for CP-SAT, and for linear relaxations, of which only what is proved again counts.
pub const LARGEST: i64 = 1 << 30;
/// The same for integer programs in floating point: a tolerance of 1e-6 of a row is one unit. Tests hold that what HiGHS says of
/// such programs is true.
pub(crate) const LARGEST_UNPROVED: i64 = 1 << 20;
/// Programs that would have more terms without their sums keep them.
const MAX_TERMS: usize = 1_000_000;

/// A program in numbers that a solver can count, with the variables of the exact one.
pub(crate) struct Countable<'a> {
    pub(crate) program: Cow<'a, Program>,
    /// The program with exact sizes and without sums, where this one is rounded and that has not too many terms.
    pub(crate) exact: Option<Program>,
    /// What a unit of a sum stands for; absent where there are no sums any more.
    step: Option<i64>,
}

impl Countable<'_> {
    /// A solution of the exact program as one of this program.
    pub(crate) fn solution(&self, exact: &Program, solution: &[i64]) -> Vec<i64> {
        let values = solution.iter().zip(&exact.upper);
        values
            .map(|(&value, &upper)| match self.step {
                _ if upper == 1 => value,
                Some(step) => value / step,
                None => 0,
            })
            .collect()
    }
}

impl Program {
    /// The program with sizes rounded where a row may add up to more than [`LARGEST`]: a relaxation.
    pub(crate) fn rounded(&self) -> Countable<'_> {
        self.rounded_to(LARGEST)
    }

    /// The same with another limit.
    pub(crate) fn rounded_to(&self, largest: i64) -> Countable<'_> {
        let shared = self
            .rows
            .iter()
            .filter(|row| self.has_sums(row))
            .map(|row| self.steps(row, largest));
        let shared = shared.max().unwrap_or(1);
        if shared == 1 && self.rows.iter().all(|row| self.steps(row, largest) == 1) {
            return Countable {
                program: Cow::Borrowed(self),
                exact: None,
                step: Some(1),
            };
        }
        let rows = self.rows.iter().map(|row| {
            let step = if self.has_sums(row) {
                shared
            } else {
                self.steps(row, largest)
            };
            self.round(row, step)
        });
        let upper = self
            .upper
            .iter()
            .map(|&upper| if upper == 1 { 1 } else { upper / shared });
        let program = Self {
            cost: self.cost.clone(),
            upper: upper.collect(),
            clauses: self.clauses.clone(),
            exclusions: self.exclusions.clone(),
            rows: rows.collect(),
        };
        Countable {
            program: Cow::Owned(program),
            exact: None,
            step: Some(shared),
        }
    }

    /// The program for CP-SAT, rounded where it is too large for it, and the exact one to hold solutions against.
    pub(crate) fn counted(&self) -> Countable<'_> {
        if self.rows.iter().all(|row| self.steps(row, LARGEST) == 1) {
            return self.rounded();
        }
        let Some(exact) = self.without_sums() else {
            return self.rounded();
        };
        Countable {
            program: Cow::Owned(exact.rounded().program.into_owned()),
            exact: Some(exact),
            step: None,
        }
    }

    /// For each row that a solution exceeds, in a program without sums, a clause that it and all that exceed the row as far do not meet.
    pub(crate) fn excluded(&self, solution: &[i64]) -> Vec<Vec<Literal>> {
        self.rows.iter().filter_map(|row| row.excluded(solution)).collect()
    }

    fn has_sums(&self, row: &Row) -> bool {
        row.terms.iter().any(|&(variable, _)| self.is_sum(variable))
    }

    fn is_sum(&self, variable: Variable) -> bool {
        self.upper[variable as usize] != 1
    }

    /// By how much a row has to be divided to add up to no more than that.
    fn steps(&self, row: &Row, largest: i64) -> i64 {
        let terms = row.terms.iter().map(|&(variable, coefficient)| {
            u128::from(coefficient.unsigned_abs()) * u128::from(self.upper[variable as usize].unsigned_abs())
        });
        let extent = terms.sum::<u128>().max(row.most.unsigned_abs().into());
        i64::try_from(extent.div_ceil(largest.unsigned_abs().into())).map_or(i64::MAX, |steps| steps.max(1))
    }

    fn round(&self, row: &Row, step: i64) -> Row {
        let terms = row.terms.iter().map(|&(variable, coefficient)| {
            let rounded = coefficient.div_euclid(step);
            (variable, if self.is_sum(variable) { coefficient } else { rounded })
        });
        let terms = terms.filter(|&(_, coefficient)| coefficient != 0).collect();
        // Rounded up where there are sums.
        let up = self.has_sums(row) && row.most.rem_euclid(step) != 0;
        let most = row.most.div_euclid(step) + i64::from(up);
        Row { terms, most }
    }

    /// The same program with what sums stand for in their place: what is at least a sum in one row is that sum in the rows after it. `None`
    /// if it would have too many terms, or a sum stands for nothing.
    fn without_sums(&self) -> Option<Self> {
        let mut meanings: BTreeMap<Variable, Row> = BTreeMap::new();
        let (mut rows, mut count) = (Vec::with_capacity(self.rows.len()), 0);
        for row in &self.rows {
            if !self.has_sums(row) {
                rows.push(row.clone());
                continue;
            }
            let (plain, defined) = self.replaced(row, &meanings)?;
            count += plain.terms.len();
            if count > MAX_TERMS {
                return None;
            }
            if let Some(sum) = defined {
                // A sum is no more than its largest value.
                let most = plain.most.checked_add(self.upper[sum as usize])?;
                rows.push(Row {
                    terms: plain.terms.clone(),
                    most,
                });
                meanings.insert(sum, plain);
            } else {
                rows.push(plain);
            }
        }
        Some(Self {
            cost: self.cost.clone(),
            upper: self.upper.iter().map(|&upper| if upper == 1 { 1 } else { 0 }).collect(),
            clauses: self.clauses.clone(),
            exclusions: self.exclusions.clone(),
            rows,
        })
    }

    /// A row with the meanings of its sums, and the sum that it defines: the one that is subtracted.
    fn replaced(&self, row: &Row, meanings: &BTreeMap<Variable, Row>) -> Option<(Row, Option<Variable>)> {
        let (mut most, mut defined) = (row.most, None);
        let mut terms: BTreeMap<Variable, i64> = BTreeMap::new();
        let mut add = |variable, coefficient| {
            let sum = terms.entry(variable).or_insert(0i64);
            *sum = sum.checked_add(coefficient)?;
            Some(())
        };
        for &(variable, coefficient) in &row.terms {
            if !self.is_sum(variable) {
                add(variable, coefficient)?;
            } else if coefficient == 1 {
                let meaning = meanings.get(&variable)?;
                meaning
                    .terms
                    .iter()
                    .try_for_each(|&(variable, coefficient)| add(variable, coefficient))?;
                // What it stands for is its terms less its right side.
                most = most.checked_add(meaning.most)?;
            } else if coefficient != -1 || defined.replace(variable).is_some() {
                return None;
            }
        }
        let terms = terms.into_iter().filter(|&(_, coefficient)| coefficient != 0).collect();
        Some((Row { terms, most }, defined))
    }
}

impl Row {
    /// The largest terms that exceed it together, one of which has to go: what is on and added, or off and subtracted.
    fn excluded(&self, solution: &[i64]) -> Option<Vec<Literal>> {
        let is_on = |variable: Variable| solution.get(variable as usize).is_some_and(|&value| value != 0);
        let mut terms: Vec<(i64, Literal)> = Vec::new();
        let mut left = self.most;
        for &(variable, coefficient) in &self.terms {
            // As if everything that is subtracted were on.
            left = left.checked_sub(coefficient.min(0))?;
            let negated = coefficient > 0;
            if is_on(variable) == negated {
                terms.push((coefficient.abs(), Literal { variable, negated }));
            }
        }
        terms.sort_unstable_by_key(|&(bytes, literal)| (std::cmp::Reverse(bytes), literal.variable));
        let mut clause = Vec::new();
        for (bytes, literal) in terms {
            left = left.checked_sub(bytes)?;
            clause.push(literal);
            if left < 0 {
                return Some(clause);
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "rounded_tests.rs"]
pub(crate) mod tests;
