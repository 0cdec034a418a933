//! Whole numbers and ids as JSON writes them.

use std::fmt::{self, Display, Formatter};

use serde_json::{Number, Value};

/// 2^64, the first float above every `u64`.
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// The value of a number without a fraction; `12.0` is 12.
pub(crate) fn whole(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_u64() {
        return Some(i128::from(value));
    }
    if let Some(value) = number.as_i64() {
        return Some(i128::from(value));
    }
    let value = number.as_f64().filter(|v| v.fract() == 0.0 && v.abs() < TWO_POW_64)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and below 2^64: the conversion is exact"
    )]
    Some(value as i128)
}

/// The value as a whole number from 0 to 2^64 - 1.
pub(crate) fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => whole(number).and_then(|n| u64::try_from(n).ok()),
        _ => None,
    }
}

/// What a file tells nodes apart by: to networkx the number 1 and the string `"1"` are different nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NodeKey {
    Number(i128),
    Text(String),
}

impl NodeKey {
    pub(crate) fn new(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => whole(number).map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// The key as JSON writes it: strings in quotes.
    pub(crate) fn json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => Value::from(text.as_str()).to_string(),
        }
    }
}

impl Display for NodeKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_rejected() {
        let read = |text: &str| unsigned(&serde_json::from_str(text).unwrap());
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        assert_eq!(read("12.0"), Some(12));
        assert_eq!(read("1e13"), Some(10_000_000_000_000));
        assert_eq!(read("-0.0"), Some(0));
        for wrong in [
            "18446744073709551616",
            "1e20",
            "-1",
            "-1.0",
            "0.5",
            "1e-300",
            "\"1\"",
            "null",
            "true",
            "[1]",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_and_a_string_are_different_ids() {
        let key = |text: &str| NodeKey::new(&serde_json::from_str(text).unwrap());
        assert_eq!(key("1"), key("1.0"));
        assert_ne!(key("1"), key("\"1\""));
        assert_eq!(key("1.5"), None);
        assert_eq!(key("null"), None);
    }
}
