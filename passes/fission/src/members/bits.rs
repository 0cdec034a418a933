//! Whether some members have the bits that they have among all.

use std::ops::Range;

use remat_ir::{Graph, Op};

use super::Batch;
use crate::exact::{Exactness, keeps_bits};

impl Batch {
    /// The first op that may round otherwise for these members than for all `members` of them, in ONNX Runtime on a CPU with up to so many threads
    /// within an op; none where every bit is the same. `graph` is that of the samples at the sizes of the run.
    #[must_use]
    pub fn other_bits<'g>(&self, graph: &'g Graph, members: u64, part: &Range<u64>, threads: u32) -> Option<&'g Op> {
        let exactness = Exactness::Exact { threads, blocks: false };
        let found = self.ops.iter().find(|&&(op, axis)| {
            let first = graph.ops[op].results().next();
            let shape = first.and_then(|first| graph.tensors[first].ty.known_shape());
            let rows = shape.and_then(|shape| shape.get(axis)?.checked_div(members));
            let own = rows.and_then(|each| Some(part.start.checked_mul(each)?..part.end.checked_mul(each)?));
            !own.is_some_and(|rows| keeps_bits(graph, op, axis, &rows, exactness))
        });
        found.map(|&(op, _)| &graph.ops[op])
    }
}
