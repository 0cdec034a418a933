//! Small tensors whose elements are known before the model runs.

use half::{bf16, f16};
use remat_ir::ElementType;

/// Elements of a tensor at most.
pub(crate) const MAX_ELEMENTS: usize = 1 << 16;

/// A dense tensor of numbers or truth values, in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tensor {
    pub(crate) element: ElementType,
    pub(crate) dims: Vec<usize>,
    pub(crate) data: Data,
}

/// The elements: each is one that the element type has.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Data {
    /// Integers; truth values are 0 and 1.
    Integers(Vec<i64>),
    /// Floating-point numbers.
    Floats(Vec<f64>),
}

/// The number of elements of a shape, if it is not too large. Nor may the dimensions beside an empty one be: strides and loops over
/// some of the axes count them.
pub(crate) fn count(dims: &[usize]) -> Option<usize> {
    let extent = dims
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim.max(1)))?;
    let count = if dims.contains(&0) { 0 } else { extent };
    (extent <= MAX_ELEMENTS).then_some(count)
}

/// Whether elements of this type are followed, and as what.
fn is_float(element: ElementType) -> Option<bool> {
    use ElementType as E;
    match element {
        E::Float16 | E::Bfloat16 | E::Float32 | E::Float64 => Some(true),
        E::Bool | E::Int8 | E::Int16 | E::Int32 | E::Int64 | E::Uint8 | E::Uint16 | E::Uint32 | E::Uint64 => {
            Some(false)
        }
        _ => None,
    }
}

/// The integer that an element type holds where `value` is stored; `None` where that is not an integer of 63 bits.
pub(super) fn wrapped(element: ElementType, value: i64) -> Option<i64> {
    use ElementType as E;
    Some(match element {
        E::Bool => i64::from(value != 0),
        E::Int8 => i64::from(value as i8),
        E::Int16 => i64::from(value as i16),
        E::Int32 => i64::from(value as i32),
        E::Int64 => value,
        E::Uint8 => i64::from(value as u8),
        E::Uint16 => i64::from(value as u16),
        E::Uint32 => i64::from(value as u32),
        E::Uint64 if value >= 0 => value,
        _ => return None,
    })
}

/// The nearest number of a floating-point type.
pub(super) fn rounded(element: ElementType, value: f64) -> Option<f64> {
    use ElementType as E;
    Some(match element {
        E::Float16 => f16::from_f64(value).to_f64(),
        E::Bfloat16 => bf16::from_f64(value).to_f64(),
        E::Float32 => f64::from(value as f32),
        E::Float64 => value,
        _ => return None,
    })
}

impl Tensor {
    /// A tensor of integers, each as the element type stores it.
    pub(super) fn integers(
        element: ElementType,
        dims: Vec<usize>,
        values: impl IntoIterator<Item = i64>,
    ) -> Option<Self> {
        let count = count(&dims)?;
        let values: Vec<i64> = values
            .into_iter()
            .map(|value| wrapped(element, value))
            .collect::<Option<_>>()?;
        (values.len() == count).then_some(Self {
            element,
            dims,
            data: Data::Integers(values),
        })
    }

    /// A tensor of floating-point numbers, each rounded to the element type.
    pub(super) fn floats(
        element: ElementType,
        dims: Vec<usize>,
        values: impl IntoIterator<Item = f64>,
    ) -> Option<Self> {
        let count = count(&dims)?;
        let values: Vec<f64> = values
            .into_iter()
            .map(|value| rounded(element, value))
            .collect::<Option<_>>()?;
        (values.len() == count).then_some(Self {
            element,
            dims,
            data: Data::Floats(values),
        })
    }

    /// A 64-bit integer.
    pub(crate) fn scalar(value: i64) -> Option<Self> {
        Self::integers(ElementType::Int64, Vec::new(), [value])
    }

    /// A vector of 64-bit integers.
    pub(super) fn vector(values: Vec<i64>) -> Option<Self> {
        Self::integers(ElementType::Int64, vec![values.len()], values)
    }

    /// A tensor from its little-endian elements, densely packed.
    pub(crate) fn from_bytes(element: ElementType, dims: Vec<usize>, bytes: &[u8]) -> Option<Self> {
        use ElementType as E;
        let float = is_float(element)?;
        let width = usize::try_from(element.bits() / 8).ok()?;
        if bytes.len() != count(&dims)?.checked_mul(width)? {
            return None;
        }
        let word = |chunk: &[u8]| {
            chunk
                .iter()
                .rev()
                .fold(0_u64, |word, &byte| word << 8 | u64::from(byte))
        };
        let words = bytes.chunks_exact(width).map(word);
        if float {
            let number = |word: u64| match element {
                E::Float16 => f16::from_bits(word as u16).to_f64(),
                E::Bfloat16 => bf16::from_bits(word as u16).to_f64(),
                E::Float32 => f64::from(f32::from_bits(word as u32)),
                _ => f64::from_bits(word),
            };
            return Self::floats(element, dims, words.map(number));
        }
        let signed = words.map(|word| {
            i64::try_from(word)
                .ok()
                .or((element == E::Int64).then_some(word.cast_signed()))
        });
        Self::integers(element, dims, signed.collect::<Option<Vec<_>>>()?)
    }

