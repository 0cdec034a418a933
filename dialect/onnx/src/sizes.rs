//! Sizes that types do not determine: those of sequences, and those that the caller states.

use std::collections::{BTreeMap, BTreeSet};

use remat_ir::{GraphBuilder, OpId, StorageClass, TensorId, ValueType};
use remat_operators::{ResultType, operator};

use crate::OnnxError;
use crate::shapes::Inferred;

/// What the file leaves open and the caller states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportOptions {
    /// Values of dimensions: names of the model, or `TENSOR[AXIS]` for dimensions without a name.
    pub dims: BTreeMap<String, u64>,
    /// Those of them that are fixed: the model becomes one of these sizes alone, and its inputs state them. All others stay free: figures are
    /// those of the values given, and what is written of the model is right for every other one, too.
    pub fixed: BTreeSet<String>,
    /// Bytes of values whose size does not follow from their type.
    pub sizes: BTreeMap<String, u64>,
    /// Whether sizes may stay unknown: for a model that is inspected, not planned.
    pub open_sizes: bool,
}

impl ImportOptions {
    /// The same without dimensions that are fixed: they stand in the model by now.
    pub(crate) fn of_fixed(&self) -> Self {
        let mut own = self.clone();
        own.dims.retain(|name, _| !self.fixed.contains(name));
        own
    }
}

/// States the sizes of an op's results that follow from the sizes of its operands although the types leave them open.
///
/// A sequence takes the memory of its elements. `SequenceErase` counts as its input, the most it can take, and what is typed as an operand
/// takes as much as that.
pub(crate) fn derive(builder: &mut GraphBuilder, op: OpId, inferred: &Inferred) {
    let graph = builder.graph();
    let node = &graph.ops[op];
    let row = operator(&node.domain, &node.op_type);
    let bytes_of = |index: usize| {
        let tensor = node.inputs.get(index).copied().flatten()?;
        graph.storages[graph.tensors[tensor].storage].bytes
    };
    let found = node.outputs.iter().enumerate().filter_map(|(index, output)| {
        let result = &graph.tensors[(*output)?];
        if graph.storages[result.storage].bytes.is_some() {
            return None;
        }
        let listed = inferred.contents.get(&result.name).copied();
        let like = || match row.results.get(index)? {
            ResultType::Like(operand) => bytes_of(*operand),
            _ => None,
        };
        let summed = || {
            let count = row.sized_as_operands.filter(|_| index == 0)?;
            // An optional made from a type alone has no operand and is empty.
            let mut operands = 0..count.min(node.inputs.len());
            operands.try_fold(0_u64, |sum, operand| sum.checked_add(bytes_of(operand)?))
        };
        Some((result.storage, like().or_else(summed).or(listed)?))
    });
    for (storage, bytes) in found.collect::<Vec<_>>() {
        builder.set_bytes(storage, bytes);
    }
}

/// Puts in the sizes that the caller states, and rejects a graph in which a result of a node is still of unknown size, unless the
/// caller wants that.
///
/// # Errors
/// [`OnnxError::UnknownTensor`], [`OnnxError::UnknownSizes`].
pub(crate) fn settle(
    builder: &mut GraphBuilder,
    options: &ImportOptions,
    inferred: &Inferred,
) -> Result<(), OnnxError> {
    let stated = &options.sizes;
    let mut left: BTreeSet<&str> = stated.keys().map(String::as_str).collect();
    let mut given = Vec::new();
    for tensor in &builder.graph().tensors {
        if let Some(&bytes) = stated.get(&tensor.name) {
            left.remove(tensor.name.as_str());
            if builder.graph().storages[tensor.storage].bytes.is_none() {
                given.push((tensor.storage, bytes));
            }
        }
    }
    if let Some(name) = left.into_iter().next() {
        let tensors = &builder.graph().tensors;
        return Err(OnnxError::UnknownTensor {
            name: name.to_owned(),
            known: tensors.iter().map(|tensor| tensor.name.clone()).collect(),
        });
    }
    given
        .into_iter()
        .for_each(|(storage, bytes)| builder.set_bytes(storage, bytes));
    // Sequences made of what was just stated.
    if !stated.is_empty() {
        (0..builder.graph().ops.len()).for_each(|op| derive(builder, OpId::new(op), inferred));
    }
    if options.open_sizes {
        Ok(())
    } else {
        unknown(builder, inferred)
    }
}

fn unknown(builder: &GraphBuilder, inferred: &Inferred) -> Result<(), OnnxError> {
    let graph = builder.graph();
    let mut tensors = Vec::new();
    let mut causes = Vec::new();
    for storage in &graph.storages {
        if storage.class != StorageClass::Intermediate || storage.bytes.is_some() {
            continue;
        }
        let tensor = &graph.tensors[storage.root];
        tensors.push(tensor.name.clone());
        let Some(producer) = tensor.producer else { continue };
        let op = &graph.ops[producer];
        let operand_is_open = |operand: &TensorId| inferred.open.contains_key(&graph.tensors[*operand].name);
        // What the operand leaves open is told there.
        if op.inputs.iter().flatten().any(operand_is_open) && !inferred.causes.contains_key(&op.name) {
            continue;
        }
        let cause = inferred.causes.get(&op.name).cloned().unwrap_or_else(|| {
            let untyped = tensor.ty == ValueType::Unknown;
            let cause = if untyped {
                "no rule for its shape"
            } else {
                "how large its result is depends on the data"
            };
            cause.to_owned()
        });
        causes.push(format!("node `{}` ({}): {cause}", op.name, op.op_type));
    }
    if tensors.is_empty() {
        return Ok(());
    }
    Err(OnnxError::UnknownSizes {
        tensors,
        // Once the inputs are known, the rest may follow.
        causes: if inferred.inputs.is_empty() { causes } else { Vec::new() },
        dims: inferred.inputs.iter().cloned().collect(),
    })
}
