//! Orders in which the buffers of a plan get their offsets: those with which blocks are low at shapes that were not placed, too.
//!
//! A block that is lowest for one shape is low for others, in the order of its offsets, from below or from above. So a shape is placed, then
//! the one of which these orders make least, and so on; then those are kept that are best for all shapes together.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use remat::place::BufferFile;
use remat_onnxruntime_arena::{ArenaPlan, ArenaPlanFile, Plans, Shape, certain_after};
use remat_plan::{Blocks, Buffer, Place, Placement};
use remat_solve::SolveControl;

use crate::error::ArenaPlanError;

/// Longest time to place the buffers of a shape.
const PLACING: Duration = Duration::from_secs(1);
/// Most orders of a plan, and most shapes that are placed for them.
const MOST_ORDERS: usize = 8;
const MOST_PLACED: usize = 12;
/// Share of what is live at one time, as a divisor, by which a block may be larger without another order being looked for.
const WASTE: u64 = 100;
/// So many other shapes say how soon the shape of a run is known.
const RUN: usize = 8;
/// Excess of a block is counted in such parts of what is live at one time; less than this is none.
const PARTS: u64 = 10_000;
const NOTHING: u64 = PARTS / WASTE / 2;
/// A shape that is important counts as so many others.
const IMPORTANT: u64 = 4;
/// Another order is worth its place if it lowers the sum of squares by this share, as a divisor.
const GAIN: u64 = 200;

/// Gives every plan of a file its orders, so that runs have low blocks at these sizes of the open dimensions, the most important first, and at
/// others.
///
/// # Errors
/// [`ArenaPlanError`] where buffers cannot be placed.
pub fn order_buffers(
    mut file: ArenaPlanFile,
    important: &[Vec<u64>],
    others: &[Vec<u64>],
    control: &SolveControl<'_>,
) -> Result<ArenaPlanFile, ArenaPlanError> {
    for plan in &mut file.plans {
        // As they are allocated, until there is a better order.
        let order: Vec<usize> = (0..plan.buffers.len()).collect();
        set(plan, &[&order]);
    }
    let plans = Plans::new(&file);
    let shapes = || important.iter().chain(others.iter().take(RUN));
    let all = (0..file.plans.len()).flat_map(|plan| shapes().map(move |dims| (plan, dims)));
    let all: Vec<Arc<Shape>> = all
        .filter_map(|(plan, dims)| plans.shape(plan, dims))
        .map(Arc::new)
        .collect();
    let first = certain_after(&plans, &all);
    for place in 0..file.plans.len() {
        let mut plan = file.plans[place].clone();
        plan.first = first.min(plan.buffers.len());
        let alone = ArenaPlanFile {
            plans: vec![plan],
            weights: None,
            ..file.clone()
        };
        file.plans[place] = Orders::new(alone, important, others).found(control)?;
    }
    Ok(file)
}

/// The file of one plan, and orders for it.
struct Orders<'a> {
    file: ArenaPlanFile,
    /// Sizes of the open dimensions, what is live at one time with them, and how much they count.
    shapes: Vec<(&'a [u64], u64, u64)>,
    /// Orders, with the excess that each leaves of every shape.
    candidates: Vec<(Vec<usize>, Vec<u64>)>,
}

impl<'a> Orders<'a> {
    fn new(file: ArenaPlanFile, important: &'a [Vec<u64>], others: &'a [Vec<u64>]) -> Self {
        let plans = Plans::new(&file);
        let counted = important.iter().map(|dims| (dims, IMPORTANT));
        let counted = counted.chain(others.iter().map(|dims| (dims, 1)));
        let shapes = counted.filter_map(|(dims, counts)| {
            let load = plans.shape(0, dims)?.load_bytes(&plans);
            Some((dims.as_slice(), load, counts))
        });
        let shapes = shapes.collect();
        Self {
            file,
            shapes,
            candidates: Vec::new(),
        }
    }

