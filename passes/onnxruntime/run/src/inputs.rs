//! Inputs: given, or made from a seed. The same name, type, shape and seed give the same bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ort::memory::Allocator;
use ort::value::{DynTensor, TensorElementType, ValueType};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use remat_formula::size_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Inputs of exported models that index tables of fewer than four rows, by their name: exclusive ends of their values.
/// BERT and what follows it have two segments (`type_vocab_size`).
const INDICES: [(&str, u64); 1] = [("token_type_ids", 2)];

/// What the numbers are like that floating-point inputs hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// About normally distributed, as everywhere else.
    Ordinary,
    /// The same, far from zero: by 10,000, in 16 bits by 100.
    LargeOffset,
    /// One number everywhere in an input.
    Constant,
    /// Below the least normal number.
    Denormal,
}

impl std::fmt::Display for InputKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ordinary => "ordinary inputs",
            Self::LargeOffset => "inputs far from zero",
            Self::Constant => "constant inputs",
            Self::Denormal => "denormal inputs",
        })
    }
}

impl InputKind {
    /// All of them; only the first makes sense for inputs that are no floating-point numbers.
    pub const ALL: [Self; 4] = [Self::Ordinary, Self::LargeOffset, Self::Constant, Self::Denormal];
}

/// A value that is given for an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputTensor {
    /// Name of the input.
    pub name: String,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// The elements, little-endian, of the type that the model states.
    pub bytes: Vec<u8>,
}

/// An [`InputTensor`] whose elements are in a file, on the way to another process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredTensor {
    name: String,
    shape: Vec<u64>,
    file: PathBuf,
}

impl StoredTensor {
    pub(crate) fn load(&self) -> std::io::Result<InputTensor> {
        Ok(InputTensor {
            name: self.name.clone(),
            shape: self.shape.clone(),
            bytes: std::fs::read(&self.file)?,
        })
    }
}

impl InputTensor {
    /// Writes the elements to `file`.
    pub(crate) fn store(&self, file: PathBuf) -> std::io::Result<StoredTensor> {
        remat_files::write(&file, &self.bytes)?;
        Ok(StoredTensor {
            name: self.name.clone(),
            shape: self.shape.clone(),
            file,
        })
    }

    /// The tensor, for an input of this type.
    pub(crate) fn value(&self, ty: &ValueType) -> Result<DynTensor, String> {
        let ValueType::Tensor { ty: element, shape, .. } = ty else {
            return Err(format!("it is a {ty}, and only tensors can be given"));
        };
        let fits =
            |(&wanted, &given): (&i64, &u64)| u64::try_from(wanted).is_ok_and(|wanted| wanted == given) || wanted < 0;
        if shape.len() != self.shape.len() || !shape.iter().zip(&self.shape).all(fits) {
            return Err(format!(
                "it has shape {shape:?}, a tensor of shape {:?} was given",
                self.shape
            ));
        }
        let shape: Vec<i64> = self.shape.iter().map(|&dim| dim.cast_signed()).collect();
        let mut tensor = DynTensor::new(&Allocator::default(), *element, shape).map_err(|error| error.to_string())?;
        let bytes =
            crate::output::bytes_mut(&mut tensor).ok_or_else(|| format!("element type {element} has no bytes"))?;
        if bytes.len() != self.bytes.len() {
            return Err(format!(
                "its {element} elements take {} bytes, {} were given",
                bytes.len(),
                self.bytes.len()
            ));
        }
        bytes.copy_from_slice(&self.bytes);
        Ok(tensor)
    }
}

