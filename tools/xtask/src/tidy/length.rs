//! A file is one concept; what is longer than this is several.

use crate::workspace::{Finding, Source};

/// Most lines of a source file.
const MOST: usize = 700;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= MOST {
        return Vec::new();
    }
    vec![Finding::new(
        source,
        MOST + 1,
        format!("the file has {lines} lines, at most {MOST} are allowed: split it"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn only_long_source_files_are_found() {
        let found = check(&source("a/b/src/long.rs", &"\n".repeat(701)));
        assert_eq!(
            found[0].to_string(),
            "a/b/src/long.rs:701: the file has 701 lines, at most 700 are allowed: split it"
        );
        assert!(check(&source("a/b/src/long.rs", &"\n".repeat(700))).is_empty());
        assert!(check(&source("Cargo.lock", &"\n".repeat(5_000))).is_empty());
    }
}
