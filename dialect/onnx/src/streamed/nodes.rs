//! The nodes of one op.

use std::ops::Range;

use onnx_protobuf::NodeProto;
use remat_ir::{Attribute, ElementType, Op, TensorId};

use super::state::{Streamed, unsupported};
use crate::tiles::{Tiles, part_entry};
use crate::{OnnxError, attributes, proto_type};

/// From this version on `ReduceSum` and `Squeeze` have their axes as an operand.
pub(super) const AXES_OF_SUM: u64 = 13;
/// From this version on all reductions have.
const AXES_OF_ALL: u64 = 18;

/// The axes of what is known of the channels of images.
pub(super) const RANK: usize = 4;

/// The nodes of an op, as they come.
pub(super) struct Nodes<'s, 'a> {
    pub(super) streamed: &'s mut Streamed<'a>,
    tiles: &'s Tiles<'a>,
    pub(super) op: &'a Op,
    pub(super) version: u64,
    pub(super) result: TensorId,
    pub(super) written: Vec<NodeProto>,
}

impl<'s, 'a> Nodes<'s, 'a> {
    pub(super) fn new(
        streamed: &'s mut Streamed<'a>,
        tiles: &'s Tiles<'a>,
        op: &'a Op,
        version: u64,
    ) -> Result<Self, OnnxError> {
        let result = op.results().next().ok_or_else(|| unsupported(op, "it has no result"))?;
        Ok(Self {
            streamed,
            tiles,
            op,
            version,
            result,
            written: Vec::new(),
        })
    }

    /// States the two values that the result holds, and puts them side by side for who reads both.
    pub(super) fn keep(&mut self, halves: [String; 2]) {
        if self.streamed.side_by_side.contains(&self.result) {
            self.last("Concat", &[&halves[0], &halves[1]]);
            self.set("axis", &Attribute::Int(3));
        } else if let Some(node) = self.written.last_mut() {
            node.metadata_props.extend(part_entry(self.op));
        }
        self.streamed.halves.insert((self.result, RANK), halves);
    }

    /// States the values that the result holds, of exponentials a maximum, a sum, and what is weighed; of the best, values and places.
    pub(super) fn keep_values(&mut self, kept: Vec<String>) -> Result<(), OnnxError> {
        if self.streamed.side_by_side.contains(&self.result) {
            return Err(unsupported(self.op, "something else reads what it keeps"));
        }
        if let Some(node) = self.written.last_mut() {
            node.metadata_props.extend(part_entry(self.op));
        }
        self.streamed.kept.insert(self.result, kept);
        Ok(())
    }

    /// The same of an operand: at least two values.
    pub(super) fn kept_values(&self, place: usize) -> Result<Vec<String>, OnnxError> {
        let operand = self.operand(place)?;
        let kept = self.streamed.kept.get(&operand);
        kept.cloned().ok_or_else(|| {
            unsupported(
                self.op,
                &format!("operand {place} does not hold what a first pass keeps"),
            )
        })
    }

    /// The two values that a tensor holds, for an operand of so many axes.
    pub(super) fn halves(&mut self, tensor: TensorId, rank: usize) -> Result<[String; 2], OnnxError> {
        if let Some(halves) = self.streamed.halves.get(&(tensor, rank)) {
            return Ok(halves.clone());
        }
        let halves = if rank == RANK {
            if self.dims(tensor)?.len() != RANK {
                return Err(unsupported(
                    self.op,
                    "an operand has not two numbers for each channel of each image",
                ));
            }
            let stem = self.tiles.name(tensor);
            let halves = ["first", "second"].map(|suffix| self.streamed.claim(stem, suffix));
            let name = self.streamed.claim(stem, "halves");
            let whole = [stem];
            self.push("Split", name, &whole, &halves);
            self.set("axis", &Attribute::Int(3));
            if self.version >= AXES_OF_ALL {
                self.set("num_outputs", &Attribute::Int(2));
            }
            halves
        } else {
            let shape = [&[0, 0][..], &vec![1; rank.saturating_sub(2)]].concat();
            let halves = self.halves(tensor, RANK)?;
            halves.map(|half| self.reshape("aligned", &half, &shape))
        };
        self.streamed.halves.insert((tensor, rank), halves.clone());
        Ok(halves)
    }

    pub(super) fn operand(&self, place: usize) -> Result<TensorId, OnnxError> {
        let operand = self.op.inputs.get(place).copied().flatten();
        operand.ok_or_else(|| unsupported(self.op, &format!("operand {place} is left out")))
    }

    /// The dimensions of a tensor as integers of the format.
    pub(super) fn dims(&self, tensor: TensorId) -> Result<Vec<i64>, OnnxError> {
        let tensor = &self.streamed.graph.tensors[tensor];
        let dims = tensor.ty.known_shape().into_iter().flatten();
        let dims: Option<Vec<i64>> = dims.map(|dim| i64::try_from(dim).ok()).collect();
        let is_known = tensor.ty.known_shape().is_some();
        let unknown = || unsupported(self.op, &format!("the dimensions of `{}` are not known", tensor.name));
        dims.filter(|_| is_known).ok_or_else(unknown)
    }

