//! Every library says first what it is for.

use crate::workspace::{Finding, Source};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let library = source.path.ends_with("/src/lib.rs");
    if !library || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![Finding::new(
        source,
        1,
        "a library starts with its documentation (`//!`)",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn a_library_that_starts_with_code_is_found() {
        assert_eq!(check(&source("passes/some/src/lib.rs", "mod a;\n//! late\n")).len(), 1);
        assert_eq!(check(&source("passes/some/src/lib.rs", "")).len(), 1);
    }

    #[test]
    fn a_documented_library_and_other_files_pass() {
        assert!(check(&source("passes/some/src/lib.rs", "//! Something.\n")).is_empty());
        assert!(check(&source("passes/some/src/other.rs", "mod a;\n")).is_empty());
    }
}