/// A tensor of the input's type, filled from `seed` and the input's name.
///
/// Floats are scaled by the square root of the fan-in, so that deep networks stay finite; vectors stand near one, as scales
/// and variances do; integers lie in 0..4, so that they can serve as indices, or below what [`INDICES`] says. Symbolic dimensions take their value from
/// `dims`, else 1; those without a name are called `INPUT[AXIS]`.
pub(crate) fn seeded(name: &str, ty: &ValueType, dims: &BTreeMap<String, u64>, seed: u64) -> Result<DynTensor, String> {
    let ValueType::Tensor {
        ty: element,
        shape,
        dimension_symbols,
    } = ty
    else {
        return Err(format!("it is a {ty}, and only tensors can be filled"));
    };
    let resolve = |(axis, (&dim, symbol)): (usize, (&i64, &String))| match u64::try_from(dim) {
        Ok(known) => known.cast_signed(),
        Err(_) => {
            let given = size_of(&dim_name(name, axis, symbol), dims);
            given.unwrap_or(1).cast_signed()
        }
    };
    let dims_of = shape.iter().zip(dimension_symbols.iter()).enumerate();
    let shape: Vec<i64> = dims_of.map(resolve).collect();
    let mut tensor =
        DynTensor::new(&Allocator::default(), *element, shape.clone()).map_err(|error| error.to_string())?;
    let mut random = generator(seed, name);
    let end = INDICES
        .iter()
        .find(|(input, _)| *input == name)
        .map_or(4, |&(_, end)| end);
    let bytes = crate::output::bytes_mut(&mut tensor).ok_or_else(|| format!("element type {element} has no bytes"))?;
    match element {
        TensorElementType::Float32 => fill(bytes, &shape, &mut random, |x| (x as f32).to_le_bytes()),
        TensorElementType::Float64 => fill(bytes, &shape, &mut random, f64::to_le_bytes),
        TensorElementType::Float16 => fill(bytes, &shape, &mut random, |x| half::f16::from_f64(x).to_le_bytes()),
        TensorElementType::Bfloat16 => fill(bytes, &shape, &mut random, |x| half::bf16::from_f64(x).to_le_bytes()),
        TensorElementType::Bool => bytes.fill_with(|| u8::from(random.next_u64() & 1 == 1)),
        TensorElementType::Int8 | TensorElementType::Uint8 => bytes.fill_with(|| (random.next_u64() % 4) as u8),
        TensorElementType::Int16 | TensorElementType::Uint16 => integers::<2>(bytes, &mut random, end),
        TensorElementType::Int32 | TensorElementType::Uint32 => integers::<4>(bytes, &mut random, end),
        TensorElementType::Int64 | TensorElementType::Uint64 => integers::<8>(bytes, &mut random, end),
        other => return Err(format!("element type {other} is not supported as an input")),
    }
    Ok(tensor)
}

/// Makes the floating-point numbers of inputs those of a kind; whether there are any.
pub(crate) fn changed(feed: &mut [(String, DynTensor)], kind: InputKind) -> bool {
    use TensorElementType as T;
    let mut is_any = false;
    for (_, tensor) in feed {
        let element = *tensor.data_type();
        let is_short = matches!(element, T::Float16 | T::Bfloat16);
        let offset = if is_short { 1e2 } else { 1e4 };
        let least = match element {
            T::Float64 => 1e-310,
            T::Float16 => 1e-6,
            _ => 1e-40,
        };
        let mut first = None;
        is_any |= each_number(tensor, |number| match kind {
            InputKind::Ordinary => number,
            InputKind::LargeOffset => number + offset,
            InputKind::Constant => *first.get_or_insert(number),
            InputKind::Denormal => number * least,
        });
    }
    is_any
}

/// Adds to each floating-point number of inputs, or takes from it, what its type rounds it by.
pub(crate) fn nudge(feed: &mut [(String, DynTensor)]) {
    use TensorElementType as T;
    let mut random = SplitMix64::seed_from_u64(0);
    for (_, tensor) in feed {
        let rounding = match tensor.data_type() {
            T::Float64 => f64::EPSILON,
            T::Float16 => half::f16::EPSILON.to_f64(),
            T::Bfloat16 => half::bf16::EPSILON.to_f64(),
            _ => f32::EPSILON.into(),
        };
        each_number(tensor, |number| {
            let step = rounding * number.abs();
            let is_up = random.next_u64() >> 63 == 0;
            if is_up { number + step } else { number - step }
        });
    }
}

