//! What the multipliers of a linear relaxation prove, in integers.
//!
//! Any multipliers with the right signs give a bound: the rows times them, plus for each variable the least its reduced cost can
//! contribute. So those of a solver in floating point are rounded to a fixed point, and everything after that is exact.
//!
//! Where nothing costs anything, every solution costs 0. Multipliers that bound such costs from below by more than 0 prove that there
//! is no solution: a Farkas certificate.

use super::{Literal, Program, Row, Variable};

/// Multipliers are counted in units of 1 / 2^44: fine enough for sizes in bytes, coarse enough for sums in 128 bits.
const UNIT: i128 = 1 << 44;
/// The largest multiplier of a ray.
const LONGEST: f64 = (1u64 << 44) as f64;

/// A bound, and what it says about each variable.
pub(crate) struct Proof {
    /// In units.
    bound: i128,
    /// In units, for each variable.
    reduced_costs: Vec<i128>,
}

/// Whether these multipliers prove that a program has no solution, at least if their signs are turned around: solvers do not agree on
/// the sign of a ray. One for each clause, exclusion and row.
pub(crate) fn refutes(program: &Program, ray: &[f64]) -> bool {
    let largest = ray
        .iter()
        .fold(0.0f64, |largest, multiplier| largest.max(multiplier.abs()));
    if !(largest.is_finite() && largest > 0.0) {
        return false;
    }
    // A ray has no length of its own. This one leaves room for sums, and small multipliers of large sizes their digits.
    [LONGEST / largest, -LONGEST / largest].iter().any(|factor| {
        let ray: Vec<f64> = ray.iter().map(|multiplier| multiplier * factor).collect();
        let nothing = vec![0; program.cost.len()];
        Proof::over(program, nothing, &ray).is_some_and(|proof| proof.bound > 0)
    })
}

impl Proof {
    /// The bound that these multipliers prove, one for each clause, exclusion and row; `None` if a sum would overflow.
    pub(crate) fn of(program: &Program, multipliers: &[f64]) -> Option<Self> {
        let costs = program.cost.iter().map(|&cost| i128::from(cost) * UNIT);
        Self::over(program, costs.collect(), multipliers)
    }

    /// The same with other costs, in units.
    fn over(program: &Program, costs: Vec<i128>, multipliers: &[f64]) -> Option<Self> {
        let mut multipliers = multipliers.iter().map(|&multiplier| fixed_point(multiplier));
        let mut proof = Self {
            bound: 0,
            reduced_costs: costs,
        };
        for clause in &program.clauses {
            let multiplier = multipliers.next()??.max(0);
            let mut right = 1;
            for &Literal { variable, negated } in clause {
                right -= i64::from(negated);
                proof.charge(variable, multiplier, if negated { -1 } else { 1 })?;
            }
            proof.add(multiplier, right)?;
        }
        for &(a, b) in &program.exclusions {
            let multiplier = multipliers.next()??.min(0);
            proof.charge(a, multiplier, 1)?;
            proof.charge(b, multiplier, 1)?;
            proof.add(multiplier, 1)?;
        }
        for Row { terms, most } in &program.rows {
            let multiplier = multipliers.next()??.min(0);
            for &(variable, coefficient) in terms {
                proof.charge(variable, multiplier, coefficient)?;
            }
            proof.add(multiplier, *most)?;
        }
        for (&reduced_cost, &upper) in proof.reduced_costs.iter().zip(&program.upper) {
            let least = reduced_cost.min(0).checked_mul(i128::from(upper))?;
            proof.bound = proof.bound.checked_add(least)?;
        }
        Some(proof)
    }

    fn charge(&mut self, variable: Variable, multiplier: i128, coefficient: i64) -> Option<()> {
        let cost = &mut self.reduced_costs[variable as usize];
        *cost = cost.checked_sub(multiplier.checked_mul(i128::from(coefficient))?)?;
        Some(())
    }

    fn add(&mut self, multiplier: i128, right: i64) -> Option<()> {
        self.bound = self.bound.checked_add(multiplier.checked_mul(i128::from(right))?)?;
        Some(())
    }

    /// No solution costs less; nothing costs less than 0.
    pub(crate) fn bound(&self) -> i64 {
        whole(self.bound).max(0)
    }

    /// For each 0/1 variable the value that it has in all solutions that cost less than `limit`, where that is known.
    pub(crate) fn fixed(&self, program: &Program, limit: i64) -> Vec<Option<bool>> {
        let costs = self.reduced_costs.iter().zip(&program.upper);
        let fixed = costs.map(|(&reduced_cost, &upper)| {
            let otherwise = self.bound.saturating_add(reduced_cost.saturating_abs());
            (upper == 1 && reduced_cost != 0 && whole(otherwise) >= limit).then_some(reduced_cost < 0)
        });
        fixed.collect()
    }
}

