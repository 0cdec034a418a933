use proptest::prelude::*;
use remat_solve::SolveControl;
use remat_testing::net::Net;
use remat_testing::{Need, Trial, trial};

use super::*;
use crate::clock::Ended;
use crate::program::mip;
use crate::program::{Literal, cp, linear};
use crate::run::Run;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(every_solution_of_a_program_is_one_of_the_rounded_program),
        trial!(without_its_sums_a_program_has_the_same_solutions),
        trial!(
            cp_sat_finds_the_optimum_of_programs_with_sizes_of_any_magnitude,
            Need::OrTools
        ),
        trial!(
            what_floating_point_says_of_a_rounded_program_is_no_more_than_there_is,
            Need::OrTools
        ),
        trial!(what_is_small_enough_is_left_as_it_is),
    ]
}

/// Variables that are on or off.
const COUNT: usize = 8;

/// What a program is made of: costs, rows with a share of their sum as the right side, and a sum that a row adds to its terms.
#[derive(Clone, Debug)]
struct Parts {
    costs: Vec<i64>,
    limits: Vec<(Vec<i64>, i64)>,
    covers: Vec<(Vec<i64>, i64)>,
    sum: (Vec<i64>, i64),
    own: i64,
    clause: Vec<(u32, bool)>,
}

/// A program's parts with rows that add up to that at most.
fn parts(largest: i64) -> impl Strategy<Value = Parts> {
    let size = 0..largest >> 3;
    let sizes = {
        let size = size.clone();
        move || prop::collection::vec(size.clone(), COUNT)
    };
    let row = (sizes(), 20i64..100);
    let rows = move || prop::collection::vec(row.clone(), 0..3);
    let clause = prop::collection::vec((0..COUNT as u32, any::<bool>()), 1..3);
    (
        prop::collection::vec(0i64..9, COUNT),
        rows(),
        rows(),
        (sizes(), 10i64..90),
        size,
        clause,
    )
        .prop_map(|(costs, limits, covers, sum, own, clause)| Parts {
            costs,
            limits,
            covers,
            sum,
            own,
            clause,
        })
}

fn share(sizes: &[i64], per_cent: i64) -> i64 {
    sizes.iter().sum::<i64>() / 100 * per_cent
}

fn row(sizes: &[i64], sign: i64) -> Vec<(Variable, i64)> {
    (0..).zip(sizes.iter().map(|&size| sign * size)).collect()
}

/// The program, and with a sum the one over which its last two rows are.
fn program(parts: &Parts, with_sum: bool) -> Program {
    let mut program = Program::default();
    for &cost in &parts.costs {
        program.variable(cost);
    }
    for (sizes, per_cent) in &parts.limits {
        let (terms, most) = (row(sizes, 1), share(sizes, *per_cent));
        program.rows.push(Row { terms, most });
    }
    for (sizes, per_cent) in &parts.covers {
        let (terms, most) = (row(sizes, -1), -share(sizes, 100 - *per_cent));
        program.rows.push(Row { terms, most });
    }
    let literals = parts
        .clause
        .iter()
        .map(|&(variable, negated)| Literal { variable, negated });
    program.clauses.push(literals.collect());
    if with_sum {
        let (sizes, per_cent) = &parts.sum;
        let most = share(sizes, *per_cent);
        let sum = program.bounded(most.max(2));
        let mut terms = row(&sizes[1..], 1);
        terms.iter_mut().for_each(|(variable, _)| *variable += 1);
        terms.push((sum, -1));
        program.rows.push(Row { terms, most: 0 });
        let terms = vec![(0, parts.own), (1, -sizes[1]), (sum, 1)];
        program.rows.push(Row { terms, most });
    }
    program
}

/// All values of the variables that are on or off, each with the least sum.
fn all(program: &Program) -> impl Iterator<Item = Vec<i64>> + '_ {
    (0u32..1 << COUNT).map(|bits| {
        let mut values: Vec<i64> = (0..COUNT).map(|index| i64::from(bits >> index & 1)).collect();
        if program.cost.len() > COUNT {
            values.push(sum_of(program, &values));
        }
        values
    })
}

fn optimum(program: &Program) -> Option<i64> {
    let solutions = all(program).filter(|values| program.is_met(values));
    solutions.map(|values| cost(program, &values)).min()
}

fn cost(program: &Program, values: &[i64]) -> i64 {
    program.cost.iter().zip(values).map(|(cost, value)| cost * value).sum()
}

