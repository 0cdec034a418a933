//! Whether a model computes each member of a batch by itself.
//!
//! [`by_member`] follows a batch through the graphs of one model at several sizes of it ([`BatchSample`]), from the inputs to the outputs, and
//! gives every tensor a role: it is the same at every size of the batch, it says how large the batch is, or one of its axes is the batch. The
//! last needs a proof, and the rules of [`split`](crate::split()) are asked for it: the rows of each member must need just the rows of that member in
//! every operand that has the batch, and all of those that do not have it. So a runtime may compute some members at a time.
//!
//! ```text
//! x [batch, seq] -> Gather(table, x) [batch, seq, 8] -> Reshape [batch, seq, 2, 4]      each member by itself
//!      `-> Shape [2] -> Slice [1] -> Concat(., -1) ----'                                 says how large the batch is
//! ```
//!
//! What is known before a run has its role from its elements: shapes that are computed from other shapes, masks, places within the batch. Sizes of
//! the batch may become shapes, and never elements of a result that has the batch.
//!
//! **What is proved.** At every size that a sample has: every element of an output follows from the inputs of its own member and from inputs
//! without the batch. That what does not have the batch is equal at all sizes is seen at the sizes of the samples, which is why there are several,
//! one with a single member and one with as many as there will ever be. [`Batch::other_bits`] says whether a runtime rounds the same for some members as for all.

mod bits;
mod error;
mod known;
mod op;
mod places;

use std::collections::BTreeMap;

use remat_ir::{Dim, Graph, OpId, TensorId, ValueType};
use typed_index_collections::TiVec;

pub use self::error::{NotByMember, NotIndependent, WhyMixed};

/// Samples of up to so many members are looked at member by member, and have to know the elements of what is known before a run. Larger ones have the
/// shapes, and of members the first two and the last.
const FEW: u64 = 8;

/// A model at one size of its batch.
#[derive(Clone, Debug)]
pub struct BatchSample {
    /// Members of the batch, at least one.
    pub members: u64,
    /// Samples of one number here differ in nothing but the members.
    pub setting: usize,
    /// The graph, with the sizes of all dimensions, and the integers that [`remat_ir::Graph::values`] has of constants.
    pub graph: Graph,
    /// Elements of what is known before a run, as bytes in row-major order.
    pub known: BTreeMap<TensorId, Vec<u8>>,
}

/// Where the batch of a model is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// By input of the graph: the axis that is the batch.
    pub inputs: Vec<Option<usize>>,
    /// By output of the graph: the axis that is the batch, of which each member has the same number of rows, one after the other. Outputs without one are
    /// the same whatever the batch.
    pub outputs: Vec<Option<usize>>,
    /// Ops that compute members, and the axis of their results.
    ops: Vec<(OpId, usize)>,
}

/// What a tensor has to do with the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// Nothing: it is the same at every size.
    Same,
    /// Its elements follow from the size of the batch; its shape does not.
    Size,
    /// This axis is the batch; rows of a member follow from that member.
    Members(usize),
    /// This axis is the batch; rows of a member follow from its place, and are known.
    Places(usize),
}

impl Role {
    /// The axis that is the batch.
    fn axis(self) -> Option<usize> {
        match self {
            Self::Same | Self::Size => None,
            Self::Members(axis) | Self::Places(axis) => Some(axis),
        }
    }
}

/// Proves that the outputs of a model have the members of its batch apart.
///
/// All samples are of one model: ops and tensors have the same numbers. Every setting is there with at least two numbers of members, one of them two or
/// more, and no more than eight.
///
/// # Errors
/// [`NotIndependent`], which names the first op for which that cannot be shown.
pub fn by_member(samples: Vec<BatchSample>) -> Result<Batch, NotIndependent> {
    let mut walk = Walk::new(samples)?;
    let Some(first) = walk.samples.first() else {
        return Err(NotIndependent::Samples);
    };
    let inputs = first.graph.inputs.clone();
    for &input in &inputs {
        let name = || walk.samples[0].graph.tensors[input].name.clone();
        let axis = walk.axis_of(input).map_err(|_| NotIndependent::Input(name()))?;
        walk.roles[input] = axis.map_or(Role::Same, Role::Members);
    }
    if inputs.iter().all(|&input| walk.roles[input] == Role::Same) {
        return Err(NotIndependent::Inputs);
    }
    for op in (0..walk.samples[0].graph.ops.len()).map(OpId::new) {
        walk.op(op)?;
    }
    let outputs = walk.samples[0].graph.outputs.clone();
    for &output in &outputs {
        if let Role::Size | Role::Places(_) = walk.roles[output] {
            return Err(NotIndependent::Output(
                walk.samples[0].graph.tensors[output].name.clone(),
            ));
        }
    }
    let axes = |tensors: &[TensorId]| tensors.iter().map(|&tensor| walk.roles[tensor].axis()).collect();
    Ok(Batch {
        inputs: axes(&inputs),
        outputs: axes(&outputs),
        ops: walk.ops,
    })
}

