//! The invariants of fission: parts of tensors, and elements of constants.

use crate::{ElementType, Graph, GraphError, Op, Part, StorageClass, TensorId};

impl Graph {
    /// Every result of an op of fission is a part with rows, and has the dimensions of it.
    pub(crate) fn check_parts(&self, errors: &mut Vec<GraphError>) {
        for op in self.ops.iter().filter(|op| !op.parts.is_empty()) {
            if let Err(why) = self.parts_of(op) {
                let op = op.name.clone();
                errors.push(GraphError::BadPart { op, why });
            }
        }
    }

    fn parts_of(&self, op: &Op) -> Result<(), String> {
        if !op.kind.is_run() {
            return Err("it computes nothing".to_owned());
        }
        if op.parts.len() != op.outputs.len() || op.results().next().is_none() {
            let (parts, results) = (op.parts.len(), op.outputs.len());
            return Err(format!("{parts} parts are stated of {results} results"));
        }
        for (result, part) in op.outputs.iter().zip(&op.parts) {
            match (result, part) {
                (Some(result), Some(part)) => self.part_of(*result, part)?,
                (None, None) => {}
                (Some(result), None) => {
                    let name = &self.tensors[*result].name;
                    return Err(format!("of result `{name}` no part is stated"));
                }
                (None, Some(part)) => return Err(format!("there is no result for the part {part}")),
            }
        }
        Ok(())
    }

    fn part_of(&self, result: TensorId, part: &Part) -> Result<(), String> {
        let tensor = &self.tensors[result];
        if part.ranges.iter().any(|range| range.start >= range.end) {
            return Err(format!("an axis of {part} has no rows"));
        }
        let dims = part
            .dims()
            .ok_or_else(|| format!("the spare rows of {part} cannot be"))?;
        match tensor.ty.known_shape().filter(|_| !part.is_sum) {
            Some(known) if known != dims => Err(format!(
                "result `{}` has the dimensions {known:?}, {part} takes {dims:?}",
                tensor.name
            )),
            _ => Ok(()),
        }
    }

    /// Elements are those of an integer constant.
    pub(crate) fn check_values(&self, errors: &mut Vec<GraphError>) {
        for (&tensor, elements) in &self.values {
            if let Err(why) = self.values_of(tensor, elements) {
                let name = self.tensors.get(tensor).map(|tensor| tensor.name.clone());
                errors.push(GraphError::BadValues {
                    tensor: name.unwrap_or_else(|| format!("tensor {}", tensor.index())),
                    why,
                });
            }
        }
    }

    fn values_of(&self, id: TensorId, elements: &[i64]) -> Result<(), String> {
        let tensor = self.tensors.get(id).ok_or("there is no such tensor")?;
        if self.storages[tensor.storage].class != StorageClass::Constant {
            return Err("it is not a constant".to_owned());
        }
        let fits = match tensor.ty.element() {
            Some(ElementType::Int64) => |_: &i64| true,
            Some(ElementType::Int32) => |&element: &i64| i32::try_from(element).is_ok(),
            _ => return Err("its type is neither i64 nor i32".to_owned()),
        };
        if let Some(element) = elements.iter().find(|&element| !fits(element)) {
            return Err(format!("{element} does not fit its type"));
        }
        let dims = tensor.ty.known_shape().ok_or("its shape is not known")?;
        let expected = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
        if expected != Some(elements.len() as u64) {
            return Err(format!("{} are stated of {}", elements.len(), tensor.ty));
        }
        Ok(())
    }
}