/// A call without limits.
fn with_run<T>(work: impl FnOnce(&Run<'_>) -> T) -> T {
    let problem = Net::new().done();
    work(&Run::new("none", &problem, &SolveControl::new()))
}

fn by_cp_sat(program: &Program) -> Option<i64> {
    with_run(|run| {
        let mut best = None;
        let search = cp::Search {
            program,
            parameters: cp::parameters(run.clock.control),
            hint: None,
            lower: 0,
            below: None,
        };
        let mut improved = |solution: &[i64], cost: i64, _: i64| {
            let mut solution = solution.to_vec();
            if program.cost.len() > COUNT {
                solution[COUNT] = sum_of(program, &solution);
            }
            if program.is_met(&solution) {
                best = Some(cost);
            }
        };
        let answer = search.minimize(&run.clock, &mut improved);
        assert!(matches!(answer.ended, Ended::Optimal | Ended::Infeasible), "{answer:?}");
        assert_eq!(
            best,
            (answer.ended == Ended::Optimal).then_some(answer.bound),
            "{answer:?}"
        );
        best
    })
}

/// The least value of the sum.
fn sum_of(program: &Program, values: &[i64]) -> i64 {
    let defining = &program.rows[program.rows.len() - 2].terms;
    let terms = defining.iter().filter(|&&(variable, _)| (variable as usize) < COUNT);
    terms.map(|&(variable, size)| size * values[variable as usize]).sum()
}

const SIZES: [i64; 4] = [1 << 20, 1 << 30, 1 << 40, 1 << 57];

proptest! {
    #![proptest_config(remat_testing::cases(200))]

    fn every_solution_of_a_program_is_one_of_the_rounded_program(
        parts in prop::sample::select(&SIZES[..]).prop_flat_map(parts)
    ) {
        let program = program(&parts, true);
        let rounded = program.rounded();
        prop_assert!(rounded.program.rows.iter().all(|row| rounded.program.steps(row, LARGEST) <= 2), "{rounded:?}", rounded = rounded.program);
        for values in all(&program).filter(|values| program.is_met(values)) {
            let values = rounded.solution(&program, &values);
            prop_assert!(rounded.program.is_met(&values), "{values:?} {:?}", rounded.program);
        }
    }

    fn without_its_sums_a_program_has_the_same_solutions(
        parts in prop::sample::select(&SIZES[..]).prop_flat_map(parts)
    ) {
        let program = program(&parts, true);
        let plain = program.without_sums().unwrap();
        for mut values in all(&program) {
            let is_met = program.is_met(&values);
            values[COUNT] = 0;
            prop_assert_eq!(is_met, plain.is_met(&values), "{:?}", values);
        }
    }

    fn cp_sat_finds_the_optimum_of_programs_with_sizes_of_any_magnitude(
        parts in prop::sample::select(&SIZES[..]).prop_flat_map(parts), with_sum: bool
    ) {
        let program = program(&parts, with_sum);
        prop_assert_eq!(by_cp_sat(&program), optimum(&program));
    }

    fn what_floating_point_says_of_a_rounded_program_is_no_more_than_there_is(
        parts in prop::sample::select(&SIZES[..]).prop_flat_map(parts), with_sum: bool
    ) {
        let program = program(&parts, with_sum);
        let optimum = optimum(&program);
        let rounded = program.rounded_to(LARGEST_UNPROVED);
        with_run(|run| {
            let said = mip::minimize(&rounded, None, &run.clock, &mut |_, _| {});
            prop_assert!(optimum.is_none_or(|optimum| said.bound <= optimum), "{optimum:?} {}", said.bound);
            prop_assert!(said.ended != Ended::Infeasible || optimum.is_none(), "{optimum:?}");
            let relaxed = linear::relax(&program, &run.clock);
            prop_assert!(optimum.is_none_or(|optimum| relaxed.bound <= optimum));
            prop_assert!(relaxed.ended != Ended::Infeasible || optimum.is_none());
            Ok(())
        })?;
    }
}

fn what_is_small_enough_is_left_as_it_is() {
    let mut program = Program::default();
    let (a, b) = (program.variable(1), program.variable(2));
    program.rows.push(Row {
        terms: vec![(a, LARGEST - 1), (b, 1)],
        most: LARGEST - 1,
    });
    assert!(matches!(program.rounded().program, Cow::Borrowed(_)));
    assert!(matches!(program.counted().program, Cow::Borrowed(_)));
    program.rows[0].terms[1].1 = 2;
    assert!(matches!(program.rounded().program, Cow::Owned(_)));
    assert!(matches!(program.counted().program, Cow::Owned(_)));
}
