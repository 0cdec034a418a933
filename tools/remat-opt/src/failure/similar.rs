//! The name that somebody may have meant.

/// Edits that turn one name into another at most, for a name of three letters; longer ones may differ more.
const LEAST_EDITS: usize = 1;

/// The name most like `name`, case aside: a few letters are missing, added, swapped or wrong, or it is the only one that contains it.
/// Of names that are as like, the first.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let most = LEAST_EDITS.max(wanted.chars().count() / 3);
    let distance = |known: &str| strsim::damerau_levenshtein(&wanted, &known.to_lowercase());
    let near = known.clone().map(|known| (distance(known), known));
    let nearest = near.filter(|&(edits, _)| edits <= most).min_by_key(|&(edits, _)| edits);
    if let Some((_, name)) = nearest {
        return Some(name);
    }
    let mut containing = known.filter(|known| wanted.len() > 2 && known.to_lowercase().contains(&wanted));
    containing.next().filter(|_| containing.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLVERS: [&str; 5] = ["auto", "search", "chen:sqrt", "chen:greedy", "checkpoint:all"];

    fn meant(name: &str) -> Option<&'static str> {
        similar(name, SOLVERS.into_iter())
    }

    #[test]
    fn slips_of_the_keyboard_are_recognized() {
        assert_eq!(meant("serach"), Some("search"));
        assert_eq!(meant("Auto"), Some("auto"));
        assert_eq!(meant("chen_sqrt"), Some("chen:sqrt"));
        assert_eq!(meant("checkpoint"), Some("checkpoint:all"));
    }

    #[test]
    fn what_is_like_nothing_gets_no_suggestion() {
        assert_eq!(meant("oracle"), None);
        assert_eq!(meant("chen"), None, "two begin so");
        assert_eq!(meant(""), None);
    }
}
