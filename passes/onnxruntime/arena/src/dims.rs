//! Which sizes the open dimensions have, found from what a run allocates.
//!
//! Every allocation is an equation between a formula and a number. Boxes of sizes are narrowed to what each equation leaves of them, given the
//! others, and halved where that does not go on; those of which nothing is left are dropped, until one is a point. Of several solutions the one
//! next to the `anchor` is tried first, in the sense of the halving.

use crate::formula::{Derived, Formula, Interval, intervals, values};
use crate::plans::{Buffer, Plan, Plans};

/// Most boxes that are looked at for one answer.
const MOST_BOXES: usize = 1 << 12;
/// How often the equations narrow a box in a row.
const MOST_PASSES: usize = 8;

/// Sizes of the open dimensions with which a plan begins with these allocations; `None` where none were found. Where a buffer may have no bytes,
/// sizes for which all of them have some are looked for first.
pub(crate) fn dims(plans: &Plans, plan: &Plan, seen: &[u64], anchor: &[u64]) -> Option<Vec<u64>> {
    let may_skip = plan.buffers.iter().take(seen.len()).any(|buffer| buffer.may_be_empty);
    let full = solution(plans, plan, seen, true, anchor);
    full.or_else(|| may_skip.then(|| solution(plans, plan, seen, false, anchor))?)
}

/// The same where every buffer `has_bytes`, or some may have none.
fn solution(plans: &Plans, plan: &Plan, seen: &[u64], has_bytes: bool, anchor: &[u64]) -> Option<Vec<u64>> {
    let (equations, depends) = equations(plan, seen, has_bytes)?;
    let count = plans.ranges().len();
    let start = plans.ranges().iter().enumerate().map(|(dim, &(least, most))| {
        let near = anchor.get(dim).copied().unwrap_or(least).clamp(least, most);
        if depends >> dim & 1 == 1 {
            (least, most)
        } else {
            (near, near)
        }
    });
    let used = used(&equations, plans.derived(), count);
    let mut boxes = vec![intervals(&start.collect::<Vec<(u64, u64)>>(), plans.derived())];
    for _ in 0..MOST_BOXES {
        let mut sizes = boxes.pop()?;
        if !narrow(&equations, &used, &mut sizes, count) {
            continue;
        }
        // The one of the largest ratio says most.
        let ratio = |&(least, most): &Interval| (most as f64 + 1.0) / (least as f64 + 1.0);
        let widest = (0..count).filter(|&dim| sizes[dim].0 < sizes[dim].1);
        let Some(widest) = widest.max_by(|&one, &other| ratio(&sizes[one]).total_cmp(&ratio(&sizes[other]))) else {
            let point = sizes
                .iter()
                .take(count)
                .map(|&(size, _)| u64::try_from(size).unwrap_or(0));
            let point: Vec<u64> = point.collect();
            if holds(plans, plan, &point, seen) {
                return Some(point);
            }
            continue;
        };
        let (least, most) = sizes[widest];
        let middle = least + (most - least) / 2;
        let mut other = sizes.clone();
        (sizes[widest], other[widest]) = ((least, middle), (middle + 1, most));
        // The one with the anchor comes next.
        let is_low = anchor.get(widest).is_none_or(|&near| i128::from(near) <= middle);
        boxes.extend(if is_low { [other, sizes] } else { [sizes, other] });
    }
    None
}

/// The derived variables on which equations depend, each with its number, where so many are open dimensions.
fn used<'p>(equations: &[Equation], derived: &'p [Derived], dims: usize) -> Vec<(usize, &'p Derived)> {
    let of = |formula: &Formula| {
        let variables = formula.terms().flat_map(|(_, powers)| powers);
        variables.fold(0u64, |bits, &(variable, _)| bits | 1 << variable.min(63))
    };
    let mut needed = equations
        .iter()
        .fold(0, |bits, equation| bits | of(&equation.common) | of(&equation.rest));
    let mut used = Vec::new();
    for (place, one) in derived.iter().enumerate().rev() {
        let variable = dims + place;
        if needed >> variable.min(63) & 1 == 1 {
            needed |= match one {
                Derived::Quotient(formula, _) => of(formula),
                Derived::Max(one, other) | Derived::Min(one, other) => of(one) | of(other),
            };
            used.push((variable, one));
        }
    }
    used.reverse();
    used
}

