//! Links from one document to a file of the workspace lead somewhere.

use std::path::{Component, Path, PathBuf};

use crate::workspace::{Finding, Source, root};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
    let exists = |target: &str| normal(&folder.join(target)).is_some_and(|path| root().join(path).exists());
    let lines = source.prose();
    let broken = lines.iter().enumerate().flat_map(|(index, line)| {
        let broken = targets(line).filter(|target| !exists(target));
        broken.map(move |target| Finding::new(source, index + 1, format!("link to `{target}`, which is not there")))
    });
    broken.collect()
}

/// The files that a line links to, without the places in them.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = links.filter_map(|(target, _)| target.split('#').next());
    files.filter(|file| !file.is_empty() && !file.contains(':'))
}

/// The path without `..`; none if it leads out of the workspace.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !normal.pop() => return None,
            Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn findings(text: &str) -> Vec<String> {
        let found = check(&source("docs/a.md", text));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        let expected = "docs/a.md:2: link to `../no-such.md`, which is not there";
        assert_eq!(
            findings("fine\n[a](../README.md) and [b](../no-such.md#place)\n"),
            [expected]
        );
        assert_eq!(findings("[out](../../README.md)").len(), 1);
    }

    #[test]
    fn files_folders_places_and_addresses_pass() {
        assert!(
            findings("[a](../README.md#install), [b](../tools), [c](#here), [d](https://example.org/x.md)").is_empty()
        );
        assert!(findings("```\n[code](no-such.md)\n```\n").is_empty());
        assert!(check(&source("docs/a.rs", "[a](no-such.md)")).is_empty());
    }
}
