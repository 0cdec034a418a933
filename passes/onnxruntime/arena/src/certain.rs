//! How many allocations of a run it takes to know its shape.

use std::sync::Arc;

use crate::cursor::Cursor;
use crate::plans::{Known, Plans, Shape};

/// Share of what is live at one time, as a divisor, by which that of a shape may be off that is taken for another one: buffers then lie so close to
/// where they should that the others fit around them.
const CLOSE: u64 = 64;

/// So many allocations are made, at most, before runs of these shapes are no longer thought to be much larger or smaller, whichever of the shapes
/// the run before had: the buffers up to there need offsets that do not depend on the sizes of later ones.
#[must_use]
pub fn certain_after(plans: &Plans, shapes: &[Arc<Shape>]) -> usize {
    let mut most = 0;
    for shape in shapes {
        for before in shapes {
            // Of this shape alone nothing is known.
            let mut known = Known::default();
            let others = shapes.iter().filter(|other| !Arc::ptr_eq(other, shape));
            others.chain([before]).for_each(|other| known.used(other));
            most = most.max(last_switch(plans, &known, shape));
        }
    }
    most
}

/// Up to where a run of this shape takes bytes of its block if it comes for the first time, after runs of others; `None` if it does not follow the
/// plans.
#[must_use]
pub fn first_block_bytes(plans: &Plans, before: &[Arc<Shape>], shape: &Shape) -> Option<u64> {
    let mut known = Known::default();
    before.iter().for_each(|other| known.used(other));
    let plan = plans.plan(shape.plan)?;
    let mut sizes = shape.sizes.iter().copied().enumerate().filter(|&(_, bytes)| bytes > 0);
    let mut cursor = Cursor::begin(plans, &known, sizes.clone().next()?.1)?;
    // Where buffers lie, and when they end.
    let mut live: Vec<(usize, u64, u64)> = Vec::new();
    let mut most = 0;
    sizes.try_for_each(|(place, bytes)| {
        let (begin, end) = plan.life(place)?;
        live.retain(|&(.., end)| end > begin);
        if cursor.find(plans, &known, bytes)? {
            let pinned: Vec<(usize, u64)> = live.iter().map(|&(place, offset, _)| (place, offset)).collect();
            cursor.keep(plans, &pinned);
        }
        let spot = cursor.spot(plans)?;
        if let Some(offset) = spot.offset {
            live.push((spot.place, offset, end));
            most = most.max(offset.saturating_add(bytes));
        }
        cursor.advance(plans, spot, bytes);
        Some(())
    })?;
    Some(most)
}

/// How many allocations of a run of this shape are made before the last one that makes it of one that is much larger or smaller.
fn last_switch(plans: &Plans, known: &Known, shape: &Shape) -> usize {
    let mut sizes = shape.sizes.iter().copied().filter(|&bytes| bytes > 0).enumerate();
    let Some(mut cursor) = sizes.next().and_then(|(_, bytes)| {
        let mut cursor = Cursor::begin(plans, known, bytes)?;
        let spot = cursor.spot(plans)?;
        cursor.advance(plans, spot, bytes);
        Some(cursor)
    }) else {
        return 0;
    };
    let load = shape.load_bytes(plans);
    let is_far = |other: &Shape| other.load_bytes(plans).abs_diff(load) > load / CLOSE;
    let mut last = 0;
    for (made, bytes) in sizes {
        let before = Arc::clone(cursor.shape());
        match cursor.find(plans, known, bytes) {
            Some(true) if is_far(&before) => last = made,
            Some(_) => {}
            None => break,
        }
        let Some(spot) = cursor.spot(plans) else { break };
        cursor.advance(plans, spot, bytes);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ArenaPlanFile;

    #[test]
    fn the_sizes_that_tell_shapes_apart_come_before_the_others() {
        // The first two buffers depend on the product only; the third tells the dimensions.
        let text = "remat-arena 2\nmodel m\nruntime r\nlevel all\ndim 1 8 n\ndim 1 8 s\n\
                    plan buffers 4 orders 1 first 0\n64*d0*d1 0 4 0\n128*d0*d1 1 5 1\n64*d0 2 6 2\n64*d0*d1^2 3 7 3\n";
        let plans = Plans::new(&ArenaPlanFile::parse(text).expect("it is well-formed"));
        let shapes = [[2, 3], [3, 2], [6, 1], [4, 4]].map(|dims| plans.shape(0, &dims).map(Arc::new));
        let shapes: Vec<Arc<Shape>> = shapes.into_iter().flatten().collect();
        assert_eq!(certain_after(&plans, &shapes), 2);
        assert_eq!(certain_after(&plans, &shapes[..1]), 0);
    }
}