/// Narrows the intervals of the open dimensions, of which there are so many, and of what is derived from them, to what the equations leave; whether
/// something is left.
fn narrow(equations: &[Equation], derived: &[(usize, &Derived)], variables: &mut [Interval], dims: usize) -> bool {
    for _ in 0..MOST_PASSES {
        let before: Vec<Interval> = variables[..dims].to_vec();
        for &(variable, one) in derived {
            let bounds = one.bounds(&variables[..variable]);
            if !meet(&mut variables[variable], bounds) {
                return false;
            }
        }
        if !equations.iter().all(|equation| equation.narrow(variables)) {
            return false;
        }
        for &(variable, one) in derived.iter().rev() {
            let (of, rest) = variables.split_at_mut(variable);
            let (least, most) = rest[0];
            let is_left = match one {
                Derived::Quotient(formula, by) => {
                    let by = i128::from(*by).max(1);
                    let most = most.saturating_mul(by).saturating_add(by - 1);
                    solve(formula, (least.saturating_mul(by), most), of)
                }
                Derived::Min(one, other) => solve(one, (least, i128::MAX), of) && solve(other, (least, i128::MAX), of),
                Derived::Max(one, other) => solve(one, (i128::MIN, most), of) && solve(other, (i128::MIN, most), of),
            };
            if !is_left {
                return false;
            }
        }
        if variables[..dims] == before {
            break;
        }
    }
    true
}

/// Narrows the intervals of variables to values with which a formula can lie in an interval; whether something is left.
fn solve(formula: &Formula, within: Interval, variables: &mut [Interval]) -> bool {
    let total = formula.bounds(variables);
    if total.0 > within.1 || total.1 < within.0 {
        return false;
    }
    for (coefficient, powers) in formula.terms() {
        // Sizes are positive as a rule; what is not narrowed here is halved later.
        if coefficient <= 0 || powers.iter().any(|&(variable, _)| variables[variable].0 < 0) {
            continue;
        }
        let coefficient = i128::from(coefficient);
        let product = |variables: &[Interval], without: usize| {
            powers
                .iter()
                .fold((coefficient, coefficient), |product, &(variable, power)| {
                    let power = if variable == without { 0 } else { power };
                    let (least, most) = variables[variable];
                    (
                        product.0.saturating_mul(least.saturating_pow(power)),
                        product.1.saturating_mul(most.saturating_pow(power)),
                    )
                })
        };
        let term = product(variables, usize::MAX);
        // What is left for this term by the others.
        let least = within.0.saturating_sub(total.1.saturating_sub(term.1));
        let most = within.1.saturating_sub(total.0.saturating_sub(term.0));
        for &(variable, power) in powers {
            let others = product(variables, variable);
            let upper = if others.0 > 0 {
                root(most / others.0, power)
            } else {
                i128::MAX
            };
            let lower = if others.1 > 0 && least > 0 {
                let needed = (least - 1) / others.1 + 1;
                let found = root(needed, power);
                if found.saturating_pow(power) < needed {
                    found + 1
                } else {
                    found
                }
            } else {
                0
            };
            if !meet(&mut variables[variable], (lower, upper)) {
                return false;
            }
        }
    }
    true
}

/// What two intervals have in common takes the place of the first; whether that is something.
fn meet(interval: &mut Interval, other: Interval) -> bool {
    *interval = (interval.0.max(other.0), interval.1.min(other.1));
    interval.0 <= interval.1
}

/// The largest number whose power is not above this one; -1 where there is none.
fn root(of: i128, power: u32) -> i128 {
    if power == 1 || of < 1 {
        return of.max(-1);
    }
    let mut found = (of as f64).powf(1.0 / f64::from(power)) as i128;
    while found.saturating_pow(power) > of {
        found -= 1;
    }
    while (found + 1).saturating_pow(power) <= of {
        found += 1;
    }
    found
}

