//! Inputs: given, or made from a seed. The same name, type, shape and seed give the same bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ort::memory::Allocator;
use ort::value::{DynTensor, TensorElementType, ValueType};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// Inputs of exported models that index tables of fewer than four rows, by their name: exclusive ends of their values.
/// BERT and what follows it have two segments (`type_vocab_size`).
const INDICES: [(&str, u64); 1] = [("token_type_ids", 2)];

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
            let given = dims.get(&dim_name(name, axis, symbol));
            given.copied().unwrap_or(1).cast_signed()
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
