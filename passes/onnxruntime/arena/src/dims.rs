//! Which sizes the open dimensions have, found from what a run allocates.
//!
//! Every allocation is an equation between a formula and a number. Boxes of sizes are halved, and those are dropped in which a formula cannot
//! have its number, until one is a point. Of several solutions the one next to the `anchor` is tried first, in the sense of the halving.

use crate::formula::{Formula, intervals, values};
use crate::plans::{Buffer, Plan, Plans};

/// Most boxes that are looked at for one answer.
const MOST_BOXES: usize = 1 << 14;

/// Sizes of the open dimensions with which a plan begins with these allocations; `None` where none were found.
pub(crate) fn dims(plans: &Plans, plan: &Plan, seen: &[u64], anchor: &[u64]) -> Option<Vec<u64>> {
    let (equations, depends) = equations(plan, seen)?;
    let start = plans.ranges().iter().enumerate().map(|(dim, &(least, most))| {
        let near = anchor.get(dim).copied().unwrap_or(least).clamp(least, most);
        if depends >> dim & 1 == 1 {
            (least, most)
        } else {
            (near, near)
        }
    });
    let mut boxes = vec![start.collect::<Vec<(u64, u64)>>()];
    for _ in 0..MOST_BOXES {
        let mut sizes = boxes.pop()?;
        let bounds = intervals(&sizes, plans.derived());
        let can_hold = |equation: &Equation<'_>| {
            let (least, most) = equation.formula.bounds(&bounds);
            equation.bytes <= most && (least <= equation.bytes || !equation.is_exact)
        };
        if !equations.iter().all(can_hold) {
            continue;
        }
        // The one of the largest ratio says most.
        let ratio = |&(least, most): &(u64, u64)| (most as f64 + 1.0) / (least as f64 + 1.0);
        let widest = (0..sizes.len()).filter(|&dim| sizes[dim].0 < sizes[dim].1);
        let Some(widest) = widest.max_by(|&one, &other| ratio(&sizes[one]).total_cmp(&ratio(&sizes[other]))) else {
            let point: Vec<u64> = sizes.iter().map(|&(size, _)| size).collect();
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
        let is_low = anchor.get(widest).is_none_or(|&near| near <= middle);
        boxes.extend(if is_low { [other, sizes] } else { [sizes, other] });
    }
    None
}

struct Equation<'p> {
    formula: &'p Formula,
    bytes: i128,
    is_exact: bool,
}

/// What the allocations say, and the open dimensions of which they say something, as bits; `None` where they contradict each other.
fn equations<'p>(plan: &'p Plan, seen: &[u64]) -> Option<(Vec<Equation<'p>>, u64)> {
    let mut equations: Vec<(usize, Equation<'p>)> = Vec::new();
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
        if may_be_empty {
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
            None => equations.push((
                number,
                Equation {
                    formula,
                    bytes,
                    is_exact,
                },
            )),
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
