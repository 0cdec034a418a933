//! Tiles, and what fission puts between them.
//!
//! A tile is a clone of the operations of its op, with parts of the operands and results of the part's type. A slice is copied into an allocation
//! of its own, so that what it was cut from can be released; of a constant it is a view. Pieces are joined in an allocation of the whole.

use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike};
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};
use remat_ir::{Attribute, Op, StorageClass, TensorId};
use rustc_hash::FxHashMap;

use super::state::{Applier, build_error, key};
use super::{ALLOCATION, COPY_ID};
use crate::error::ApplyError;
use crate::ffi::{self, NewAttribute, as_mut, tiles};
use crate::function::set_integer;
use crate::units::Role;

const SLICE: &str = "tensor.extract_slice";
const INSERT: &str = "tensor.insert_slice";

/// Attributes of `tensor.pad` and `tensor.expand_shape` that differ from tile to tile.
const AMOUNTS: [&str; 3] = ["static_low", "static_high", "static_output_shape"];

impl<'c> Applier<'_, 'c> {
    /// An op that fission made.
    pub(super) fn part(&mut self, op: &Op) -> Result<(), ApplyError> {
        match (op.source, op.op_type.as_str()) {
            (Some(_), _) => self.tile(op),
            (None, "Slice") => self.slice(op),
            (None, "Concat") => self.join(op),
            _ => Err(ApplyError::ForeignOp(op.name.clone())),
        }
    }

    /// A clone of an op that computes a part of its result.
    fn tile(&mut self, op: &Op) -> Result<(), ApplyError> {
        let (source, _) = self.source(op)?;
        let table = &self.imported.table;
        let position = source as usize;
        let foreign = || ApplyError::ForeignOp(op.name.clone());
        let (Some(output), Some(part)) = (op.results().next(), op.parts.first().and_then(Option::as_ref)) else {
            return Err(foreign());
        };
        let dims = part.dims().ok_or_else(foreign)?;
        let mut read: Vec<usize> = Vec::with_capacity(op.inputs.len());
        let inputs: Vec<Option<Value<'c, 'c>>> = op.inputs.iter().map(|input| self.values[(*input)?]).collect();
        read.extend(inputs.iter().map(|input| input.map_or(0, key)));
        let is_new = self.seen.insert((source, read));
        let mut own_buffer = false;
        // By value of the original operations of the op: what stands for it in the clone.
        let mut made: FxHashMap<usize, Value<'c, 'c>> = FxHashMap::default();
        let mut of_parts = inputs.iter().skip(table.entries[position].operands.len());
        let mut last = table.entries[position].op;
        for member in table.members(position) {
            let entry = &table.entries[member];
            let template = self.templates.get(&member).ok_or_else(foreign)?;
            let clone = self.insert(template.clone());
            for (index, &operand) in entry.operands.iter().enumerate() {
                let maker = operand.and_then(|value| table.values[value].maker);
                let is_inside = maker.is_some_and(|maker| table.entries[maker].role == Role::PartOf(member));
                let value = match operand {
                    Some(value) if is_inside => made.get(&key(table.values[value].value)).copied(),
                    _ if member == position => inputs.get(index).copied().flatten(),
                    Some(_) => of_parts.next().copied().flatten(),
                    None => None,
                };
                if let Some(value) = value {
                    as_mut(clone).set_operand(index, value);
                }
            }
            for (from, to) in entry.op.results().zip(clone.results()) {
                let ty = tiles::part_type(from.r#type(), &dims).ok_or_else(foreign)?;
                tiles::set_type(to.into(), ty);
                made.insert(key(from.into()), to.into());
            }
            for (index, _) in table.empties(member) {
                let is_destination = entry
                    .aliases
                    .iter()
                    .any(|alias| alias.written && alias.operand == index);
                if let (true, Ok(result)) = (is_destination, clone.result(0)) {
                    let fresh = self.allocation(result.r#type(), None, clone.location())?;
                    as_mut(fresh).move_before(clone);
                    as_mut(clone).set_operand(index, self.result(ALLOCATION, fresh)?);
                    own_buffer = true;
                }
            }
            last = clone;
        }
        for name in AMOUNTS {
            if let Some(Attribute::Ints(amounts)) = op.attributes.get(name) {
                let (name, amounts) = ffi::attribute(last.location(), name, &NewAttribute::Longs(amounts));
                as_mut(last).set_attribute(name.as_string_ref().as_str().unwrap_or_default(), amounts);
            }
        }
        if !is_new && !own_buffer {
            // Equal operations would be merged.
            self.barriers += 1;
            set_integer(last, COPY_ID, self.barriers);
        }
        self.values[output] = Some(self.result("tile", last)?);
        Ok(())
    }

    /// Rows of what an operand holds.
    fn slice(&mut self, op: &Op) -> Result<(), ApplyError> {
        let foreign = || ApplyError::ForeignOp(op.name.clone());
        let (Some(output), Some(&Some(from))) = (op.results().next(), op.inputs.first()) else {
            return Err(foreign());
        };
        let number = |place: usize| {
            let tensor = op.inputs.get(place).copied().flatten()?;
            self.new.values.get(&tensor)?.first().copied()
        };
        let (Some(start), Some(axis)) = (number(1), number(3)) else {
            return Err(foreign());
        };
        let source = self.current(from)?;
        let dims = self.dims(output).ok_or_else(foreign)?;
        let axis = usize::try_from(axis).map_err(|_| foreign())?;
        let offset = |at: usize| if at == axis { start } else { 0 };
        let offsets: Vec<i64> = (0..dims.len()).map(offset).collect();
        let ty = tiles::part_type(source.r#type(), &dims).ok_or_else(foreign)?;
        let location = self.location(from);
        let slice = self.rows(SLICE, &[source], &[1, 0, 0, 0], ty, (&offsets, &dims), location)?;
        let is_constant = self.new.storages[self.new.tensors[output].storage].class == StorageClass::Constant;
        let value = self.result(SLICE, slice)?;
        self.values[output] = Some(if is_constant {
            value
        } else {
            let copy = self.allocation(ty, Some(value), location)?;
            self.result(ALLOCATION, copy)?
        });
        Ok(())
    }

    /// Pieces one after the other along an axis.
    fn join(&mut self, op: &Op) -> Result<(), ApplyError> {
        let foreign = || ApplyError::ForeignOp(op.name.clone());
        let axis = op.attributes.get("axis").and_then(Attribute::as_int);
        let (Some(output), Some(Ok(axis))) = (op.results().next(), axis.map(usize::try_from)) else {
            return Err(foreign());
        };
        let dims = self.dims(output).ok_or_else(foreign)?;
        let mut offsets = vec![0; dims.len()];
        let mut whole: Option<(Value<'c, 'c>, Type<'c>)> = None;
        for piece in op.reads() {
            let location = self.location(piece);
            let sizes = self.dims(piece).ok_or_else(foreign)?;
            let piece = self.current(piece)?;
            let (into, ty) = match whole {
                Some(known) => known,
                None => {
                    let ty = tiles::part_type(piece.r#type(), &dims).ok_or_else(foreign)?;
                    let fresh = self.allocation(ty, None, location)?;
                    (self.result(ALLOCATION, fresh)?, ty)
                }
            };
            let inserted = self.rows(
                INSERT,
                &[piece, into],
                &[1, 1, 0, 0, 0],
                ty,
                (&offsets, &sizes),
                location,
            )?;
            whole = Some((self.result(INSERT, inserted)?, ty));
            let length = sizes
                .get(axis)
                .and_then(|&size| i64::try_from(size).ok())
                .ok_or_else(foreign)?;
            offsets[axis] += length;
        }
        self.values[output] = Some(whole.ok_or_else(foreign)?.0);
        Ok(())
    }

    fn dims(&self, tensor: TensorId) -> Option<Vec<u64>> {
        self.new.tensors[tensor].ty.known_shape()
    }

    fn result(&self, name: &'static str, operation: OperationRef<'c, 'c>) -> Result<Value<'c, 'c>, ApplyError> {
        let result = operation.result(0).map_err(|error| build_error(name, &error))?;
        Ok(result.into())
    }

    /// An operation on some rows of a tensor: where they begin, and how many there are, by axis.
    fn rows(
        &self,
        name: &'static str,
        operands: &[Value<'c, 'c>],
        segments: &[i32],
        result: Type<'c>,
        (offsets, sizes): (&[i64], &[u64]),
        location: Location<'c>,
    ) -> Result<OperationRef<'c, 'c>, ApplyError> {
        let sizes: Vec<i64> = sizes
            .iter()
            .map(|&size| i64::try_from(size).unwrap_or(i64::MAX))
            .collect();
        let strides = vec![1; sizes.len()];
        let built = OperationBuilder::new(name, location)
            .add_operands(operands)
            .add_results(&[result])
            .add_attributes(&[
                ffi::attribute(location, "static_offsets", &NewAttribute::Longs(offsets)),
                ffi::attribute(location, "static_sizes", &NewAttribute::Longs(&sizes)),
                ffi::attribute(location, "static_strides", &NewAttribute::Longs(&strides)),
                ffi::attribute(location, "operandSegmentSizes", &NewAttribute::Integers(segments)),
            ])
            .build()
            .map_err(|error| build_error(name, &error))?;
        Ok(self.insert(built))
    }

    /// A tensor with memory of its own, without contents or with those of another one.
    fn allocation(
        &self,
        ty: Type<'c>,
        contents: Option<Value<'c, 'c>>,
        location: Location<'c>,
    ) -> Result<OperationRef<'c, 'c>, ApplyError> {
        let segments = [0, i32::from(contents.is_some()), 0];
        let built = OperationBuilder::new(ALLOCATION, location)
            .add_operands(contents.as_slice())
            .add_results(&[ty])
            .add_attributes(&[ffi::attribute(
                location,
                "operandSegmentSizes",
                &NewAttribute::Integers(&segments),
            )])
            .build()
            .map_err(|error| build_error(ALLOCATION, &error))?;
        Ok(self.insert(built))
    }
}
