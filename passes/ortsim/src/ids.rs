//! Dense ids of nodes and values.

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u32);

        impl $name {
            /// The id of the element at `index`.
            ///
            /// # Panics
            /// If `index` exceeds `u32::MAX`: no file holds that many.
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
    /// A node of a program; ids are in the order of the file, which the runtime's choices of order rest on.
    NodeIndex
);
dense_id!(
    /// A value of a program.
    ValueId
);
