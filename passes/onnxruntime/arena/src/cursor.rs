//! Where a run stands in the plans: what a run allocates says which plan it follows, at which sizes of the open dimensions, and how far it is.

use std::sync::Arc;

use crate::dims::dims;
use crate::need::Need;
use crate::placement::Placed;
use crate::plans::{Known, Plans, Shape};

/// So far a run that lost its plan looks ahead in it for an allocation of the size at hand.
const LOOK_AHEAD: usize = 64;

/// Where a buffer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// Which buffer of the plan it is.
    pub(crate) place: usize,
    /// The offset in the block; without it the buffer stays outside.
    pub(crate) offset: Option<u64>,
    /// Whether it outlives the run.
    pub(crate) is_output: bool,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    shape: Arc<Shape>,
    /// Where its buffers lie, where that is not as in other runs of the shape.
    moved: Option<Placed>,
    /// The next allocation.
    next: usize,
    /// What was allocated so far, where this can tell shapes apart.
    seen: Vec<u64>,
    /// Whether all allocations so far were those of the shape.
    follows: bool,
}

impl Cursor {
    /// The start of a run whose first allocation has this size, if a plan begins so: of a shape that is known, or of a new one.
    pub(crate) fn begin(plans: &Plans, known: &Known, bytes: u64) -> Option<Self> {
        let shape = find(plans, known, &[bytes], None)?;
        Some(Self {
            shape,
            moved: None,
            next: 0,
            seen: Vec::new(),
            follows: true,
        })
    }

    /// How many allocations of the plan were made or passed over.
    pub(crate) fn place(&self) -> usize {
        self.next
    }

    /// What the run is thought to be.
    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Whether all buffers of the plan were allocated.
    pub(crate) fn is_complete(&self) -> bool {
        self.shape.next(self.next).is_none()
    }

    /// Whether a run that stands here, of which nothing is live but outputs, is over: it was completed or aborted, or nothing is known of it.
    pub(crate) fn is_over(&self, plans: &Plans) -> bool {
        let expects = |place| plans.plan(self.shape.plan).is_some_and(|plan| plan.live(place) > 0);
        !self.follows || self.shape.next(self.next).is_none_or(expects)
    }

    /// Whether an allocation of this size can be the next one of the run.
    pub(crate) fn expects(&self, plans: &Plans, bytes: u64) -> bool {
        self.shape
            .next(self.next)
            .is_some_and(|place| self.shape.accepts(plans, place, bytes))
    }

    /// Goes on to the place of an allocation of this size: the next one, that of another shape which began the same, or one a little further.
    /// Whether it is of another shape; `None` if no plan foresees it.
    pub(crate) fn find(&mut self, plans: &Plans, known: &Known, bytes: u64) -> Option<bool> {
        if self.expects(plans, bytes) {
            return Some(false);
        }
        if self.follows && !plans.is_single() {
            self.seen.push(bytes);
            let other = find(plans, known, &self.seen, Some(&self.shape));
            self.seen.pop();
            if let Some(other) = other {
                // Of several allocations of nothing, others may be passed over.
                self.next = other.begins_with(plans, &self.seen).unwrap_or(self.next);
                self.shape = other;
                return Some(true);
            }
        }
        self.follows = false;
        let places = (self.next..self.shape.sizes.len()).take(LOOK_AHEAD);
        let is_it = |&place: &usize| self.shape.sizes[place] > 0 && self.shape.accepts(plans, place, bytes);
        self.next = places.into_iter().find(is_it)?;
        Some(false)
    }

    /// Buffers of this run that are live lie where they lie; the others go around them.
    pub(crate) fn keep(&mut self, plans: &Plans, live: &[(usize, u64)]) {
        let offsets = &self.shape.placed.offsets;
        let is_there = |&(place, offset): &(usize, u64)| offsets.get(place).copied().flatten() == Some(offset);
        self.moved = (!live.iter().all(is_there)).then(|| plans.placed_around(&self.shape, live));
    }

    /// Bytes of the block that the run uses.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.placed().block_bytes
    }

    /// What the run needs, if it is what it is thought to be.
    pub(crate) fn need(&self) -> Need {
        Need {
            block: self.block_bytes(),
            outside: self.shape.outside_bytes,
        }
    }

    /// Whether it is certain what the run is, once it makes the next allocation.
    pub(crate) fn is_certain(&self, plans: &Plans) -> bool {
        plans.is_certain(self.shape.plan, self.next)
    }

    fn placed(&self) -> &Placed {
        self.moved.as_ref().unwrap_or(&self.shape.placed)
    }

    /// Where the allocation goes that was found.
    pub(crate) fn spot(&self, plans: &Plans) -> Option<Spot> {
        let place = self.shape.next(self.next)?;
        let buffer = plans.plan(self.shape.plan)?.buffers.get(place)?;
        Some(Spot {
            place,
            offset: self.placed().offsets.get(place).copied().flatten(),
            is_output: buffer.is_output,
        })
    }

    /// Takes the allocation that was found, which goes there.
    pub(crate) fn advance(&mut self, plans: &Plans, spot: Spot, bytes: u64) {
        self.next = spot.place + 1;
        if self.follows && !plans.is_single() {
            self.seen.push(bytes);
        }
    }
}

/// A shape with which runs begin with these allocations: the one that was used last of those that are known, or one that is made now.
fn find(plans: &Plans, known: &Known, seen: &[u64], not: Option<&Arc<Shape>>) -> Option<Arc<Shape>> {
    let fits = |shape: &&Arc<Shape>| shape.begins_with(plans, seen).is_some();
    let is_other = |shape: &&Arc<Shape>| not.is_none_or(|not| !Arc::ptr_eq(shape, not));
    if let Some(shape) = known.iter().filter(is_other).find(fits) {
        return Some(Arc::clone(shape));
    }
    let anchor = not.or_else(|| known.iter().next());
    let anchor = anchor.map_or(&[][..], |shape| shape.dims.as_slice());
    let last = known.iter().next().map_or(0, |shape| shape.plan);
    let order = (0..plans.len()).map(|place| (place + last) % plans.len().max(1));
    let mut made = order.filter_map(|place| {
        let dims = dims(plans, plans.plan(place)?, seen, anchor)?;
        plans.shape(place, &dims)
    });
    made.next().map(Arc::new)
}