    /// The plan with the orders that are found.
    fn found(mut self, control: &SolveControl<'_>) -> Result<ArenaPlan, ArenaPlanError> {
        let mut placed = vec![false; self.shapes.len()];
        for round in 0..MOST_PLACED.min(self.shapes.len()) {
            let excess = self.excess(&(0..self.candidates.len()).collect::<Vec<usize>>());
            let open = (0..placed.len()).filter(|&shape| !placed[shape]);
            let worst = open.max_by_key(|&shape| (excess[shape], Reverse(shape)));
            let is_late = control.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let next = if round == 0 {
                Some(0)
            } else {
                worst.filter(|_| !is_late)
            };
            let Some(next) = next.filter(|&next| excess[next] > PARTS / WASTE) else {
                break;
            };
            placed[next] = true;
            self.place(next, control)?;
        }
        let chosen = self.chosen();
        let mut plan = self.file.plans[0].clone();
        let orders: Vec<&[usize]> = chosen.iter().map(|&one| self.candidates[one].0.as_slice()).collect();
        if !orders.is_empty() {
            set(&mut plan, &orders);
        }
        Ok(plan)
    }

    /// The candidates that leave least of all shapes together, each with those before.
    fn chosen(&self) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        let sum = |chosen: &[usize]| {
            let squares = self.excess(chosen).into_iter().zip(&self.shapes);
            squares.fold(0u64, |sum, (excess, &(.., counts))| {
                sum.saturating_add(excess.saturating_mul(excess).saturating_mul(counts))
            })
        };
        let mut least = u64::MAX;
        while chosen.len() < MOST_ORDERS {
            let with = |one: usize| [&chosen[..], &[one]].concat();
            let sums = (0..self.candidates.len()).map(|one| (sum(&with(one)), one));
            let Some((found, one)) = sums.min().filter(|&(found, _)| found < least - least / GAIN) else {
                break;
            };
            least = found;
            chosen.push(one);
        }
        chosen
    }

    /// What is left of each shape by the best of these candidates.
    fn excess(&self, candidates: &[usize]) -> Vec<u64> {
        let least = |shape: usize| candidates.iter().map(|&one| self.candidates[one].1[shape]).min();
        (0..self.shapes.len())
            .map(|shape| least(shape).unwrap_or(u64::MAX))
            .collect()
    }

    /// Adds the orders of the lowest block that is found for a shape.
    fn place(&mut self, shape: usize, control: &SolveControl<'_>) -> Result<(), ArenaPlanError> {
        let known: Vec<&[usize]> = self.candidates.iter().map(|(order, _)| order.as_slice()).collect();
        let file = self.in_orders(&known);
        let plans = Plans::new(&file);
        let Some(shape) = plans.shape(0, self.shapes[shape].0) else {
            return Ok(());
        };
        for order in orders(&file, &shape, shape.load_bytes(&plans), !known.is_empty(), control)? {
            let file = self.in_orders(&[&order]);
            let plans = Plans::new(&file);
            let excess = self.shapes.iter().map(|&(dims, load, _)| {
                let block = plans.shape(0, dims).map_or(u64::MAX, |shape| shape.block_bytes());
                let parts = block.saturating_sub(load).saturating_mul(PARTS) / load.max(1);
                parts.clamp(NOTHING, u64::from(u32::MAX))
            });
            let excess = excess.collect();
            self.candidates.push((order, excess));
        }
        Ok(())
    }

    /// The file with these orders.
    fn in_orders(&self, orders: &[&[usize]]) -> ArenaPlanFile {
        let mut file = self.file.clone();
        if !orders.is_empty() {
            file.plans.iter_mut().for_each(|plan| set(plan, orders));
        }
        file
    }
}

/// The buffers of a plan get their offsets in these orders.
fn set(plan: &mut ArenaPlan, orders: &[&[usize]]) {
    plan.orders = orders.len();
    for buffer in &mut plan.buffers {
        buffer.ranks = Some(vec![0; orders.len()]);
    }
    for (at, order) in orders.iter().enumerate() {
        for (rank, &buffer) in (0..).zip(*order) {
            if let Some(ranks) = plan.buffers.get_mut(buffer).and_then(|buffer| buffer.ranks.as_mut()) {
                ranks[at] = rank;
            }
        }
    }
}

