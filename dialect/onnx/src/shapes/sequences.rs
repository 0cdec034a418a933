//! Sequences whose elements are known one by one: built, picked from, split off and joined at known places.
//!
//! Source: the operator definitions in the ONNX specification.

use std::rc::Rc;

use onnx_runtime_ir::{Attribute, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, TypeInfo};

use super::budget::MAX_LISTED;
use super::value::Value;
use crate::values::{Tensor, axis as place_of};

/// A result of an operator on sequences.
pub(super) enum Listed {
    /// The elements of a sequence.
    Elements(Rc<Vec<Value>>),
    /// One of them.
    Element(Box<Value>),
    /// How many there are.
    Length(usize),
    /// All of them, joined.
    Joined(TypeInfo),
}

impl Listed {
    /// Puts into the result of a node what is known of it beside its type.
    pub(super) fn put(self, result: &mut Value) {
        match self {
            Self::Elements(elements) => result.elements = Some(elements),
            Self::Element(element) => *result = *element,
            Self::Length(length) => result.know(i64::try_from(length).ok().and_then(Tensor::scalar)),
            Self::Joined(info) => {
                *result = Value::from(NodeIo::typed(info));
            }
        }
    }
}

/// What is known of result 0 of a node from the elements of its operands; `None` where they are not known, or it has nothing to do with
/// sequences.
pub(super) fn listed(node: &Node, operands: &[Value]) -> Option<Listed> {
    if !node.domain.is_empty() {
        return None;
    }
    let elements = |index: usize| operands.get(index)?.elements.as_ref();
    let present = |index: usize| node.inputs.get(index).copied().flatten().is_some();
    let position = |index: usize| match operands.get(index)?.tensor.as_ref()?.as_integers()? {
        [position] => Some(*position),
        _ => None,
    };
    let with = |change: &dyn Fn(&mut Vec<Value>) -> Option<()>| {
        let mut elements = elements(0)?.as_ref().clone();
        change(&mut elements)?;
        Some(Listed::Elements(Rc::new(elements)))
    };
    match node.op_type.as_str() {
        "SequenceEmpty" => Some(Listed::Elements(Rc::default())),
        "SequenceConstruct" => Some(Listed::Elements(Rc::new(operands.to_vec()))),
        "SequenceInsert" => with(&|elements| {
            // The end is a place, too.
            let at = if present(2) {
                position(2)?
            } else {
                i64::try_from(elements.len()).ok()?
            };
            let at = place_of(at, elements.len() + 1)
                .filter(|_| at >= 0)
                .or_else(|| place_of(at, elements.len()))?;
            elements.insert(at, operands.get(1)?.clone());
            Some(())
        }),
        "SequenceErase" => with(&|elements| {
            let at = place_of(if present(1) { position(1)? } else { -1 }, elements.len())?;
            elements.remove(at);
            Some(())
        }),
        "SequenceAt" => {
            let elements = elements(0)?;
            let at = place_of(position(1)?, elements.len())?;
            Some(Listed::Element(Box::new(elements[at].clone())))
        }
        "SequenceLength" => Some(Listed::Length(elements(0)?.len())),
        "SplitToSequence" => Some(Listed::Elements(Rc::new(split(node, operands, present(1))?))),
        "ConcatFromSequence" => Some(Listed::Joined(joined(node, elements(0)?)?)),
        "Identity" | "Optional" | "OptionalGetElement" if present(0) => Some(Listed::Elements(Rc::clone(elements(0)?))),
        _ => None,
    }
}

/// The pieces of a tensor.
fn split(node: &Node, operands: &[Value], is_stated: bool) -> Option<Vec<Value>> {
    let info = operands.first()?.io.type_info.as_ref()?;
    let axis = place_of(int(node, "axis", 0), info.rank())?;
    let extent = || usize::try_from(info.shape[axis].as_const()?).ok();
    let is_list = || Some(!operands.get(1)?.tensor.as_ref()?.dims.is_empty());
    let mut keeps = true;
    let pieces = if !is_stated {
        keeps = int(node, "keepdims", 1) != 0;
        vec![1; listable(extent()?)?]
    } else {
        let stated = operands.get(1)?.tensor.as_ref()?.as_integers()?;
        if is_list()? {
            listable(stated.len())?;
            stated.to_vec()
        } else {
            let size = usize::try_from(*stated.first()?).ok().filter(|&size| size > 0)?;
            let extent = extent()?;
            listable(extent / size)?;
            let starts = (0..extent).step_by(size);
            starts
                .map(|start| i64::try_from(size.min(extent - start)).ok())
                .collect::<Option<_>>()?
        }
    };
    let piece = |&length: &i64| {
        let mut info = info.clone();
        if keeps {
            info.shape[axis] = DimExpr::constant(length);
        } else {
            info.shape.remove(axis);
        }
        (length >= 0).then(|| Value::from(NodeIo::typed(info)))
    };
    pieces.iter().map(piece).collect()
}

/// The type of all elements in a row.
fn joined(node: &Node, elements: &[Value]) -> Option<TypeInfo> {
    let infos: Vec<&TypeInfo> = elements
        .iter()
        .map(|element| element.io.type_info.as_ref())
        .collect::<Option<_>>()?;
    let mut info = (*infos.first()?).clone();
    let axis = int(node, "axis", 0);
    if int(node, "new_axis", 0) != 0 {
        let axis = place_of(axis, info.rank() + 1)?;
        info.shape
            .insert(axis, DimExpr::constant(i64::try_from(infos.len()).ok()?));
    } else {
        let axis = place_of(axis, info.rank())?;
        let extents: Vec<&DimExpr> = infos.iter().map(|info| info.shape.get(axis)).collect::<Option<_>>()?;
        info.shape[axis] = extents
            .into_iter()
            .fold(DimExpr::constant(0), |sum, extent| sum.add(extent));
    }
    Some(info)
}

/// A length of lists that are followed.
fn listable(length: usize) -> Option<usize> {
    (length <= MAX_LISTED).then_some(length)
}

fn int(node: &Node, name: &str, default: i64) -> i64 {
    node.attr(name).and_then(Attribute::as_int).unwrap_or(default)
}
