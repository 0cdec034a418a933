//! A node with its operands, as rules ask for them.

use onnx_runtime_ir::{Attribute, Node};
use onnx_runtime_shape_inference::{NodeIo, TypeInfo};
use remat_formula::Formula;

use super::fraction::Fraction;
use super::table::{Shape, Table};
use crate::values::axis as place_of;

/// A node with what is known of its operands.
pub(super) struct Call<'c> {
    pub(super) node: &'c Node,
    pub(super) inputs: &'c [NodeIo],
    /// Version of the standard operators.
    pub(super) version: u64,
    /// How many results it has.
    pub(super) results: usize,
}

impl Call<'_> {
    /// The type of an operand.
    pub(super) fn info(&self, operand: usize) -> Option<&TypeInfo> {
        self.inputs.get(operand)?.type_info.as_ref()
    }

    /// The shape of an operand.
    pub(super) fn shape(&self, operand: usize, table: &Table) -> Option<Shape> {
        Some(table.shape(self.info(operand)?))
    }

    /// The elements of an operand; `None` where not even their number is known.
    pub(super) fn elements(&self, operand: usize, table: &Table) -> Option<Vec<Option<Fraction>>> {
        let data = self.inputs.get(operand)?.shape_data.as_ref()?;
        let elements: Vec<_> = match &data.float_elems {
            Some(numbers) => numbers.iter().map(|&number| Fraction::of_float(number)).collect(),
            None => data.elems.iter().map(|dim| table.fraction(dim)).collect(),
        };
        (elements.len() == data.dims.iter().product::<usize>()).then_some(elements)
    }

    /// The elements of an operand that only one rule multiplies with, which does so exactly.
    pub(super) fn factors(&self, operand: usize, table: &Table) -> Option<Vec<Option<Fraction>>> {
        let data = self.inputs.get(operand)?.shape_data.as_ref()?;
        match &data.float_elems {
            Some(numbers) => Some(numbers.iter().map(|&number| Fraction::exact(number)).collect()),
            None => self.elements(operand, table),
        }
    }

    /// The elements of an operand that are whole.
    pub(super) fn integers(&self, operand: usize, table: &Table) -> Option<Shape> {
        let whole = |element: Option<Fraction>| element.filter(|element| element.by == 1).map(|element| element.over);
        Some(self.elements(operand, table)?.into_iter().map(whole).collect())
    }

    /// The elements of an operand that are all numbers.
    pub(super) fn numbers(&self, operand: usize, table: &Table) -> Option<Vec<i64>> {
        let elements = self.integers(operand, table)?;
        elements.iter().map(|element| element.as_ref()?.as_constant()).collect()
    }

    /// Whether the node has this operand.
    pub(super) fn has(&self, operand: usize) -> bool {
        self.node.inputs.get(operand).copied().flatten().is_some()
    }

    /// An attribute that is a list of integers.
    pub(super) fn list(&self, name: &str) -> Option<&[i64]> {
        self.node.attr(name).and_then(Attribute::as_ints)
    }

    /// An attribute that is an integer.
    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.node.attr(name).and_then(Attribute::as_int).unwrap_or(default)
    }

    /// An attribute that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.node.attr(name).and_then(Attribute::as_str)
    }

    /// Axes as places; `None` if one is none, or stands twice.
    pub(super) fn places(&self, axes: &[i64], rank: usize) -> Option<Vec<usize>> {
        let mut places = Vec::with_capacity(axes.len());
        for &axis in axes {
            let place = place_of(axis, rank).filter(|place| !places.contains(place))?;
            places.push(place);
        }
        Some(places)
    }
}

/// A number as a formula.
pub(super) fn number(value: i64) -> Formula {
    Formula::constant(value)
}
