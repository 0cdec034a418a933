//! Types of values.

use remat_ir::{Dim, ElementType, ValueType};

use crate::Form;
use crate::element::element;

/// The type as text.
///
/// # Errors
/// Why the form has none.
pub(crate) fn value_type(ty: &ValueType, form: Form) -> Result<String, String> {
    match form {
        Form::Torch => torch(ty).map(|text| format!("!torch.{text}")),
        Form::OnnxMlir | Form::Remat => builtin(ty, form),
    }
}

/// The builtin tensor of the same shape and elements: the type of constants in every form.
///
/// # Errors
/// Why there is none.
pub(crate) fn tensor(element_type: ElementType, shape: &[u64], form: Form) -> Result<String, String> {
    let dims: String = shape.iter().map(|dim| format!("{dim}x")).collect();
    let element = element(element_type, form).ok_or_else(|| no_elements(element_type))?;
    Ok(format!("tensor<{dims}{element}>"))
}

fn no_elements(element: ElementType) -> String {
    format!("it has no elements of type `{}`", element.name())
}

/// A type of torch without the prefix `!torch.`, which stands before the outermost type only.
fn torch(ty: &ValueType) -> Result<String, String> {
    Ok(match ty {
        ValueType::Tensor { element: e, shape } => {
            let element = element(*e, Form::Torch).ok_or_else(|| no_elements(*e))?;
            match shape {
                None => format!("vtensor<*,{element}>"),
                Some(dims) => {
                    let dims: Vec<String> = dims.iter().map(dim).collect();
                    format!("vtensor<[{}],{element}>", dims.join(","))
                }
            }
        }
        ValueType::Sequence(inner) => format!("list<{}>", torch(inner)?),
        ValueType::Optional(inner) => format!("optional<{}>", torch(inner)?),
        ValueType::Unknown => "vtensor".to_owned(),
        ValueType::SparseTensor { .. } => return Err("it has no sparse tensors".to_owned()),
        ValueType::Map { .. } => return Err("it has no maps".to_owned()),
    })
}

fn builtin(ty: &ValueType, form: Form) -> Result<String, String> {
    Ok(match ty {
        ValueType::Tensor { element: e, shape } => {
            let element = element(*e, form).ok_or_else(|| no_elements(*e))?;
            match shape {
                None => format!("tensor<*x{element}>"),
                Some(dims) => {
                    let dims: String = dims.iter().map(|d| dim(d) + "x").collect();
                    format!("tensor<{dims}{element}>")
                }
            }
        }
        ValueType::Sequence(inner) => format!("!onnx.Seq<{}>", builtin(inner, form)?),
        ValueType::Optional(inner) => format!("!onnx.Opt<{}>", builtin(inner, form)?),
        ValueType::Unknown => return Err("its type is not known".to_owned()),
        ValueType::SparseTensor { .. } => return Err("it has no sparse tensors".to_owned()),
        ValueType::Map { .. } => return Err("it has no maps".to_owned()),
    })
}

fn dim(dim: &Dim) -> String {
    match dim {
        Dim::Known(size) => size.to_string(),
        Dim::Symbol(_) | Dim::Free { .. } | Dim::Unknown => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_written_as_far_as_they_are_known() {
        let open = ValueType::Tensor {
            element: ElementType::Int64,
            shape: Some(vec![Dim::Symbol("batch".into()), Dim::Known(3)]),
        };
        assert_eq!(value_type(&open, Form::Torch), Ok("!torch.vtensor<[?,3],si64>".into()));
        assert_eq!(value_type(&open, Form::Remat), Ok("tensor<?x3xi64>".into()));
        let unranked = ValueType::Tensor {
            element: ElementType::Float32,
            shape: None,
        };
        let nested = ValueType::Optional(Box::new(ValueType::Sequence(Box::new(unranked))));
        let torch = "!torch.optional<list<vtensor<*,f32>>>";
        assert_eq!(value_type(&nested, Form::Torch), Ok(torch.into()));
        let onnx = "!onnx.Opt<!onnx.Seq<tensor<*xf32>>>";
        assert_eq!(value_type(&nested, Form::OnnxMlir), Ok(onnx.into()));
    }

    #[test]
    fn what_a_form_lacks_is_said() {
        let strings = ValueType::tensor(ElementType::String, &[2]);
        assert_eq!(
            value_type(&strings, Form::Torch),
            Err("it has no elements of type `str`".into())
        );
        assert!(value_type(&strings, Form::Remat).is_ok());
        assert!(value_type(&ValueType::Unknown, Form::Remat).is_err());
    }
}