/// The samples, and what is known of tensors so far.
struct Walk {
    samples: Vec<BatchSample>,
    roles: TiVec<TensorId, Role>,
    /// Ops that compute members, and the axis of their results.
    ops: Vec<(OpId, usize)>,
}

impl Walk {
    fn new(mut samples: Vec<BatchSample>) -> Result<Self, NotIndependent> {
        let Some(first) = samples.first() else {
            return Err(NotIndependent::Samples);
        };
        let count = |sample: &BatchSample| (sample.graph.ops.len(), sample.graph.tensors.len());
        let (ops, tensors) = count(first);
        let members = |setting: usize| {
            let of = samples.iter().filter(move |sample| sample.setting == setting);
            of.map(|sample| sample.members)
        };
        let is_enough = |sample: &BatchSample| {
            let setting = || members(sample.setting);
            setting().any(|other| other != sample.members)
                && setting().any(|some| (2..=FEW).contains(&some))
                && sample.members > 0
        };
        if !samples
            .iter()
            .all(|sample| count(sample) == (ops, tensors) && is_enough(sample))
        {
            return Err(NotIndependent::Samples);
        }
        samples.iter_mut().for_each(|sample| fix(&mut sample.graph));
        Ok(Self {
            samples,
            roles: TiVec::from(vec![Role::Same; tensors]),
            ops: Vec::new(),
        })
    }

    /// The axis of a tensor that is the batch; none if its shape is the same at every size.
    fn axis_of(&self, tensor: TensorId) -> Result<Option<usize>, WhyMixed> {
        let shapes = self.samples.iter().map(|sample| {
            let shape = sample.graph.tensors[tensor].ty.known_shape().ok_or(WhyMixed::Shapes)?;
            Ok((sample, shape))
        });
        let shapes: Vec<(&BatchSample, Vec<u64>)> = shapes.collect::<Result<_, WhyMixed>>()?;
        let mut found = None;
        for (sample, shape) in &shapes {
            let alike = shapes.iter().filter(|(other, _)| other.setting == sample.setting);
            for (other, with) in alike {
                if shape.len() != with.len() {
                    return Err(WhyMixed::Extent);
                }
                for axis in (0..shape.len()).filter(|&axis| shape[axis] != with[axis]) {
                    let is_multiple = u128::from(shape[axis]) * u128::from(other.members)
                        == u128::from(with[axis]) * u128::from(sample.members)
                        && shape[axis].is_multiple_of(sample.members);
                    if !is_multiple || found.is_some_and(|known| known != axis) {
                        return Err(WhyMixed::Extent);
                    }
                    found = Some(axis);
                }
            }
        }
        Ok(found)
    }

    /// Rows of a tensor that each member has in this sample.
    fn each(sample: &BatchSample, tensor: TensorId, axis: usize) -> u64 {
        let shape = sample.graph.tensors[tensor].ty.known_shape();
        let rows = shape.and_then(|shape| shape.get(axis).copied()).unwrap_or(0);
        rows / sample.members.max(1)
    }
}

/// All dimensions of a graph at the sizes that they were given: what it is in one run.
pub fn fix(graph: &mut Graph) {
    for tensor in &mut graph.tensors {
        fix_type(&mut tensor.ty);
    }
}

fn fix_type(ty: &mut ValueType) {
    match ty {
        ValueType::Tensor { shape: Some(dims), .. } | ValueType::SparseTensor { shape: Some(dims), .. } => {
            for dim in dims {
                if let Dim::Free { size, .. } = *dim {
                    *dim = Dim::Known(size);
                }
            }
        }
        ValueType::Sequence(inner) | ValueType::Optional(inner) => fix_type(inner),
        _ => {}
    }
}
