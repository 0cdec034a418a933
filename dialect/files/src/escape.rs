//! Text from a file on its way to a terminal.
//!
//! A name can hold anything: sequences that move the cursor and clear the screen, line breaks that forge a line of the report, marks
//! that reverse the direction of text. Such characters are shown as JSON escapes (`\u001b`), so a JSON document keeps its meaning.

use std::fmt::{self, Display, Write};

/// Shows `value` in one line without characters that a terminal acts upon or a reader cannot see.
pub fn shown<T: Display>(value: T) -> Shown<T> {
    Shown(value)
}

/// See [`shown`].
#[derive(Clone, Copy, Debug)]
pub struct Shown<T>(T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            Escaping {
                out: f,
                hides: is_hidden
            },
            "{}",
            self.0
        )
    }
}

/// `text` in one line, escaped like [`shown`]: for a composed message.
#[must_use]
pub fn line(text: &str) -> String {
    shown(text).to_string()
}

/// `text` with its line breaks, otherwise escaped like [`shown`]: for a composed report or JSON document.
#[must_use]
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let hides = |c| c != '\n' && is_hidden(c);
    // A string takes everything.
    let _ = Escaping { out: &mut out, hides }.write_str(text);
    out
}

/// Writes on what does not have to be escaped.
struct Escaping<'a, W: Write + ?Sized, F> {
    out: &'a mut W,
    hides: F,
}

impl<W: Write + ?Sized, F: Fn(char) -> bool> Write for Escaping<'_, W, F> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| (self.hides)(c)) {
            self.out.write_str(&rest[..at])?;
            match c {
                '\n' => self.out.write_str("\\n")?,
                '\r' => self.out.write_str("\\r")?,
                '\t' => self.out.write_str("\\t")?,
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                }
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.out.write_str(rest)
    }
}

/// Characters that a terminal acts upon, and those that are not seen: control characters, line and paragraph separators, and the format
/// characters of Unicode (category Cf), among them all that change the direction of text and those without width.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_acts_upon_is_escaped() {
        let cases = [
            ("\u{1b}[2J\u{1b}[H", r"\u001b[2J\u001b[H"),
            ("a\nplan OPTIMAL\r\tb", r"a\nplan OPTIMAL\r\tb"),
            ("\u{7f}\u{9b}31m", r"\u007f\u009b31m"),
            ("a\u{202e}b\u{2066}c\u{2069}", r"a\u202eb\u2066c\u2069"),
            ("a\u{200b}b\u{feff}\u{e0041}", r"a\u200bb\ufeff\udb40\udc41"),
            ("a\u{2028}b\u{2029}", r"a\u2028b\u2029"),
        ];
        for (name, expected) in cases {
            assert_eq!(shown(name).to_string(), expected, "{name:?}");
        }
    }

    #[test]
    fn what_can_be_read_stays() {
        for name in [
            "/layer.0/Conv_output_0",
            "größe [N, 3] \\ \"x\"",
            "入力",
            "é e\u{301}",
            "🦀",
        ] {
            assert_eq!(shown(name).to_string(), name);
        }
    }

    #[test]
    fn a_text_keeps_its_lines() {
        assert_eq!(lines("a\nb\u{1b}[0m\r\n"), "a\nb\\u001b[0m\\r\n");
        assert_eq!(line("a\nb"), "a\\nb");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_hidden));
            prop_assert!(!lines(&text).chars().any(|c| c != '\n' && is_hidden(c)));
        }

        #[test]
        fn a_document_in_json_stays_the_same_document(text in any::<String>()) {
            let document = serde_json::to_string(&text).expect("a string has a JSON form");
            let safe = lines(&document);
            prop_assert!(!safe.chars().any(is_hidden));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).expect("it is JSON"), text);
        }
    }
}