/// Changes every floating-point number of a tensor; whether it has any.
fn each_number(tensor: &mut DynTensor, mut change: impl FnMut(f64) -> f64) -> bool {
    let element = *tensor.data_type();
    let Some(bytes) = crate::output::bytes_mut(tensor) else {
        return false;
    };
    match element {
        TensorElementType::Float32 => {
            let numbers = bytes.as_chunks_mut().0.iter_mut();
            numbers.for_each(|b| *b = (change(f32::from_le_bytes(*b).into()) as f32).to_le_bytes());
        }
        TensorElementType::Float64 => {
            let numbers = bytes.as_chunks_mut().0.iter_mut();
            numbers.for_each(|b| *b = change(f64::from_le_bytes(*b)).to_le_bytes());
        }
        TensorElementType::Float16 => {
            let numbers = bytes.as_chunks_mut().0.iter_mut();
            numbers.for_each(|b| *b = half::f16::from_f64(change(half::f16::from_le_bytes(*b).into())).to_le_bytes());
        }
        TensorElementType::Bfloat16 => {
            let numbers = bytes.as_chunks_mut().0.iter_mut();
            numbers.for_each(|b| *b = half::bf16::from_f64(change(half::bf16::from_le_bytes(*b).into())).to_le_bytes());
        }
        _ => return false,
    }
    !bytes.is_empty()
}

/// What the dimensions of an input are called that the model leaves open.
pub(crate) fn open_dims(name: &str, ty: &ValueType) -> Vec<String> {
    let ValueType::Tensor {
        shape,
        dimension_symbols,
        ..
    } = ty
    else {
        return Vec::new();
    };
    let dims = shape.iter().zip(dimension_symbols.iter()).enumerate();
    let open = dims.filter(|(_, (dim, _))| **dim < 0);
    open.map(|(axis, (_, symbol))| dim_name(name, axis, symbol)).collect()
}

/// What a dimension of an input is called that the model leaves open.
fn dim_name(input: &str, axis: usize, symbol: &str) -> String {
    match symbol {
        "" => format!("{input}[{axis}]"),
        symbol => symbol.to_owned(),
    }
}

fn fill<const N: usize>(bytes: &mut [u8], shape: &[i64], random: &mut SplitMix64, encode: impl Fn(f64) -> [u8; N]) {
    let fan_in: i64 = shape.iter().skip(1).product();
    let is_weight = matches!(shape.len(), 2 | 4) && shape[0] > 1;
    let scale = if is_weight {
        1.0 / (fan_in.max(1) as f64).sqrt()
    } else {
        1.0
    };
    for chunk in bytes.chunks_exact_mut(N) {
        let value = if shape.len() == 1 {
            1.0 + 0.1 * normal(random)
        } else {
            scale * normal(random)
        };
        chunk.copy_from_slice(&encode(value));
    }
}

fn integers<const N: usize>(bytes: &mut [u8], random: &mut SplitMix64, end: u64) {
    for chunk in bytes.chunks_exact_mut(N) {
        chunk.fill(0);
        chunk[0] = (random.next_u64() % end) as u8;
    }
}

/// A generator started from the seed and a hash of the name.
fn generator(seed: u64, name: &str) -> SplitMix64 {
    // FNV-1a: stable across versions and platforms, unlike the standard library's hasher.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    SplitMix64::seed_from_u64(seed ^ hash)
}

/// Close to a standard normal: the sum of four uniform numbers, scaled to unit variance.
fn normal(random: &mut SplitMix64) -> f64 {
    let sum: f64 = (0..4)
        .map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64)
        .sum();
    (sum - 2.0) * 3f64.sqrt()
}