/// What an allocation says: a product, which is this many bytes, or where it is not exact at least so many.
struct Equation {
    /// What all terms of the formula have in common: in `d0*d3-d0` the size of a batch. Bounds of the whole are closer so than term by term.
    common: Formula,
    rest: Formula,
    bytes: i128,
    is_exact: bool,
}

impl Equation {
    fn new(formula: &Formula, bytes: i128, is_exact: bool) -> Self {
        let mut terms = formula.terms();
        let mut common = terms.next().map_or_else(Vec::new, |(_, powers)| powers.to_vec());
        let power_in = |powers: &[(usize, u32)], variable: usize| {
            let found = powers.iter().find(|(other, _)| *other == variable);
            found.map_or(0, |&(_, power)| power)
        };
        for (_, powers) in terms {
            for (variable, power) in &mut common {
                *power = (*power).min(power_in(powers, *variable));
            }
        }
        let rest = formula.terms().map(|(coefficient, powers)| {
            let left = powers
                .iter()
                .map(|&(variable, power)| (variable, power - power_in(&common, variable)));
            (coefficient, left.collect())
        });
        Self {
            rest: Formula::sum(rest),
            common: Formula::sum([(1, common)]),
            bytes,
            is_exact,
        }
    }

    /// Narrows the intervals of variables to what it leaves; whether something is left.
    fn narrow(&self, variables: &mut [Interval]) -> bool {
        let most = if self.is_exact { self.bytes } else { i128::MAX };
        let quotients = |(low, high): Interval| {
            if low < 0 || high < 1 {
                return (i128::MIN, i128::MAX);
            }
            let least = self.bytes.saturating_add(high - 1) / high;
            (least, if low > 0 { most / low } else { i128::MAX })
        };
        let rest = quotients(self.common.bounds(variables));
        if !solve(&self.rest, rest, variables) {
            return false;
        }
        let common = quotients(self.rest.bounds(variables));
        solve(&self.common, common, variables)
    }
}

/// What the allocations say, and the open dimensions of which they say something, as bits; `None` where they contradict each other.
fn equations(plan: &Plan, seen: &[u64], has_bytes: bool) -> Option<(Vec<Equation>, u64)> {
    let mut equations: Vec<(usize, Equation)> = Vec::new();
    let (mut all, mut is_aligned) = (0, true);
    if seen.len() > plan.buffers.len() {
        return None;
    }
    for (&buffer, &bytes) in plan.buffers.iter().zip(seen) {
        let Buffer {
            formula: number,
            is_exact,
            may_be_empty,
            ..
        } = buffer;
        if may_be_empty && !has_bytes {
            // From here on it is unknown which allocation is which.
            is_aligned = false;
            break;
        }
        let (formula, depends) = plan.formula(buffer);
        let bytes = i128::from(bytes);
        if is_exact && formula.as_constant().is_some_and(|size| i128::from(size) != bytes) {
            return None;
        }
        let known = equations
            .iter_mut()
            .find(|(known, equation)| *known == number && equation.is_exact == is_exact);
        match known {
            Some((_, equation)) if !is_exact => equation.bytes = equation.bytes.max(bytes),
            Some((_, equation)) if equation.bytes != bytes => return None,
            Some(_) => {}
            None => equations.push((number, Equation::new(formula, bytes, is_exact))),
        }
        all |= depends;
    }
    if !is_aligned {
        // The rest counts when sizes are tried.
        all |= plan
            .buffers
            .iter()
            .fold(0, |bits, &buffer| bits | plan.formula(buffer).1);
    }
    Some((equations.into_iter().map(|(_, equation)| equation).collect(), all))
}

