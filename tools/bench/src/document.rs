//! Tables in a document, regenerated in place.
//!
//! A table stands between the lines `<!-- bench: NAME -->` and `<!-- /bench: NAME -->`; everything else is left alone.

use std::path::Path;

use anyhow::{Context, bail};

/// Replaces what stands between the marks of `name`.
///
/// # Errors
/// If the file cannot be read or written, or has no such marks.
pub(crate) fn replace_in(path: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let Some(text) = replaced(&text, name, content) else {
        bail!(
            "`{}` has no marks `<!-- bench: {name} -->` and `<!-- /bench: {name} -->`",
            path.display()
        );
    };
    remat_files::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

fn replaced(text: &str, name: &str, content: &str) -> Option<String> {
    let (open, close) = (format!("<!-- bench: {name} -->\n"), format!("<!-- /bench: {name} -->"));
    let (before, rest) = text.split_once(&open)?;
    let (_, after) = rest.split_once(&close)?;
    Some(format!("{before}{open}{}\n{close}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a\n<!-- bench: x -->\nold\nolder\n<!-- /bench: x -->\nb\n<!-- bench: y -->\n<!-- /bench: y -->\n";

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let new = replaced(TEXT, "x", "new\n").unwrap();
        assert_eq!(new, TEXT.replace("old\nolder", "new"));
        assert_eq!(replaced(&new, "x", "new"), Some(new.clone()));
        assert!(replaced(TEXT, "y", "new").is_some_and(|text| text.contains("old") && text.contains("new")));
    }

    #[test]
    fn a_document_without_the_marks_is_refused() {
        assert_eq!(replaced(TEXT, "z", "new"), None);
        assert_eq!(replaced("<!-- bench: z -->\n", "z", "new"), None);
    }
}
