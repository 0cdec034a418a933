//! No file names a folder of one machine.

use crate::workspace::{Finding, Source};

/// Folders that only one machine has; written in halves, so that this file does not name them itself.
const FOLDERS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    // What `tempfile` names its folders.
    concat!("/tm", "p/.tmp"),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let named = FOLDERS
            .iter()
            .find(|folder| line.match_indices(**folder).any(|(at, _)| starts_a_path(line, at)));
        if let Some(folder) = named {
            findings.push(Finding::new(
                source,
                index + 1,
                format!("`{folder}` is a folder of one machine"),
            ));
        }
    }
    findings
}

/// Whether the text at this position is the root of a path rather than the middle of one or of an address.
fn starts_a_path(line: &str, at: usize) -> bool {
    let before = line[..at].chars().next_back();
    before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '}' | ')' | '~' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn paths_of_one_machine_are_found_in_any_text() {
        let text = format!("fine\nlet p = \"{}me/x\";\n", "/ho");
        let found = check(&source("docs/a.md", &text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(check(&source("Makefile", &format!("X={}rk/y", "/wo"))).len(), 1);
    }

    #[test]
    fn relative_paths_and_addresses_pass() {
        let text = format!("src{0}rk/x https://example.org{0}rk/ ..{0}rk/\n", "/wo");
        assert!(check(&source("docs/a.md", &text)).is_empty());
    }
}
