//! Orders in which the buffers of a plan get their offsets: those of the lowest blocks that are found for some shapes.
//!
//! A block that is lowest for one shape is as low for most others, in the order of its offsets. So shapes are placed one after the other, until
//! all of them have a block that is no larger than what is live at one time, by one of the orders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use remat::place::BufferFile;
use remat_onnxruntime_arena::{ArenaPlanFile, Plans, Shape, certain_after};
use remat_plan::{Blocks, Buffer};
use remat_solve::SolveControl;

use crate::error::ArenaPlanError;

/// Longest time to place the buffers of a shape.
const PLACING: Duration = Duration::from_secs(1);
/// Most orders of a plan, and most shapes that are placed for them.
const MOST_ORDERS: usize = 4;
const MOST_PLACED: usize = 6;
/// Share of what is live at one time, as a divisor, by which a block may be larger without another order being looked for.
const WASTE: u64 = 100;

/// Gives every plan of a file its orders, so that runs of these sizes of the open dimensions, the most important first, have low blocks.
pub(super) fn ordered(
    mut file: ArenaPlanFile,
    shapes: &[Vec<u64>],
    control: &SolveControl<'_>,
) -> Result<ArenaPlanFile, ArenaPlanError> {
    for plan in &mut file.plans {
        // As they are allocated, until there is a better order.
        plan.orders = 1;
        for (rank, buffer) in (0..).zip(&mut plan.buffers) {
            buffer.ranks = Some(vec![rank]);
        }
    }
    let plans = Plans::new(&file);
    let all = (0..file.plans.len()).flat_map(|plan| shapes.iter().map(move |dims| (plan, dims)));
    let all: Vec<Arc<Shape>> = all
        .filter_map(|(plan, dims)| plans.shape(plan, dims))
        .map(Arc::new)
        .collect();
    let first = certain_after(&plans, &all);
    for place in 0..file.plans.len() {
        let plan = &mut file.plans[place];
        plan.first = first.min(plan.buffers.len());
        plan.orders = 0;
        plan.buffers
            .iter_mut()
            .for_each(|buffer| buffer.ranks = Some(Vec::new()));
        let mut placed = 0;
        for dims in shapes {
            if placed >= MOST_PLACED || file.plans[place].orders >= MOST_ORDERS {
                break;
            }
            let is_first = file.plans[place].orders == 0;
            let plans = Plans::new(&file);
            let Some(shape) = plans.shape(place, dims) else {
                continue;
            };
            let load = shape.load_bytes(&plans);
            if !is_first && shape.block_bytes() <= load + load / WASTE {
                continue;
            }
            placed += 1;
            let order = order(&file, place, &shape, control)?;
            add(&mut file, place, &order);
            let better = Plans::new(&file);
            let found = better.shape(place, dims).map(|shape| shape.block_bytes());
            if !is_first && found.is_none_or(|found| found >= shape.block_bytes()) {
                remove(&mut file, place);
            }
        }
        if file.plans[place].orders == 0 {
            let order: Vec<usize> = (0..file.plans[place].buffers.len()).collect();
            add(&mut file, place, &order);
        }
    }
    Ok(file)
}

/// The buffers of a plan in this order, besides those that there are.
fn add(file: &mut ArenaPlanFile, place: usize, order: &[usize]) {
    let Some(plan) = file.plans.get_mut(place) else {
        return;
    };
    plan.orders += 1;
    for (rank, &buffer) in (0..).zip(order) {
        if let Some(ranks) = plan.buffers.get_mut(buffer).and_then(|buffer| buffer.ranks.as_mut()) {
            ranks.push(rank);
        }
    }
}

fn remove(file: &mut ArenaPlanFile, place: usize) {
    if let Some(plan) = file.plans.get_mut(place) {
        plan.orders -= 1;
        for ranks in plan.buffers.iter_mut().filter_map(|buffer| buffer.ranks.as_mut()) {
            ranks.pop();
        }
    }
}

/// The buffers of a plan by their offsets in the lowest block that is found.
fn order(
    file: &ArenaPlanFile,
    place: usize,
    shape: &Shape,
    control: &SolveControl<'_>,
) -> Result<Vec<usize>, ArenaPlanError> {
    let load = shape.load_bytes(&Plans::new(file));
    let height = |offsets: &[u64]| {
        let ends = offsets.iter().zip(shape.sizes()).map(|(offset, size)| offset + size);
        ends.max().unwrap_or(0)
    };
    // Outputs at the start let the rest of the block go back to the system while they are held.
    let stacked = offsets(file, place, shape, true, control).ok();
    let found = match stacked {
        Some(stacked) if height(&stacked) <= load + load / WASTE => stacked,
        stacked => {
            let free = offsets(file, place, shape, false, control)?;
            let is_lower = |stacked: &Vec<u64>| height(stacked) <= height(&free);
            stacked.filter(is_lower).unwrap_or(free)
        }
    };
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|&buffer| (found[buffer], buffer));
    Ok(order)
}

/// The offset of every buffer, with outputs at the start of the block or wherever they make it lower. Those that
/// come first by plan get the lowest offsets in the order of their allocation.
fn offsets(
    file: &ArenaPlanFile,
    place: usize,
    shape: &Shape,
    stacks: bool,
    control: &SolveControl<'_>,
) -> Result<Vec<u64>, ArenaPlanError> {
    let Some(plan) = file.plans.get(place) else {
        return Ok(Vec::new());
    };
    let (first, alignment) = (first_offsets(file, place, shape), file.alignment());
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
    let buffers = BufferFile {
        buffers: buffers.collect(),
        hints: None,
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
fn first_offsets(file: &ArenaPlanFile, place: usize, shape: &Shape) -> Vec<Option<u64>> {
    let Some(plan) = file.plans.get(place) else {
        return Vec::new();
    };
    let mut alone = ArenaPlanFile {
        plans: vec![plan.clone()],
        ..file.clone()
    };
    if let Some(plan) = alone.plans.first_mut() {
        plan.orders = 1;
        for (rank, buffer) in (0..).zip(&mut plan.buffers) {
            buffer.ranks = Some(vec![rank]);
        }
    }
    let found = Plans::new(&alone).shape(0, shape.dims());
    let offsets = found.map(|shape| shape.offsets().to_vec()).unwrap_or_default();
    offsets.into_iter().take(plan.first).collect()
}
