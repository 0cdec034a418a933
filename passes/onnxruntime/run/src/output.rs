//! The bits of a value, for comparison.

use ort::value::{DynTensor, DynTensorValueType, DynValue, TensorElementType, ValueType};

/// One output of a run. Two outputs are equal if name, type, shape and every bit agree; NaNs compare by their bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Name in the model's signature.
    pub name: String,
    /// The runtime's name of the element type; for a sequence `sequence of` those of its tensors.
    pub element: String,
    /// Dimensions; for a sequence those of its tensors, each after its rank.
    pub shape: Vec<i64>,
    /// Little-endian elements, those of a sequence one tensor after the other; strings are separated by a zero byte.
    pub bytes: Vec<u8>,
}

impl Output {
    pub(crate) fn of(name: String, value: DynValue) -> Result<Self, String> {
        let (ty, shape) = match value.dtype() {
            ValueType::Tensor { ty, shape, .. } => (ty, shape),
            ValueType::Sequence(_) => return Self::of_sequence(name, &value),
            other => {
                return Err(format!(
                    "output `{name}` is a {other}, and only tensors and sequences of them can be compared"
                ));
            }
        };
        let (element, shape) = (*ty, shape.to_vec());
        let bytes = if element == TensorElementType::String {
            let (_, strings) = value.try_extract_strings().map_err(|error| error.to_string())?;
            strings.iter().flat_map(|s| s.bytes().chain([0])).collect()
        } else {
            bytes(&value.downcast().map_err(|error| error.to_string())?).to_vec()
        };
        Ok(Self {
            name,
            element: element.to_string(),
            shape,
            bytes,
        })
    }
}

/// The form of an output, what `of_bytes` makes of its bytes, and whether all its elements are finite. The bytes of a tensor are not copied:
/// memory of ours would change what later runs find.
pub(crate) fn viewed<T>(
    name: String,
    value: DynValue,
    of_bytes: impl FnOnce(&[u8]) -> T,
) -> Result<(Output, T, bool), String> {
    let (element, shape) = match value.dtype() {
        ValueType::Tensor { ty, shape, .. } if *ty != TensorElementType::String => (*ty, shape.to_vec()),
        _ => {
            let mut output = Output::of(name, value)?;
            let (seen, is_finite) = (of_bytes(&output.bytes), output.is_finite());
            output.bytes = Vec::new();
            return Ok((output, seen, is_finite));
        }
    };
    let tensor: DynTensor = value.downcast().map_err(|error| error.to_string())?;
    let output = Output {
        name,
        element: element.to_string(),
        shape,
        bytes: Vec::new(),
    };
    let bytes = bytes(&tensor);
    let is_finite = are_finite(output.plain_element(), bytes);
    Ok((output, of_bytes(bytes), is_finite))
}

/// Whether no element of this type is NaN or infinite.
fn are_finite(element: Option<&str>, bytes: &[u8]) -> bool {
    match element {
        Some("f64") => bytes.as_chunks().0.iter().all(|&b| f64::from_le_bytes(b).is_finite()),
        Some("f32") => bytes.as_chunks().0.iter().all(|&b| f32::from_le_bytes(b).is_finite()),
        Some("f16") => bytes
            .as_chunks()
            .0
            .iter()
            .all(|&b| half::f16::from_le_bytes(b).is_finite()),
        Some("bf16") => bytes
            .as_chunks()
            .0
            .iter()
            .all(|&b| half::bf16::from_le_bytes(b).is_finite()),
        _ => true,
    }
}

impl Output {
    /// Bytes of one element; 1 where elements have no fixed size or differ in it.
    pub(crate) fn element_bytes(&self) -> usize {
        match self.plain_element() {
            Some("f64" | "i64" | "u64") => 8,
            Some("f32" | "i32" | "u32") => 4,
            Some("f16" | "bf16" | "i16" | "u16") => 2,
            _ => 1,
        }
    }

    /// The elements as numbers; `None` where they are not floating-point numbers.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        let bytes = &self.bytes;
        Some(match self.plain_element()? {
            "f64" => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
            "f32" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| f64::from(f32::from_le_bytes(b)))
                .collect(),
            "f16" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| half::f16::from_le_bytes(b).to_f64())
                .collect(),
            "bf16" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| half::bf16::from_le_bytes(b).to_f64())
                .collect(),
            _ => return None,
        })
    }

    /// Whether no element is NaN or infinite. Elements that are no floating-point numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        are_finite(self.plain_element(), &self.bytes)
    }

    /// The type of all elements, of those of a sequence if its tensors agree.
    fn plain_element(&self) -> Option<&str> {
        let mut elements = self.element.trim_start_matches("sequence of").split_whitespace();
        let first = elements.next()?;
        elements.all(|element| element == first).then_some(first)
    }

    fn of_sequence(name: String, value: &DynValue) -> Result<Self, String> {
        let tensors = value.try_extract_sequence::<DynTensorValueType>();
        let mut whole = Self {
            name,
            element: "sequence of".to_owned(),
            shape: Vec::new(),
            bytes: Vec::new(),
        };
        for tensor in tensors.map_err(|error| error.to_string())? {
            let part = Self::of(whole.name.clone(), tensor.into_dyn())?;
            whole.element = format!("{} {}", whole.element, part.element);
            whole.shape.push(i64::try_from(part.shape.len()).unwrap_or(i64::MAX));
            whole.shape.extend(part.shape);
            whole.bytes.extend(part.bytes);
        }
        Ok(whole)
    }
}

/// A tensor's elements.
#[expect(
    unsafe_code,
    reason = "the runtime hands out tensors of any element type as an untyped pointer only"
)]
fn bytes(tensor: &DynTensor) -> &[u8] {
    let size = tensor.size().unwrap_or(0);
    if size == 0 {
        return &[];
    }
    // SAFETY: the pointer is valid for `size` bytes while `tensor` lives, the memory is the CPU's (a run brings its outputs there
    // unless they are bound elsewhere, which this crate never does), every byte was written by the kernel, and nothing writes to it while `tensor` is borrowed.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), size) }
}

/// The elements of a fresh tensor, to be filled; `None` for strings.
#[expect(
    unsafe_code,
    reason = "the runtime hands out tensors of any element type as an untyped pointer only"
)]
pub(crate) fn bytes_mut(tensor: &mut DynTensor) -> Option<&mut [u8]> {
    if *tensor.data_type() == TensorElementType::String {
        return None;
    }
    let size = tensor.size()?;
    if size == 0 {
        return Some(&mut []);
    }
    // SAFETY: `DynTensor::new` zeroed `size` bytes at this pointer, they belong to `tensor`, and the returned slice borrows
    // `tensor` mutably, so nobody else can reach them.
    Some(unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr_mut().cast::<u8>(), size) })
}