/// The buffers of a plan by their offsets in the lowest block that is found, and by their ends in it, from above. Where the offsets of the
/// shape are a `hint`, the block is no higher than theirs.
fn orders(
    file: &ArenaPlanFile,
    shape: &Shape,
    load: u64,
    hint: bool,
    control: &SolveControl<'_>,
) -> Result<[Vec<usize>; 2], ArenaPlanError> {
    let end = |offsets: &[u64], buffer: usize| offsets[buffer] + shape.sizes()[buffer];
    let height = |offsets: &[u64]| (0..offsets.len()).map(|buffer| end(offsets, buffer)).max().unwrap_or(0);
    // Outputs at the start let the rest of the block go back to the system while they are held.
    let is_output = |buffer: usize| file.plans.iter().any(|plan| plan.buffers[buffer].is_output);
    let stacked = match (0..shape.sizes().len()).any(is_output) {
        true => offsets(file, shape, true, hint, control).ok(),
        false => None,
    };
    let (found, is_stacked) = match stacked {
        Some(stacked) if height(&stacked) <= load + load / WASTE => (stacked, true),
        stacked => {
            let free = offsets(file, shape, false, hint, control)?;
            match stacked.filter(|stacked| height(stacked) <= height(&free)) {
                Some(stacked) => (stacked, true),
                None => (free, false),
            }
        }
    };
    let mut upward: Vec<usize> = (0..found.len()).collect();
    let mut downward = upward.clone();
    upward.sort_by_key(|&buffer| (found[buffer], buffer));
    downward.sort_by_key(|&buffer| match is_stacked && is_output(buffer) {
        true => (0, found[buffer], buffer),
        false => (1, u64::MAX - end(&found, buffer), buffer),
    });
    Ok([upward, downward])
}

/// The offset of every buffer, with outputs at the start of the block or wherever they make it lower. Those that
/// come first by plan get the lowest offsets in the order of their allocation.
fn offsets(
    file: &ArenaPlanFile,
    shape: &Shape,
    stacks: bool,
    hint: bool,
    control: &SolveControl<'_>,
) -> Result<Vec<u64>, ArenaPlanError> {
    let Some(plan) = file.plans.first() else {
        return Ok(Vec::new());
    };
    let (first, alignment) = (first_offsets(file, shape), file.alignment());
    let mut top = 0;
    let buffers = plan
        .buffers
        .iter()
        .zip(shape.sizes())
        .enumerate()
        .map(|(number, (planned, bytes))| {
            let bytes = bytes.max(&1).next_multiple_of(alignment);
            let stacked = (stacks && planned.is_output).then_some(top);
            top += if stacked.is_some() { bytes } else { 0 };
            Buffer {
                alignment,
                pinned: first.get(number).copied().flatten().or(stacked),
                ..Buffer::new(number.to_string(), bytes, planned.first..planned.last)
            }
        });
    let hints = shape.offsets().iter().map(|&offset| {
        Some(Place {
            block: 0,
            offset: offset?,
        })
    });
    let buffers = BufferFile {
        buffers: buffers.collect(),
        hints: hint.then(|| Placement {
            places: hints.collect(),
        }),
    };
    let mut limited = SolveControl::new().seed(control.seed);
    (limited.cancel, limited.deadline) = (control.cancel, control.deadline.map(no_sooner));
    limited = limited.at_most(Some(PLACING));
    let placed = remat::place_buffers(&buffers, &Blocks::Lowest, &limited)?;
    let places = placed
        .outcome
        .placement
        .map(|placement| placement.places)
        .unwrap_or_default();
    Ok(places
        .iter()
        .map(|place| place.map_or(0, |place| place.offset))
        .collect())
}