/// Whether the plan begins with these allocations where the open dimensions have these sizes.
fn holds(plans: &Plans, plan: &Plan, dims: &[u64], seen: &[u64]) -> bool {
    let Some(variables) = values(dims, plans.derived()) else {
        return false;
    };
    let mut buffers = plan.buffers.iter();
    seen.iter().all(|&bytes| {
        let mut sized = buffers
            .by_ref()
            .map(|&buffer| (buffer, plan.formula(buffer).0.value(&variables)));
        let next = sized.find(|(_, size)| size.is_none_or(|size| size > 0));
        next.is_some_and(|(buffer, size)| {
            size.is_some_and(|size| {
                if buffer.is_exact {
                    size == i128::from(bytes)
                } else {
                    i128::from(bytes) <= size
                }
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::ArenaPlanFile;

    #[test]
    fn roots_are_rounded_down() {
        for of in 0i128..2000 {
            for power in 1..4 {
                let found = root(of, power);
                assert!(
                    found.pow(power) <= of && (found + 1).pow(power) > of,
                    "{of} {power} {found}"
                );
            }
        }
        assert_eq!(root(-5, 2), -1);
    }

    #[test]
    fn sizes_of_which_the_smallest_would_leave_nothing_are_found_in_wide_ranges() {
        // Windows of 10 every 5 elements, then of 2 every 2: of fewer than 10 there are none.
        let text = "remat-arena 2\nmodel m\nruntime r\nlevel all\ndim 1 4096 batch\ndim 1 64000 length\nlet floor d1 5\n\
                    let floor d2-1 2\nplan buffers 3 orders 1 first 0\n2048*d0*d2-2048*d0 0 2 0\n<=65536 1 3 1\n2048*d0*d3 2 4 2\n";
        let plans = Plans::new(&ArenaPlanFile::parse(text).expect("it is well-formed"));
        let plan = plans.plan(0).expect("it has one");
        let sizes = plans.shape(0, &[1, 16_000]).expect("it is small").sizes;
        for anchor in [&[][..], &[1, 1], &[1, 16_000], &[4096, 64_000]] {
            for seen in 1..=3 {
                let found = dims(&plans, plan, &sizes[..seen], anchor).expect("there is a solution");
                let found = plans.shape(0, &found).expect("it is small");
                assert!(found.begins_with(&plans, &sizes[..seen]).is_some());
            }
        }
    }

    #[test]
    fn products_beyond_all_numbers_overflow_nothing() {
        let most = 1u64 << 44;
        let text = format!(
            "remat-arena 2\nmodel m\nruntime r\nlevel all\ndim 1 {most} n\ndim 1 {most} h\nplan buffers 1 orders 1 first 0\n\
             {}*d0^3*d1^3-{}*d0^3 0 1 0\n",
            i64::MAX,
            i64::MAX
        );
        let plans = Plans::new(&ArenaPlanFile::parse(&text).expect("it is well-formed"));
        let plan = plans.plan(0).expect("it has one");
        assert_eq!(dims(&plans, plan, &[7], &[]), None);
    }

    proptest! {
        #[test]
        fn what_is_found_allocates_what_was_seen(n in 1u64..9, h in 1u64..65, w in 1u64..65, anchor in prop::collection::vec(1u64..65, 3)) {
            let text = "remat-arena 2\nmodel m\nruntime r\nlevel all\ndim 1 8 n\ndim 1 64 h\ndim 1 64 w\nlet floor d1+1 2\n\
                        let floor d2+3 4\nlet min d0 3\nplan buffers 4 orders 1 first 0\n64*d0*d3*d4 0 4 0\n<=128*d5*d1 1 5 1\n\
                        64*d0*d1*d2+32 2 6 2\n64*d0*d4^2+8*d1-4*d2+256 3 7 3\n";
            let plans = Plans::new(&ArenaPlanFile::parse(text).expect("it is well-formed"));
            let plan = plans.plan(0).expect("it has one");
            let shape = plans.shape(0, &[n, h, w]).expect("it is small");
            for seen in 1..=4 {
                let seen = &shape.sizes[..seen];
                let found = dims(&plans, plan, seen, &anchor).expect("there is a solution");
                let found = plans.shape(0, &found).expect("it is small");
                prop_assert!(found.begins_with(&plans, seen).is_some());
            }
        }
    }
}
