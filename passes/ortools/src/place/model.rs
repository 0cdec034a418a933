//! Rectangles for CP-SAT: the variables are the height, and the offsets as multiples of the alignments.

use remat_plan::{Buffer, BufferId};
use remat_solve::Packing;
use typed_index_collections::TiVec;

use crate::cpmodel::{Affine, CpModel, ModelBuilder, Var};

/// The variables of a model.
pub(super) struct Variables {
    /// The offset of each buffer as a multiple of its alignment; `None` where it is pinned.
    multiples: TiVec<BufferId, Option<Var>>,
}

/// The model of a packing in which all numbers are below 2^58, and some height is of use.
pub(super) fn model(packing: &Packing<'_>) -> (CpModel, Variables) {
    let (least, highest) = (whole(packing.heights.start), whole(packing.heights.end) - 1);
    let mut builder = ModelBuilder::default();
    let height = builder.integer(&[(least, highest)]);
    let mut variables = Variables {
        multiples: TiVec::with_capacity(packing.buffers.len()),
    };
    let (mut times, mut places) = (Vec::new(), Vec::new());
    for buffer in packing.buffers {
        let (size, alignment) = (whole(buffer.size), whole(buffer.alignment));
        let (variable, offset) = match buffer.pinned.map(whole) {
            Some(pinned) => {
                builder.linear(&[], &[(height, 1)], pinned + size, i64::MAX);
                (None, Affine::constant(pinned))
            }
            None => {
                // Where it does not fit at all, the height says so.
                let multiple = builder.integer(&[(0, (highest - size).max(0) / alignment)]);
                builder.linear(&[], &[(height, 1), (multiple, -alignment)], size, i64::MAX);
                (Some(multiple), Affine::multiple(multiple, alignment))
            }
        };
        variables.multiples.push(variable);
        let place = builder.fixed_interval(offset, size);
        for taken in buffer.taken() {
            let life = whole(taken.end - taken.start);
            times.push(builder.fixed_interval(Affine::constant(whole(taken.start)), life));
            places.push(place);
        }
    }
    builder.no_overlap_2d(times, places);
    builder.minimize(&[(height, 1)]);
    let given = packing.start.iter().zip(packing.buffers).zip(&variables.multiples);
    let free = given.filter(|(_, multiple)| multiple.is_some());
    let start = free.map(|((&offset, buffer), _)| whole(offset / buffer.alignment));
    builder.hint(std::iter::once(highest).chain(start).collect());
    (builder.done(), variables)
}

impl Variables {
    /// The offsets of a solution.
    pub(super) fn offsets(&self, packing: &Packing<'_>, values: &[i64]) -> TiVec<BufferId, u64> {
        let value = |variable: Var| u64::try_from(*values.get(usize::try_from(variable).ok()?)?).ok();
        let offset = |(buffer, multiple): (&Buffer, &Option<Var>)| {
            let free = multiple.and_then(value).map(|multiple| multiple * buffer.alignment);
            buffer.pinned.or(free).unwrap_or(0)
        };
        packing.buffers.iter().zip(&self.multiples).map(offset).collect()
    }
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
