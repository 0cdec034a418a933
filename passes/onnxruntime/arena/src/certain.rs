//! How many allocations of a run it takes to know its shape.

use std::sync::Arc;

use crate::cursor::Cursor;
use crate::plans::{Known, Plans, Shape};

/// So many allocations are made, at most, before runs of these shapes are no longer thought to be of other sizes, whichever of the shapes the run
/// before had: the buffers up to there need offsets that do not depend on the sizes of later ones.
#[must_use]
pub fn certain_after(plans: &Plans, shapes: &[Arc<Shape>]) -> usize {
    let mut most = 0;
    for shape in shapes {
        for before in shapes {
            let mut known = Known::default();
            known.used(before);
            most = most.max(last_switch(plans, &known, shape));
        }
    }
    most
}

/// How many allocations of a run of this shape are made before the last one that makes another shape of it.
fn last_switch(plans: &Plans, known: &Known, shape: &Shape) -> usize {
    let mut sizes = shape.sizes.iter().copied().filter(|&bytes| bytes > 0).enumerate();
    let Some(mut cursor) = sizes.next().and_then(|(_, bytes)| {
        let mut cursor = Cursor::begin(plans, known, bytes)?;
        cursor.advance(plans, bytes)?;
        Some(cursor)
    }) else {
        return 0;
    };
    let mut last = 0;
    for (made, bytes) in sizes {
        match cursor.find(plans, known, bytes) {
            Some(true) => last = made,
            Some(false) => {}
            None => break,
        }
        if cursor.advance(plans, bytes).is_none() {
            break;
        }
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
