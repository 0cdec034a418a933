//! Types of values.

use melior::ir::Type;
use remat_ir::{Dim, ElementType, ValueType};

use crate::ffi;

/// The type of a value in the graph: a tensor, or [`ValueType::Unknown`] for what takes no memory of the run.
///
/// Dynamic extents become `extent`, where that is given. Elements take whole bytes, as they do once tensors are buffers; where the graph
/// has no such element type, one of the same size stands for it.
pub(crate) fn value_type(ty: Type<'_>, extent: Option<u64>) -> ValueType {
    if let (Some(shape), Some(element)) = (ffi::shape(ty), ffi::element(ty)) {
        let element = ffi::element_bits(element).and_then(|bits| element_type(&element.to_string(), bits));
        return element.map_or(ValueType::Unknown, |element| tensor(element, shape, extent));
    }
    vtensor(&ty.to_string()).map_or(ValueType::Unknown, |(element, shape)| tensor(element, shape, extent))
}

/// Whether a value of this type takes memory.
pub(crate) fn is_tensor(ty: &ValueType) -> bool {
    *ty != ValueType::Unknown
}

/// Whether the type is one that operations of the `remat` dialect take.
pub(crate) fn is_ranked(ty: Type<'_>) -> bool {
    ffi::shape(ty).is_some()
}

fn tensor(element: ElementType, shape: Vec<Option<u64>>, extent: Option<u64>) -> ValueType {
    // What counts as a number is free all the same: no tile is cut along it.
    let open = || extent.map_or(Dim::Unknown, |size| Dim::Free { size, name: None });
    let dims = shape.into_iter().map(|dim| dim.map_or_else(open, Dim::Known));
    ValueType::Tensor {
        element,
        shape: Some(dims.collect()),
    }
}

fn element_type(text: &str, bits: u64) -> Option<ElementType> {
    use ElementType as E;
    Some(match (text, bits) {
        ("bf16", _) => E::Bfloat16,
        ("i1", _) => E::Bool,
        (_, _) if text.starts_with("complex") => match bits {
            ..=64 => E::Complex64,
            65..=128 => E::Complex128,
            _ => return None,
        },
        (_, _) if text.starts_with('f') => match bits {
            ..=8 => E::Float8E5M2,
            16 => E::Float16,
            32 => E::Float32,
            64 => E::Float64,
            _ => return None,
        },
        (_, bits) => {
            let integers = match bits {
                ..=8 => [E::Int8, E::Uint8],
                9..=16 => [E::Int16, E::Uint16],
                17..=32 => [E::Int32, E::Uint32],
                33..=64 => [E::Int64, E::Uint64],
                _ => return None,
            };
            integers[usize::from(text.starts_with("ui"))]
        }
    })
}

/// Element type and shape of a type such as `!torch.vtensor<[1,?,8],f32>`, whose dialect need not be loaded.
fn vtensor(text: &str) -> Option<(ElementType, Vec<Option<u64>>)> {
    let inside = text.strip_prefix("!torch.vtensor<[")?.strip_suffix('>')?;
    let (dims, element) = inside.split_once("],")?;
    let dims = dims.split(',').filter(|dim| !dim.is_empty());
    let dims = dims.map(|dim| match dim.trim() {
        "?" => Some(None),
        number => number.parse().ok().map(Some),
    });
    let signless = element.trim_start_matches("si");
    let bits: u64 = element
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()?;
    let element = if signless.len() < element.len() {
        format!("i{signless}")
    } else {
        element.to_owned()
    };
    Some((element_type(&element, bits)?, dims.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_of_torch_are_read_from_their_text() {
        let shape = |text| vtensor(text);
        assert_eq!(
            shape("!torch.vtensor<[1,3,8],f32>"),
            Some((ElementType::Float32, vec![Some(1), Some(3), Some(8)]))
        );
        assert_eq!(
            shape("!torch.vtensor<[?],si64>"),
            Some((ElementType::Int64, vec![None]))
        );
        assert_eq!(shape("!torch.vtensor<[],bf16>"), Some((ElementType::Bfloat16, vec![])));
        assert_eq!(shape("!torch.vtensor<[],i1>"), Some((ElementType::Bool, vec![])));
    }

    #[test]
    fn other_types_are_not_taken_for_tensors() {
        for text in [
            "!torch.vtensor",
            "!torch.none",
            "!torch.vtensor<*,f32>",
            "!torch.vtensor<[x],f32>",
            "f32",
        ] {
            assert_eq!(vtensor(text), None, "{text}");
        }
    }
}