fn fixed_point(multiplier: f64) -> Option<i128> {
    let scaled = multiplier * UNIT as f64;
    (scaled.is_finite() && scaled.abs() < 1e37).then_some(scaled as i128)
}

/// The least integer that is not below so many units.
fn whole(units: i128) -> i64 {
    let whole = units.div_euclid(UNIT) + i128::from(units.rem_euclid(UNIT) != 0);
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
pub(crate) mod tests {
    use remat_testing::{Trial, trial};

    use super::*;

    pub(crate) fn trials() -> Vec<Trial> {
        vec![
            trial!(multipliers_prove_a_bound_and_fix_what_would_cost_too_much),
            trial!(wrong_multipliers_prove_less_but_nothing_false),
            trial!(a_ray_refutes_a_program_without_solution_in_either_sign_and_at_any_length),
            trial!(no_ray_refutes_a_program_that_has_a_solution),
            trial!(a_violation_within_the_tolerance_of_a_solver_is_no_refutation),
            trial!(multipliers_that_are_missing_or_no_numbers_prove_nothing),
        ]
    }

    /// Two of three variables, at 3, 5 and 7.
    fn two_of_three() -> Program {
        let mut program = Program::default();
        let variables: Vec<Variable> = [3, 5, 7].map(|cost| program.variable(cost)).to_vec();
        let terms = variables.iter().map(|&variable| (variable, -1)).collect();
        program.rows.push(Row { terms, most: -2 });
        program
    }

    fn multipliers_prove_a_bound_and_fix_what_would_cost_too_much() {
        let program = two_of_three();
        let proof = Proof::of(&program, &[-5.0]).unwrap();
        assert_eq!(proof.bound(), 8);
        assert_eq!(proof.fixed(&program, 9), [Some(true), None, Some(false)]);
        assert_eq!(proof.fixed(&program, 11), [None, None, None]);
    }

    fn wrong_multipliers_prove_less_but_nothing_false() {
        for multiplier in [-100.0, -6.5, -1.0, 0.0, 3.0, 1e-30] {
            assert!(
                Proof::of(&two_of_three(), &[multiplier]).unwrap().bound() <= 8,
                "{multiplier}"
            );
        }
    }

    /// Three variables of which at least two are on, and at most `most`.
    fn two_of_three_and_at_most(most: i64) -> Program {
        let mut program = two_of_three();
        let terms = (0..3).map(|variable| (variable, 1)).collect();
        program.rows.push(Row { terms, most });
        program
    }

    fn a_ray_refutes_a_program_without_solution_in_either_sign_and_at_any_length() {
        for factor in [1.0, -1.0, 1e-30, -1e30] {
            assert!(refutes(&two_of_three_and_at_most(1), &[-factor, -factor]), "{factor}");
        }
    }

    fn no_ray_refutes_a_program_that_has_a_solution() {
        for ray in [
            [-1.0, -1.0],
            [1.0, 1.0],
            [-1.0, 0.0],
            [0.0, -1.0],
            [-1.0, -1.1],
            [0.0, 0.0],
        ] {
            assert!(!refutes(&two_of_three_and_at_most(2), &ray), "{ray:?}");
        }
        assert!(!refutes(&two_of_three_and_at_most(1), &[f64::NAN, 1.0]));
        assert!(!refutes(&two_of_three_and_at_most(1), &[f64::INFINITY, 1.0]));
        assert!(!refutes(&two_of_three_and_at_most(1), &[]));
    }

    /// The ray of a solver whose tolerance is larger than what the sizes differ by.
    fn a_violation_within_the_tolerance_of_a_solver_is_no_refutation() {
        const SIZE: i64 = 1 << 40;
        let mut program = Program::default();
        let (a, b) = (program.variable(0), program.variable(0));
        program.clauses.push(vec![Literal::is(a)]);
        program.clauses.push(vec![Literal::is(b)]);
        let terms = vec![(a, SIZE + 1), (b, SIZE - 1)];
        program.rows.push(Row { terms, most: 2 * SIZE });
        let size = SIZE as f64;
        assert!(!refutes(&program, &[size + 1.001, size - 0.999, -1.0]));
        program.rows[0].most -= 1;
        assert!(refutes(&program, &[size + 1.0, size - 1.0, -1.0]));
    }

    fn multipliers_that_are_missing_or_no_numbers_prove_nothing() {
        for multipliers in [&[][..], &[f64::NAN], &[f64::INFINITY], &[-1e300]] {
            assert!(Proof::of(&two_of_three(), multipliers).is_none());
        }
    }
}
