//! Tensors with their values: small ones as literals, weights as blobs after the module.

use remat_ir::{ElementType, ValueType};
use remat_onnx::OnnxModel;
use remat_onnx::proto::TensorProto;

use crate::element::{Literal, elements, literal};
use crate::emit::{Emitter, Head, Value};
use crate::parameters;
use crate::resource::{Parameter, Weight};
use crate::{ExportError, Form, text, types};

/// Tensors of up to this many elements are written as literals, which people can read and compilers fold.
const SMALL: u64 = 32;

/// Element type and shape of a tensor in the file.
///
/// # Errors
/// Why it has none.
pub(crate) fn stated(tensor: &TensorProto) -> Result<(ElementType, Vec<u64>), String> {
    let element = remat_onnx::element_type(tensor.data_type)?.ok_or("it has no element type")?;
    let dims = tensor.dims.iter().map(|&dim| u64::try_from(dim));
    let dims = dims.collect::<Result<_, _>>().map_err(|_| "a dimension is negative")?;
    Ok((element, dims))
}

impl Emitter<'_> {
    /// Writes a constant. Its type follows from its values, not from what was inferred.
    pub(crate) fn constant(
        &mut self,
        model: &OnnxModel,
        tensor: &TensorProto,
        (called, location): (&str, &str),
        place: &str,
        weight: Option<Weight>,
    ) -> Result<Value, ExportError> {
        let stated = stated(tensor).map_err(|why| self.unsupported(place, why))?;
        let ty = self.type_of(called, &ValueType::tensor(stated.0, &stated.1))?;
        if let Some(weight) = weight.filter(|_| self.resources.are_parameters)
            && self.is_parameter(stated.0, &stated.1)
        {
            return self.parameter(weight, called, stated, &ty, location);
        }
        let key = if self.options.form == Form::Torch {
            "torch.onnx.value"
        } else {
            "value"
        };
        let head = Head {
            name: "onnx.Constant",
            operands: &[],
            results: &[ty],
            called,
            location,
        };
        let values = self.op(
            &head,
            Some(&mut |emitter| {
                write!(emitter.out, "{key} = ")?;
                emitter.dense(model, tensor, place, weight)
            }),
            &mut [],
        )?;
        values
            .into_iter()
            .next()
            .ok_or_else(|| self.unsupported(place, "it has no value"))
    }

    /// Whether a tensor is large enough to stand beside the module, and of a type that the file has.
    fn is_parameter(&self, element: ElementType, shape: &[u64]) -> bool {
        let count = shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
        count.is_some_and(|count| count > SMALL) && parameters::dtype(element).is_some()
    }

    /// Writes the load of a weight that stands beside the module.
    ///
    /// # Errors
    /// Those of writing.
    fn parameter(
        &mut self,
        weight: Weight,
        name: &str,
        (element, shape): (ElementType, Vec<u64>),
        ty: &str,
        location: &str,
    ) -> Result<Value, ExportError> {
        // IREE's tensors have no signs.
        let builtin = types::tensor(element, &shape, Form::Remat).map_err(|why| self.unsupported(location, why))?;
        let bytes = ValueType::tensor(element, &shape).bytes().ok().flatten().unwrap_or(0);
        let symbol = self.resources.claim(name);
        let (plain, value) = (self.value("plain", &builtin), self.value(name, ty));
        self.line(
            &format!("{} = util.global.load @{symbol} : {builtin}", plain.name),
            location,
        )?;
        let cast = format!("torch_c.from_builtin_tensor {} : {builtin} -> {ty}", plain.name);
        self.line(&format!("{} = {cast}", value.name), location)?;
        self.resources.parameters.push(Parameter {
            symbol,
            key: name.to_owned(),
            ty: builtin,
            weight,
            element,
            shape,
            bytes,
        });
        Ok(value)
    }

    /// Writes a tensor as an attribute: `dense<…> : tensor<…>`. `place` names it in errors; a `weight` may become a blob.
    ///
    /// # Errors
    /// [`ExportError::Unsupported`] if the form has no such elements or the values do not fit the shape; those of reading the
    /// values and of writing.
    pub(crate) fn dense(
        &mut self,
        model: &OnnxModel,
        tensor: &TensorProto,
        place: &str,
        weight: Option<Weight>,
    ) -> Result<(), ExportError> {
        let (element, shape) = stated(tensor).map_err(|why| self.unsupported(place, why))?;
        let ty = types::tensor(element, &shape, self.options.form).map_err(|why| self.unsupported(place, why))?;
        let size = ValueType::tensor(element, &shape).bytes();
        let bytes = size
            .ok()
            .flatten()
            .ok_or_else(|| self.unsupported(place, "it is too large"))?;
        // Other dimensions of an empty tensor may be as large as they like.
        if shape.contains(&0) {
            write!(self.out, "dense<> : {ty}")?;
            return Ok(());
        }
        let count: u64 = shape.iter().product();
        let Some(literal) = literal(element) else {
            return self.strings(tensor, &shape, &ty, place);
        };
        let is_small = count <= SMALL && literal != Literal::Complex;
        match weight {
            _ if is_small || !literal.is_raw() => self.list(model, tensor, (element, literal), &shape, place)?,
            Some(weight) => {
                let name = self.resources.add(&tensor.name, weight, bytes);
                write!(self.out, "dense_resource<{name}>")?;
            }
            None => {
                write!(self.out, "dense<\"0x")?;
                let copied = text::copy_hex(&mut *model.values(tensor)?, self.out)?;
                if copied != bytes {
                    return Err(self.unfit(place, copied, bytes));
                }
                write!(self.out, "\">")?;
            }
        }
        write!(self.out, " : {ty}")?;
        Ok(())
    }

    /// Writes all elements, in brackets as deep as the shape.
    fn list(
        &mut self,
        model: &OnnxModel,
        tensor: &TensorProto,
        (element, literal): (ElementType, Literal),
        shape: &[u64],
        place: &str,
    ) -> Result<(), ExportError> {
        let mut bytes = Vec::new();
        model.values(tensor)?.read_to_end(&mut bytes)?;
        let count: u64 = shape.iter().product();
        let needed = (count * element.bits()).div_ceil(8);
        if bytes.len() as u64 != needed {
            return Err(self.unfit(place, bytes.len() as u64, needed));
        }
        let texts = elements(&bytes, element).map(|bits| literal.text(bits));
        self.nested(texts, shape)
    }

    fn strings(&mut self, tensor: &TensorProto, shape: &[u64], ty: &str, place: &str) -> Result<(), ExportError> {
        let (found, needed) = (tensor.string_data.len() as u64, shape.iter().product::<u64>());
        if found != needed {
            return Err(self.unsupported(place, format!("it has {found} strings, its shape needs {needed}")));
        }
        self.nested(tensor.string_data.iter().map(|bytes| text::string(bytes)), shape)?;
        write!(self.out, " : {ty}")?;
        Ok(())
    }

    /// `dense<[[a, b], [c, d]]>`. A scalar stands without brackets.
    fn nested(&mut self, texts: impl Iterator<Item = String>, shape: &[u64]) -> Result<(), ExportError> {
        let count: u64 = shape.iter().product();
        // Elements in one bracket of each depth, from the innermost outwards.
        let mut spans: Vec<u64> = Vec::new();
        for &dim in shape.iter().rev() {
            spans.push(dim * spans.last().copied().unwrap_or(1));
        }
        write!(self.out, "dense<")?;
        for (index, text) in (0..count).zip(texts) {
            let opening = spans.iter().filter(|&&span| index % span == 0).count();
            let closing = spans.iter().filter(|&&span| (index + 1) % span == 0).count();
            if index > 0 {
                write!(self.out, ", ")?;
            }
            write!(self.out, "{}{text}{}", "[".repeat(opening), "]".repeat(closing))?;
        }
        write!(self.out, ">")?;
        Ok(())
    }

    fn unfit(&self, place: &str, found: u64, needed: u64) -> ExportError {
        self.unsupported(place, format!("it has {found} bytes, its shape needs {needed}"))
    }
}