    pub(super) fn element(&self, tensor: TensorId) -> Result<ElementType, OnnxError> {
        let element = self.streamed.graph.tensors[tensor].ty.element();
        element.ok_or_else(|| unsupported(self.op, "the type of an operand is not known"))
    }

    /// The type of elements in which a tensor holds numbers of channels.
    pub(super) fn statistics(&self, tensor: TensorId) -> Result<ElementType, OnnxError> {
        let element = self.element(tensor)?;
        match element {
            ElementType::Float32 | ElementType::Float64 => Ok(element),
            _ => Err(unsupported(
                self.op,
                "numbers of channels are of single or double precision",
            )),
        }
    }

    /// The name of a tensor with elements of this type.
    pub(super) fn cast(&mut self, tensor: TensorId, element: ElementType) -> Result<String, OnnxError> {
        let name = self.tiles.name(tensor);
        if self.element(tensor)? == element {
            return Ok(name.to_owned());
        }
        let cast = self.add("Cast", "wide", &[name]);
        self.set("to", &Attribute::Int(i64::from(proto_type::code(element))));
        Ok(cast)
    }

    /// A reduction over these axes, which stay with one row.
    pub(super) fn reduce(&mut self, op_type: &str, suffix: &str, operand: &str, axes: Range<usize>) -> String {
        let axes: Vec<i64> = axes.filter_map(|axis| i64::try_from(axis).ok()).collect();
        let first = if op_type == "ReduceSum" {
            AXES_OF_SUM
        } else {
            AXES_OF_ALL
        };
        if self.version >= first {
            let axes = self.integers("axes", &axes);
            return self.add(op_type, suffix, &[operand, &axes]);
        }
        let result = self.add(op_type, suffix, &[operand]);
        self.set("axes", &Attribute::Ints(axes));
        result
    }

    pub(super) fn reshape(&mut self, suffix: &str, operand: &str, dims: &[i64]) -> String {
        let shape = self.integers("shape", dims);
        self.add("Reshape", suffix, &[operand, &shape])
    }

    pub(super) fn concat(&mut self, suffix: &str, operands: &[&str], axis: i64) -> String {
        let result = self.add("Concat", suffix, operands);
        self.set("axis", &Attribute::Int(axis));
        result
    }

    pub(super) fn integers(&mut self, suffix: &str, elements: &[i64]) -> String {
        let dims = [i64::try_from(elements.len()).unwrap_or(i64::MAX)];
        let bytes = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        self.streamed
            .constant(&self.op.name, suffix, ElementType::Int64, &dims, bytes)
    }

    /// Numbers of single precision, unless `element` is of double.
    pub(super) fn numbers(&mut self, suffix: &str, element: ElementType, dims: &[i64], elements: &[f64]) -> String {
        let bytes = match element {
            ElementType::Float64 => elements.iter().flat_map(|element| element.to_le_bytes()).collect(),
            _ => elements
                .iter()
                .flat_map(|&element| (element as f32).to_le_bytes())
                .collect(),
        };
        self.streamed.constant(&self.op.name, suffix, element, dims, bytes)
    }

    /// A node with one result, which is named after the op.
    pub(super) fn add(&mut self, op_type: &str, suffix: &str, operands: &[&str]) -> String {
        let name = self.streamed.claim(&self.op.name, suffix);
        self.push(op_type, name.clone(), operands, std::slice::from_ref(&name));
        name
    }

    /// The same with two results.
    pub(super) fn add_two(&mut self, op_type: &str, suffixes: [&str; 2], operands: &[&str]) -> [String; 2] {
        let results = suffixes.map(|suffix| self.streamed.claim(&self.op.name, suffix));
        self.push(op_type, results[0].clone(), operands, &results);
        results
    }

    /// The name of a tensor.
    pub(super) fn name(&self, tensor: TensorId) -> &str {
        self.tiles.name(tensor)
    }

    /// The node that gives the result of the op.
    pub(super) fn last(&mut self, op_type: &str, operands: &[&str]) {
        let result = self.tiles.name(self.result).to_owned();
        self.push(op_type, self.op.name.clone(), operands, &[result]);
        if let Some(node) = self.written.last_mut() {
            node.metadata_props.extend(part_entry(self.op));
        }
    }

    /// The same of operands of this type of elements: with a cast behind it where the result has another one.
    pub(super) fn last_of(
        &mut self,
        element: ElementType,
        op_type: &str,
        suffix: &str,
        operands: &[&str],
    ) -> Result<(), OnnxError> {
        let wanted = self.element(self.result)?;
        if wanted == element {
            self.last(op_type, operands);
            return Ok(());
        }
        let wide = self.add(op_type, suffix, operands);
        self.last("Cast", &[&wide]);
        self.set("to", &Attribute::Int(i64::from(proto_type::code(wanted))));
        Ok(())
    }

    fn push(&mut self, op_type: &str, name: String, operands: &[&str], results: &[String]) {
        self.written.push(NodeProto {
            name,
            op_type: op_type.to_owned(),
            input: operands.iter().map(|&operand| operand.to_owned()).collect(),
            output: results.to_vec(),
            ..NodeProto::default()
        });
    }

    /// Gives the node that was added last an attribute.
    pub(super) fn set(&mut self, name: &str, value: &Attribute) {
        if let Some(node) = self.written.last_mut() {
            node.attribute.extend(attributes::to_proto(name, value));
        }
    }
}
