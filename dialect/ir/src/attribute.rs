//! Attributes of ops: the small values that cost models and people who read the textual form need.

/// The value of an attribute.
///
/// Floats compare by their bits, so that a graph that is printed and parsed back is equal to the original.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A single-precision number.
    Float(f32),
    /// A byte string, in most models UTF-8.
    String(Vec<u8>),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of single-precision numbers.
    Floats(Vec<f32>),
    /// A list of byte strings.
    Strings(Vec<Vec<u8>>),
    /// Something that stays with the importer (a tensor, a subgraph); the text describes it.
    Opaque(String),
}

impl Attribute {
    /// The integer, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The integers, if it is a list of them.
    #[must_use]
    pub fn as_ints(&self) -> Option<&[i64]> {
        if let Self::Ints(values) = self {
            Some(values)
        } else {
            None
        }
    }

    /// The text, if it is a string in UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(bytes) = self {
            std::str::from_utf8(bytes).ok()
        } else {
            None
        }
    }
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        let same_bits = |a: &f32, b: &f32| a.to_bits() == b.to_bits();
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => same_bits(a, b),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Ints(a), Self::Ints(b)) => a == b,
            (Self::Floats(a), Self::Floats(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_bits(a, b)),
            (Self::Strings(a), Self::Strings(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Attribute {}
