//! Versioned JSON documents: objects whose field `format` says name and version, such as `remat-plan/2`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::shown;

/// Why a text is not the document that it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// The text does not have the form.
    #[error("not a {what}: {}", shown(.why))]
    Json {
        /// What it should be, in a word.
        what: &'static str,
        /// What is wrong, with line and column.
        why: String,
    },
    /// A name or version that this program does not read.
    #[error("{what} format `{}` is not known, expected `{}`", shown(.found), .known.join("` or `"))]
    Format {
        /// What it should be, in a word.
        what: &'static str,
        /// The value of `format`.
        found: String,
        /// The values that are read.
        known: &'static [&'static str],
    },
}

/// Reads a document. Its format is looked at first, so that another document is named as such, whatever its fields. Whether a text without a
/// format is read is for `T` to say.
///
/// # Errors
/// [`DocumentError`] for a format that is not among `known`, and for a text that does not have the form of `T`.
pub fn read<T: DeserializeOwned>(
    what: &'static str,
    known: &'static [&'static str],
    text: &str,
) -> Result<T, DocumentError> {
    #[derive(Deserialize)]
    struct Tagged {
        format: String,
    }
    if let Ok(Tagged { format: found }) = serde_json::from_str(text)
        && !known.contains(&found.as_str())
    {
        return Err(DocumentError::Format { what, found, known });
    }
    serde_json::from_str(text).map_err(|error| DocumentError::Json {
        what,
        why: error.to_string(),
    })
}

/// A document as indented JSON with a newline at the end.
#[must_use]
pub fn to_json(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document);
    text.expect("documents have no keys but strings, so they have a JSON form") + "\n"
}

/// As [`to_json`], but each item of the document's last field, which is the list `list`, stands on a line of its own, so that documents can be
/// compared line by line. `head` is the document with that list empty.
///
/// # Panics
/// If `head` does not end with the empty list.
#[must_use]
pub fn to_json_by_line<T: Serialize>(head: &impl Serialize, list: &str, items: &[T]) -> String {
    let head = to_json(head);
    let head = head
        .strip_suffix("[]\n}\n")
        .filter(|head| head.ends_with(&format!("\"{list}\": ")));
    let head = head.expect("the list is the last field, and empty here");
    let line = |item| serde_json::to_string(item).expect("items have no keys but strings, so they have a JSON form");
    let lines: Vec<_> = items.iter().map(line).collect();
    format!("{head}[\n    {}\n  ]\n}}\n", lines.join(",\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Note {
        format: String,
        words: Vec<Vec<u32>>,
    }

    const KNOWN: &[&str] = &["remat-note/2", "remat-note/1"];

    fn note(text: &str) -> Result<Note, DocumentError> {
        read("note", KNOWN, text)
    }

    #[test]
    fn what_is_written_is_read_and_every_item_has_a_line() {
        let head = Note {
            format: "remat-note/2".to_owned(),
            words: Vec::new(),
        };
        let words = vec![vec![1, 2], vec![3]];
        let text = to_json_by_line(&head, "words", &words);
        assert_eq!(
            text,
            "{\n  \"format\": \"remat-note/2\",\n  \"words\": [\n    [1,2],\n    [3]\n  ]\n}\n"
        );
        assert_eq!(note(&text), Ok(Note { words, ..head.clone() }));
        assert_eq!(note(&to_json(&head)), Ok(head));
    }

    #[test]
    fn another_document_is_named_whatever_its_fields() {
        let error = note(r#"{"format":"remat-plan/2","steps":[]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "note format `remat-plan/2` is not known, expected `remat-note/2` or `remat-note/1`"
        );
    }

    #[test]
    fn what_lacks_the_form_is_refused_with_the_place() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"format":1}"#,
            r#"{"format":"remat-note/1","words":[-1]}"#,
        ] {
            let error = note(text).unwrap_err();
            assert!(matches!(error, DocumentError::Json { .. }), "{text}: {error}");
            assert!(error.to_string().starts_with("not a note: "), "{error}");
        }
    }
}