    /// The elements as little-endian bytes, densely packed.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        use ElementType as E;
        let width = usize::try_from(self.element.bits() / 8).unwrap_or(8);
        let word = |index: usize| match &self.data {
            Data::Integers(values) => values[index] as u64,
            Data::Floats(values) => match self.element {
                E::Float16 => u64::from(f16::from_f64(values[index]).to_bits()),
                E::Bfloat16 => u64::from(bf16::from_f64(values[index]).to_bits()),
                E::Float32 => u64::from((values[index] as f32).to_bits()),
                _ => values[index].to_bits(),
            },
        };
        (0..self.len())
            .flat_map(|index| word(index).to_le_bytes()[..width].to_vec())
            .collect()
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        match &self.data {
            Data::Integers(values) => values.len(),
            Data::Floats(values) => values.len(),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The elements if they are integers.
    pub(crate) fn as_integers(&self) -> Option<&[i64]> {
        match &self.data {
            Data::Integers(values) => Some(values),
            Data::Floats(_) => None,
        }
    }

    /// The elements if they are floating-point numbers.
    pub(crate) fn as_floats(&self) -> Option<&[f64]> {
        match &self.data {
            Data::Integers(_) => None,
            Data::Floats(values) => Some(values),
        }
    }

    /// The only element, if it is an integer.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self.as_integers()? {
            [value] => Some(*value),
            _ => None,
        }
    }

    /// A tensor of another shape whose elements are those at the given places of this one.
    pub(super) fn pick(&self, dims: Vec<usize>, places: impl IntoIterator<Item = usize>) -> Option<Self> {
        let count = count(&dims)?;
        let places = places.into_iter();
        let data = match &self.data {
            Data::Integers(values) => {
                Data::Integers(places.map(|place| values.get(place).copied()).collect::<Option<_>>()?)
            }
            Data::Floats(values) => {
                Data::Floats(places.map(|place| values.get(place).copied()).collect::<Option<_>>()?)
            }
        };
        let picked = Self {
            element: self.element,
            dims,
            data,
        };
        (picked.len() == count).then_some(picked)
    }

    /// The same elements in another shape.
    pub(super) fn reshaped(&self, dims: Vec<usize>) -> Option<Self> {
        (count(&dims)? == self.len()).then(|| Self { dims, ..self.clone() })
    }
}

/// Steps between neighbours along each axis of a row-major tensor.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}

/// Where each element of a result of shape `dims` comes from, if a step along an axis moves by the stride of that axis.
pub(super) fn places(dims: &[usize], start: isize, strides: &[isize]) -> Vec<usize> {
    let mut at = vec![0_usize; dims.len()];
    let mut place = start;
    let mut found = Vec::new();
    if dims.contains(&0) {
        return found;
    }
    loop {
        // Callers keep every place within the tensor.
        found.push(usize::try_from(place).unwrap_or(usize::MAX));
        let Some(axis) = (0..dims.len()).rev().find(|&axis| at[axis] + 1 < dims[axis]) else {
            return found;
        };
        at[axis] += 1;
        place += strides[axis];
        for inner in axis + 1..dims.len() {
            place -= strides[inner] * isize::try_from(at[inner]).unwrap_or(0);
            at[inner] = 0;
        }
    }
}

/// The shape that two broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |axis| dims[axis]);
    let joined = (0..rank).map(|axis| match (dim(a, axis), dim(b, axis)) {
        (1, other) | (other, 1) => Some(other),
        (one, other) => (one == other).then_some(one),
    });
    joined.collect()
}

/// Where each element of the broadcast result comes from in a tensor of shape `from`.
pub(super) fn broadcast_places(from: &[usize], to: &[usize]) -> Vec<usize> {
    let missing = to.len() - from.len();
    let own = strides(from);
    let step = |axis: usize| match axis.checked_sub(missing) {
        Some(axis) if from[axis] != 1 => isize::try_from(own[axis]).unwrap_or(0),
        _ => 0,
    };
    places(to, 0, &(0..to.len()).map(step).collect::<Vec<_>>())
}
