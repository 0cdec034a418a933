//! What holds of a file as a whole: what is long is several concepts, and a library says first what it is for.

use crate::workspace::{Finding, Source};

/// Most lines of a source file.
const MOST: usize = 700;

pub(super) fn check(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    if source.is_rust() && lines > MOST {
        let text = format!("the file has {lines} lines, at most {MOST} are allowed: split it");
        return Some(Finding::new(source, MOST + 1, text));
    }
    let is_bare = source.path.ends_with("/src/lib.rs") && !source.text.starts_with("//!");
    is_bare.then(|| Finding::new(source, 1, "a library starts with its documentation (`//!`)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn only_long_source_files_are_found() {
        let found = check(&source("a/b/src/long.rs", &"\n".repeat(701))).unwrap();
        assert_eq!(
            found.to_string(),
            "a/b/src/long.rs:701: the file has 701 lines, at most 700 are allowed: split it"
        );
        assert!(check(&source("a/b/src/long.rs", &"\n".repeat(700))).is_none());
        assert!(check(&source("Cargo.lock", &"\n".repeat(5_000))).is_none());
    }

    #[test]
    fn a_library_that_starts_with_code_is_found() {
        for (path, text, is_found) in [
            ("passes/some/src/lib.rs", "mod a;\n//! late\n", true),
            ("passes/some/src/lib.rs", "", true),
            ("passes/some/src/lib.rs", "//! Something.\n", false),
            ("passes/some/src/other.rs", "mod a;\n", false),
        ] {
            assert_eq!(check(&source(path, text)).is_some(), is_found, "{path}: {text}");
        }
    }
}
