//! Names of dimensions that say a sum, as exporters name what is as long as two others together: `past_sequence_length + sequence_length`.

use crate::shapes::Shape;

/// A part of such a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summand<'n> {
    /// The name of another dimension.
    Dim(&'n str),
    /// A number.
    Number(u64),
}

/// What a name adds up, if all names in it are dimensions; `None` where it is no sum.
#[must_use]
pub fn summands(name: &str, is_dim: impl Fn(&str) -> bool) -> Option<Vec<Summand<'_>>> {
    let parts = name.split('+').map(str::trim).map(|part| match part.parse() {
        Ok(number) => Some(Summand::Number(number)),
        Err(_) => is_dim(part).then_some(Summand::Dim(part)),
    });
    let parts: Vec<Summand<'_>> = parts.collect::<Option<_>>()?;
    (parts.len() > 1).then_some(parts)
}

/// The size of a dimension: what is given for its name, or for all that its name adds up.
#[must_use]
pub fn size_of(name: &str, given: &Shape) -> Option<u64> {
    if let Some(&size) = given.get(name) {
        return Some(size);
    }
    let parts = summands(name, |part| given.contains_key(part))?;
    parts.iter().try_fold(0u64, |sum, part| {
        sum.checked_add(match part {
            Summand::Dim(name) => *given.get(*name)?,
            Summand::Number(number) => *number,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_dimensions_has_the_size_of_all_of_them_and_other_names_are_names() {
        let given: Shape = [("past length", 60), ("new", 4)]
            .map(|(name, size)| (name.to_owned(), size))
            .into();
        let sizes = |name: &str| size_of(name, &given);
        assert_eq!(sizes("new"), Some(4));
        assert_eq!(sizes("past length + new"), Some(64));
        assert_eq!(sizes("new+1"), Some(5));
        for other in ["past", "new + other", "+ new", "", "12", "new + 99999999999999999999"] {
            assert_eq!(sizes(other), None, "{other}");
        }
        let mut stated = given.clone();
        stated.insert("new+1".to_owned(), 7);
        assert_eq!(size_of("new+1", &stated), Some(7));
        let of = |name: &'static str| summands(name, |part| part == "a");
        assert_eq!(of("a + 3"), Some(vec![Summand::Dim("a"), Summand::Number(3)]));
        assert_eq!(of("a"), None);
    }
}
