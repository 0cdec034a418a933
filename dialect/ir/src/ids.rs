//! Dense ids: a `u32` that says what it counts.

use serde::{Deserialize, Serialize};

/// Defines the id of the elements of one kind: a `u32` newtype that indexes a `TiVec`. Attributes before the name go to the type.
#[macro_export]
macro_rules! dense_id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u32);

        impl $name {
            /// The id of the element at `index` of the dense vector it counts.
            ///
            /// # Panics
            /// If `index` exceeds `u32::MAX`: importers limit graphs to that many elements.
            #[must_use]
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("more than u32::MAX elements"))
            }

            /// The position in the dense vector.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                Self::new(index)
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> Self {
                id.index()
            }
        }
    };
}

dense_id!(
    /// An op of a graph; the order of ids is the reference order.
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    OpId
);
dense_id!(
    /// A value of a graph.
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    TensorId
);
dense_id!(
    /// The memory that one or several tensors live in.
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    StorageId
);
