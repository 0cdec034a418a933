//! What tensors of a tiled graph hold.

use std::ops::Range;

use remat_ir::{Graph, Part, Spare, TensorId};
use typed_index_collections::TiVec;

/// Rows of an axis.
pub(super) type Rows = Range<u64>;

/// What a tensor holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// Rows of a tensor of the original.
    Part {
        of: TensorId,
        /// `None` for all of a tensor whose dimensions are not known.
        rows: Option<Vec<Rows>>,
        spare: Option<Spare>,
    },
    /// Elements that the tiled graph states.
    Integers,
}

impl Held {
    pub(super) fn whole(original: &Graph, of: TensorId) -> Self {
        let rows = original.tensors[of].ty.known_shape();
        Self::Part {
            of,
            rows: rows.map(|dims| dims.into_iter().map(|dim| 0..dim).collect()),
            spare: None,
        }
    }

    /// For people: `y[0:1, 8:16]`.
    pub(super) fn shown(&self, original: &Graph) -> String {
        match self {
            Self::Part { of, rows, spare } => {
                let of = original.tensors[*of].name.clone();
                match rows.clone() {
                    Some(ranges) => Part {
                        of,
                        ranges,
                        spare: *spare,
                        is_sum: false,
                    }
                    .to_string(),
                    None => format!("all of {of}"),
                }
            }
            Self::Integers => "elements of its own".to_owned(),
        }
    }
}

/// By tensor of the tiled graph: what it holds; `None` where that is not known because of what was found wrong.
pub(super) struct Values(TiVec<TensorId, Option<Held>>);

impl Values {
    pub(super) fn new(graph: &Graph) -> Self {
        Self(TiVec::from(vec![None; graph.tensors.len()]))
    }

    pub(super) fn set(&mut self, tensor: TensorId, held: Held) {
        self.0[tensor] = Some(held);
    }

    pub(super) fn get(&self, tensor: TensorId) -> Option<&Held> {
        self.0[tensor].as_ref()
    }
}