/// A deadline that leaves time to place buffers by the plain heuristics.
fn no_sooner(deadline: Instant) -> Instant {
    let least = Instant::now() + Duration::from_millis(200);
    deadline.max(least)
}

/// Where the first buffers lie, whatever comes after them.
fn first_offsets(file: &ArenaPlanFile, shape: &Shape) -> Vec<Option<u64>> {
    let mut file = file.clone();
    let Some(plan) = file.plans.first_mut() else {
        return Vec::new();
    };
    let (first, order) = (plan.first, (0..plan.buffers.len()).collect::<Vec<usize>>());
    set(plan, &[&order]);
    let found = Plans::new(&file).shape(0, shape.dims());
    let offsets = found.map(|shape| shape.offsets().to_vec()).unwrap_or_default();
    offsets.into_iter().take(first).collect()
}

#[cfg(test)]
mod tests {
    use remat_formula::{Formula, OpenDim};
    use remat_onnxruntime_arena::{PlannedBuffer, first_block_bytes};
    use remat_solve::Rng;

    use super::*;

    /// Buffers of which each grows with one of two dimensions, with their product, or not at all.
    fn plan(seed: u64) -> ArenaPlanFile {
        let mut rng = Rng::new(seed, 0);
        let buffers = (0..60u64).map(|place| {
            let powers = [vec![], vec![(0, 1)], vec![(1, 1)], vec![(0, 1), (1, 1)]];
            let powers = powers[rng.below(4)].clone();
            let scale = 32i64.pow(2 - u32::try_from(powers.len()).unwrap_or(2));
            let units = 64 + 64 * i64::try_from(rng.below(40)).unwrap_or(0);
            let size = Formula::sum([(scale * units, powers)]);
            PlannedBuffer {
                size,
                is_exact: true,
                first: 2 * place,
                last: 2 * place + 1 + 2 * rng.below(30) as u64,
                ranks: None,
                is_output: rng.below(20) == 0,
            }
        });
        let dim = |name: &str| OpenDim {
            name: name.to_owned(),
            least: 4,
            most: 128,
        };
        ArenaPlanFile {
            dims: vec![dim("n"), dim("s")],
            plans: vec![ArenaPlan {
                buffers: buffers.collect(),
                ..ArenaPlan::default()
            }],
            ..ArenaPlanFile::default()
        }
    }

    #[test]
    fn shapes_that_come_for_the_first_time_have_low_blocks() {
        let mut above = Vec::new();
        for seed in 0..4 {
            let mut rng = Rng::new(seed, 1);
            let mut shapes = |count: usize| -> Vec<Vec<u64>> {
                let mut size = || {
                    let most = 1 << (2 + rng.below(6));
                    4 + rng.below(most).min(124) as u64
                };
                (0..count).map(|_| vec![size(), size()]).collect()
            };
            let (seen, unseen) = (shapes(40), shapes(20));
            let file = order_buffers(plan(seed), &[vec![128, 128]], &seen, &SolveControl::new()).expect("it is small");
            assert!((1..=MOST_ORDERS).contains(&file.plans[0].orders));
            let plans = Plans::new(&file);
            let before: Vec<Arc<Shape>> = seen
                .iter()
                .filter_map(|dims| plans.shape(0, dims))
                .map(Arc::new)
                .collect();
            for dims in &unseen {
                let shape = plans.shape(0, dims).expect("it is small");
                let run = first_block_bytes(&plans, &before, &shape).expect("it is of the plan") as f64;
                let offsets = offsets(&file, &shape, false, true, &SolveControl::new()).expect("it is small");
                let ends = offsets.iter().zip(shape.sizes()).map(|(offset, size)| offset + size);
                let searched = ends.max().unwrap_or(0) as f64;
                above.push(run / searched - 1.0);
            }
        }
        above.sort_by(f64::total_cmp);
        let average = above.iter().sum::<f64>() / above.len() as f64;
        assert!(
            average < 0.01 && above[above.len() * 9 / 10] < 0.03,
            "{average}: {above:?}"
        );
    }
}
