//! Names and strings: which may stand bare, and how the others are escaped.

use std::fmt::{self, Display, Formatter, Write};

/// Whether `byte` may occur in a word.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-')
}

/// Whether `name` lexes as exactly one word: `//` would start a comment.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_word_byte) && !name.contains("//")
}

/// A name as the textual form writes it: bare where that reads back, otherwise in quotes.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_word(self.0) {
            f.write_str(self.0)
        } else {
            Quoted(self.0).fmt(f)
        }
    }
}

/// The symbol of a dimension: bare only if it cannot be taken for a number or for `..`.
pub(super) struct Symbol<'a>(pub(super) &'a str);

impl Display for Symbol<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if starts_symbol(self.0) {
            Name(self.0).fmt(f)
        } else {
            Quoted(self.0).fmt(f)
        }
    }
}

/// Whether a bare word is the symbol of a dimension.
pub(super) fn starts_symbol(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Text in quotes; whatever does not show in print is escaped.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '\'' => f.write_char(c)?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        f.write_char('"')
    }
}

/// A byte string: quoted text if it is UTF-8, otherwise `b"…"`.
pub(super) struct ByteString<'a>(pub(super) &'a [u8]);

impl Display for ByteString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => Quoted(text).fmt(f),
            Err(_) => write!(f, "b\"{}\"", self.0.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_lex_as_one_word_stand_bare() {
        let shown = |name| Name(name).to_string();
        assert_eq!(shown("/layer1/conv1/Conv_output_0"), "/layer1/conv1/Conv_output_0");
        assert_eq!(shown("-1"), "-1");
        assert_eq!(shown(""), r#""""#);
        assert_eq!(shown("a//b"), r#""a//b""#);
        assert_eq!(shown("onnx::Conv_12"), r#""onnx::Conv_12""#);
        assert_eq!(shown("it's \"é\"\n\u{202e}"), r#""it's \"é\"\n\u{202e}""#);
    }

    #[test]
    fn symbols_that_look_like_numbers_are_quoted() {
        assert_eq!(Symbol("batch-1").to_string(), "batch-1");
        assert_eq!(Symbol("12").to_string(), "\"12\"");
        assert_eq!(Symbol("..").to_string(), "\"..\"");
    }

    #[test]
    fn byte_strings_show_as_text_only_if_they_are_utf8() {
        assert_eq!(ByteString("é".as_bytes()).to_string(), "\"é\"");
        assert_eq!(ByteString(b"\xffa\"").to_string(), r#"b"\xffa\"""#);
    }
}
