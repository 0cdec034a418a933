//! Which dimensions of a type are what they are for every value of those that a caller gave, and which may be others.

use remat_ir::{Dim, ValueType};

/// Marks the dimensions of a type that have no number where nothing was given, in `open`.
pub(super) fn free(ty: &mut ValueType, open: Option<&ValueType>) {
    match ty {
        ValueType::Tensor { shape: Some(dims), .. } | ValueType::SparseTensor { shape: Some(dims), .. } => {
            let open = open.map_or(&[][..], ValueType::dims);
            let is_same_rank = open.len() == dims.len();
            for (axis, dim) in dims.iter_mut().enumerate() {
                let Dim::Known(size) = *dim else { continue };
                let name = match open.get(axis).filter(|_| is_same_rank) {
                    Some(Dim::Known(always)) if *always == size => continue,
                    Some(Dim::Symbol(name)) => Some(name.clone()),
                    _ => None,
                };
                *dim = Dim::Free { size, name };
            }
        }
        ValueType::Sequence(inner) | ValueType::Optional(inner) => {
            let open = match open {
                Some(ValueType::Sequence(open) | ValueType::Optional(open)) => Some(&**open),
                _ => None,
            };
            free(inner, open);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use remat_ir::ElementType;

    use super::*;

    fn tensor(dims: Vec<Dim>) -> ValueType {
        ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(dims),
        }
    }

    #[test]
    fn what_has_a_number_without_the_caller_is_not_free() {
        let mut ty = ValueType::tensor(ElementType::Float32, &[2, 3, 4, 5]);
        let open = tensor(vec![
            Dim::Symbol("n".into()),
            Dim::Known(3),
            Dim::Unknown,
            Dim::Known(7),
        ]);
        free(&mut ty, Some(&open));
        let free = |size, name: Option<&str>| Dim::Free {
            size,
            name: name.map(str::to_owned),
        };
        let dims = vec![free(2, Some("n")), Dim::Known(3), free(4, None), free(5, None)];
        assert_eq!(ty, tensor(dims));
        assert_eq!(ty.known_shape(), Some(vec![2, 3, 4, 5]));
    }

    #[test]
    fn all_is_free_where_nothing_follows_without_the_caller() {
        let mut ty = ValueType::tensor(ElementType::Float32, &[2, 3]);
        free(&mut ty, None);
        assert!(ty.is_free(0) && ty.is_free(1));
    }
}
