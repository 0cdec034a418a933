//! What tensors of a tiled graph hold.

use std::ops::Range;

use remat_ir::{Graph, OpId, Part, Spare, TensorId};
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
    /// What an op of the original sums up over rows of its operand 0.
    Sum { op: OpId, rows: Vec<Rows> },
    /// The statistics of rows of a tensor, by channel.
    Moments { of: TensorId, rows: Vec<Rows> },
    /// The maxima of rows of a tensor along an axis, and the sums of the exponentials of what differs from them; and what these weigh.
    Exponentials {
        of: TensorId,
        weighed: Option<TensorId>,
        axis: usize,
        rows: Vec<Rows>,
    },
    /// The best of rows of a tensor, and their places.
    Best {
        of: TensorId,
        ranking: Ranking,
        rows: Vec<Rows>,
    },
    /// What channels are multiplied by and what is added to normalize them.
    Numbers(Numbers),
    /// Elements that the tiled graph states.
    Integers,
}

/// Which elements are the best along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ranking {
    pub(super) axis: usize,
    /// How many.
    pub(super) count: u64,
    pub(super) is_largest: bool,
    /// Of equal elements the last is the better one.
    pub(super) is_last: bool,
}

/// What a normalization multiplies by and adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Numbers {
    /// What is normalized.
    pub(super) of: TensorId,
    /// Rows of its first two axes: images, channels.
    pub(super) channels: [Rows; 2],
    pub(super) groups: u64,
    /// Bits of the number.
    pub(super) epsilon: u32,
    /// Scale and bias, and a factor and a summand that follow.
    pub(super) numbers: [Option<TensorId>; 4],
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

    /// The rows that statistics are of.
    pub(super) fn rows(&self) -> Option<&[Rows]> {
        match self {
            Self::Moments { rows, .. } | Self::Exponentials { rows, .. } | Self::Best { rows, .. } => Some(rows),
            Self::Part { .. } | Self::Sum { .. } | Self::Numbers(_) | Self::Integers => None,
        }
    }

    /// The same statistics of other rows.
    pub(super) fn of_rows(&self, own: Vec<Rows>) -> Self {
        let mut other = self.clone();
        if let Self::Moments { rows, .. } | Self::Exponentials { rows, .. } | Self::Best { rows, .. } = &mut other {
            *rows = own;
        }
        other
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
            Self::Sum { op, rows } => {
                let op = &original.ops[*op];
                let of = op.inputs.first().copied().flatten();
                let of = of.map_or_else(String::new, |of| original.tensors[of].name.clone());
                format!("what `{}` sums up {}", op.name, over(of, rows))
            }
            Self::Moments { of, rows } => format!("the statistics {}", over(original.tensors[*of].name.clone(), rows)),
            Self::Exponentials {
                of,
                weighed,
                axis,
                rows,
            } => {
                let name = |tensor: TensorId| original.tensors[tensor].name.clone();
                let weighed = weighed.map_or_else(String::new, |weighed| format!(" of {}", name(weighed)));
                format!("the exponentials{weighed} along axis {axis} {}", over(name(*of), rows))
            }
            Self::Best { of, ranking, rows } => {
                let of = over(original.tensors[*of].name.clone(), rows);
                let which = if ranking.is_largest { "largest" } else { "smallest" };
                let equal = if ranking.is_last { "the last" } else { "the first" };
                let Ranking { axis, count, .. } = ranking;
                format!("the {count} {which} along axis {axis}, {equal} of equal ones, {of}")
            }
            Self::Numbers(numbers) => numbers.shown(original),
            Self::Integers => "elements of its own".to_owned(),
        }
    }
}

impl Numbers {
    /// For people: `numbers of x[0:1, 0:4] (2 groups, epsilon 0.00001, of s, b)`.
    fn shown(&self, original: &Graph) -> String {
        let name = |tensor: TensorId| original.tensors[tensor].name.clone();
        let [images, channels] = &self.channels;
        let numbers = self
            .numbers
            .iter()
            .map(|number| number.map_or_else(|| "_".to_owned(), name));
        format!(
            "numbers of {}[{}:{}, {}:{}] ({} groups, epsilon {}, of {})",
            name(self.of),
            images.start,
            images.end,
            channels.start,
            channels.end,
            self.groups,
            f32::from_bits(self.epsilon),
            numbers.collect::<Vec<_>>().join(", ")
        )
    }
}

fn over(of: String, rows: &[Rows]) -> String {
    let part = Part {
        of,
        ranges: rows.to_vec(),
        spare: None,
        is_sum: true,
    };
    part.to_string()
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
