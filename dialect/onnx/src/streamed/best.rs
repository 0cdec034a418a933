//! The largest or smallest elements along an axis, and their places.

use remat_ir::Attribute;

use super::nodes::{AXES_OF_SUM, Nodes};
use super::state::unsupported;
use crate::OnnxError;

/// What an op that finds the best states.
struct Told {
    /// The axis.
    axis: usize,
    /// How many are found of what the op reads.
    rows: i64,
    is_largest: bool,
    is_last: bool,
}

impl Nodes<'_, '_> {
    /// The best of rows of a tensor: values, and places in all of it.
    pub(super) fn best(&mut self) -> Result<(), OnnxError> {
        let told = self.told()?;
        let data = self.operand(0)?;
        let data = self.name(data).to_owned();
        let [values, places] = self.ranked(&data, &told, true)?;
        let places = match self.int("from")? {
            0 => places,
            from => {
                let from = self.integers("from", &[from]);
                self.add("Add", "placed", &[&places, &from])
            }
        };
        self.keep_values(vec![values, places])
    }

    /// Parts stand in the order of their rows: of equal values the first, or the last, is that of all.
    pub(super) fn combine_best(&mut self) -> Result<(), OnnxError> {
        let told = self.told()?;
        let parts = (0..self.op.inputs.len()).map(|place| self.kept_values(place));
        let parts = parts.collect::<Result<Vec<Vec<String>>, OnnxError>>()?;
        let [_, _, ..] = &parts[..] else {
            let kept = self.kept_values(0)?;
            return self.keep_values(kept);
        };
        let all = |value: usize| -> Result<Vec<&str>, OnnxError> {
            let values = parts.iter().map(|part| part.get(value).map(String::as_str));
            let values: Option<Vec<&str>> = values.collect();
            values.ok_or_else(|| unsupported(self.op, "an operand is not the best of anything"))
        };
        let (values, places) = (all(0)?, all(1)?);
        let axis = i64::try_from(told.axis).unwrap_or(i64::MAX);
        let values = self.concat("values", &values, axis);
        let places = self.concat("places", &places, axis);
        let [values, at] = self.ranked(&values, &told, self.is_read_for_values())?;
        let places = self.gathered("best", [&places, &at], axis);
        self.keep_values(vec![values, places])
    }

    pub(super) fn best_values(&mut self) -> Result<(), OnnxError> {
        let kept = self.kept_values(0)?;
        self.last("Identity", &[&kept[0]]);
        Ok(())
    }

    pub(super) fn best_places(&mut self) -> Result<(), OnnxError> {
        let kept = self.kept_values(0)?;
        let [_, places] = &kept[..] else {
            return Err(unsupported(self.op, "its operand has no places"));
        };
        if self.int("keepdims")? != 0 {
            self.last("Identity", &[places]);
            return Ok(());
        }
        // Other axes keep their sizes, which may be open.
        let axis = self.int("axis")?;
        if self.version >= AXES_OF_SUM {
            let axes = self.integers("axes", &[axis]);
            self.last("Squeeze", &[places, &axes]);
        } else {
            self.last("Squeeze", &[places]);
            self.set("axes", &Attribute::Ints(vec![axis]));
        }
        Ok(())
    }

    /// Values, where they are needed, and places of the best along an axis of what has this name. One is found as `ArgMax` finds it, several as
    /// `TopK`.
    fn ranked(&mut self, data: &str, told: &Told, needs_values: bool) -> Result<[String; 2], OnnxError> {
        let axis = i64::try_from(told.axis).unwrap_or(i64::MAX);
        if self.int("count")? == 1 {
            let op_type = if told.is_largest { "ArgMax" } else { "ArgMin" };
            let place = self.add(op_type, "place", &[data]);
            self.set("axis", &Attribute::Int(axis));
            self.set("keepdims", &Attribute::Int(1));
            if told.is_last {
                self.set("select_last_index", &Attribute::Int(1));
            }
            let value = match needs_values {
                true => self.gathered("value", [data, &place], axis),
                false => String::new(),
            };
            return Ok([value, place]);
        }
        if told.is_last {
            return Err(unsupported(
                self.op,
                "several of equal elements are found from the first",
            ));
        }
        let count = self.integers("count", &[told.rows]);
        let found = self.add_two("TopK", ["values", "at"], &[data, &count]);
        self.set("axis", &Attribute::Int(axis));
        self.set("largest", &Attribute::Int(i64::from(told.is_largest)));
        Ok(found)
    }

    fn gathered(&mut self, suffix: &str, operands: [&str; 2], axis: i64) -> String {
        let gathered = self.add("GatherElements", suffix, &operands);
        self.set("axis", &Attribute::Int(axis));
        gathered
    }

    /// Whether something reads more of the result than its places.
    fn is_read_for_values(&self) -> bool {
        let mut readers = self.streamed.graph.ops.iter();
        readers.any(|op| op.op_type != "BestPlaces" && op.reads().any(|read| read == self.result))
    }

    fn told(&self) -> Result<Told, OnnxError> {
        let dims = self.dims(self.result)?;
        let axis = usize::try_from(self.int("axis")?);
        let axis = axis.ok().filter(|&axis| axis + 1 < dims.len());
        let axis = axis.ok_or_else(|| unsupported(self.op, "its operand has no such axis"))?;
        Ok(Told {
            axis,
            rows: dims[axis],
            is_largest: self.int("largest")? != 0,
            is_last: self.int("last")? != 0,
        })
    }

    fn int(&self, name: &str) -> Result<i64, OnnxError> {
        let stated = self.op.attributes.get(name).and_then(Attribute::as_int);
        stated.ok_or_else(|| unsupported(self.op, &format!("it does not state `{name}`")))
    }
}
