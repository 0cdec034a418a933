//! Attributes of nodes.

use std::collections::BTreeMap;

use remat_onnx::OnnxModel;
use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::{AttributeProto, TensorProto};

use crate::emit::Emitter;
use crate::{ExportError, Form, text, types};

/// An attribute that no node of the file has: its key and its value as text.
pub(crate) type Extra<'a> = (&'a str, String);

/// Whether it holds subgraphs, which stand as regions and not among the attributes.
pub(crate) fn is_graph(attribute: &AttributeProto) -> bool {
    remat_onnx::attribute_kind(attribute) == Some(AttributeType::GRAPH)
}

impl Emitter<'_> {
    /// Writes `extra` and then all attributes that are not subgraphs, separated by commas. `place` names the node in errors.
    ///
    /// # Errors
    /// [`ExportError::Unsupported`] for kinds that the form lacks.
    pub(crate) fn attributes(
        &mut self,
        model: &OnnxModel,
        extra: &[Extra<'_>],
        attributes: &[AttributeProto],
        place: &str,
    ) -> Result<(), ExportError> {
        let mut comma = "";
        for (name, value) in extra {
            write!(self.out, "{comma}{} = {value}", key(name))?;
            comma = ", ";
        }
        let prefix = if self.options.form == Form::Torch {
            "torch.onnx."
        } else {
            ""
        };
        for attribute in attributes.iter().filter(|a| !is_graph(a)) {
            write!(self.out, "{comma}{} = ", key(&format!("{prefix}{}", attribute.name)))?;
            let place = format!("attribute `{}` of {place}", attribute.name);
            self.attribute(model, attribute, &place)?;
            comma = ", ";
        }
        Ok(())
    }

    fn attribute(&mut self, model: &OnnxModel, attribute: &AttributeProto, place: &str) -> Result<(), ExportError> {
        use AttributeType as T;
        let integers = if self.options.form == Form::Torch {
            " : si64"
        } else {
            ""
        };
        if !attribute.ref_attr_name.is_empty() {
            return Err(self.unsupported(place, "it refers to an attribute outside of a function"));
        }
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let value = match remat_onnx::attribute_kind(attribute) {
            Some(T::INT) => format!("{} : si64", attribute.i),
            Some(T::FLOAT) => format!("{} : f32", text::float(attribute.f)),
            Some(T::STRING) => text::string(&attribute.s),
            Some(T::INTS) => list(attribute.ints.iter().map(|i| format!("{i}{integers}")).collect()),
            Some(T::FLOATS) => list(attribute.floats.iter().map(|&f| text::float(f) + " : f32").collect()),
            Some(T::STRINGS) => list(attribute.strings.iter().map(|s| text::string(s)).collect()),
            Some(T::TENSOR) => return self.dense(model, attribute.t.get_or_default(), place, None),
            Some(T::TENSORS) => return self.tensors(model, &attribute.tensors, place),
            Some(T::TYPE_PROTO) if self.options.form != Form::Torch => {
                let ty = attribute.tp.get_or_default();
                let ty = remat_onnx::value_type(ty, &BTreeMap::new());
                ty.and_then(|ty| types::value_type(&ty, self.options.form))
                    .map_err(|why| self.unsupported(place, why))?
            }
            kind => {
                let kind = kind.map_or_else(|| "an unknown kind".to_owned(), |kind| format!("kind {kind:?}"));
                return Err(self.unsupported(place, format!("it has no attributes of {kind}")));
            }
        };
        write!(self.out, "{value}")?;
        Ok(())
    }

    fn tensors(&mut self, model: &OnnxModel, tensors: &[TensorProto], place: &str) -> Result<(), ExportError> {
        write!(self.out, "[")?;
        for (index, tensor) in tensors.iter().enumerate() {
            if index > 0 {
                write!(self.out, ", ")?;
            }
            self.dense(model, tensor, place, None)?;
        }
        write!(self.out, "]")?;
        Ok(())
    }
}

/// A key of a dictionary: bare where the syntax allows it, else quoted.
fn key(name: &str) -> String {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    if name.starts_with(is_first) && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        text::string(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_quoted_where_they_must_be() {
        assert_eq!(key("torch.onnx.axis"), "torch.onnx.axis");
        assert_eq!(key("2nd"), "\"2nd\"");
        assert_eq!(key("a b"), "\"a b\"");
    }
}
