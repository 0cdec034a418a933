//! Cuts a text into tokens.

use std::borrow::Cow;

use super::error::{ErrorAt, ParseErrorKind};
use super::name::is_word_byte;

/// A token; names and strings are already unescaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A run of word characters: keyword, bare name or number, as the grammar wants it.
    Word(&'a str),
    /// `"…"`.
    String(Cow<'a, str>),
    /// `b"…"`.
    Bytes(Vec<u8>),
    /// `%name`.
    Tensor(Cow<'a, str>),
    /// `@name`.
    Op(Cow<'a, str>),
    /// `::`, or one of `{}()[]<>,:=?`.
    Mark(&'static str),
    /// The end of the text.
    End,
}

const MARKS: [&str; 13] = ["::", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "=", "?"];

/// Reads tokens off the front of a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    /// The next token with the offset of its first byte.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ErrorAt> {
        self.skip_space();
        let start = self.offset;
        let Some(first) = self.rest().chars().next() else {
            return Ok((start, Token::End));
        };
        let token = match first {
            '"' => Token::String(self.string()?),
            '%' => {
                self.offset += 1;
                Token::Tensor(self.name("the name of a tensor")?)
            }
            '@' => {
                self.offset += 1;
                Token::Op(self.name("the name of an op")?)
            }
            _ => match self.word() {
                "b" if self.rest().starts_with('"') => Token::Bytes(self.bytes()?),
                "" => self.mark()?,
                word => Token::Word(word),
            },
        };
        Ok((start, token))
    }

    /// The text from `start` to where the lexer stands, cut if it is long.
    pub(super) fn shown(&self, start: usize) -> String {
        const LONGEST: usize = 40;
        let token = &self.text[start..self.offset];
        match token.char_indices().nth(LONGEST) {
            Some((cut, _)) => format!("`{}…`", &token[..cut]),
            None if token.is_empty() => "the end of the text".to_owned(),
            None => format!("`{token}`"),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let code = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.offset += rest.len() - code.len();
            if !code.starts_with("//") {
                return;
            }
            self.offset += code.find('\n').unwrap_or(code.len());
        }
    }

    /// The word at the front, empty if there is none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let run = rest.bytes().position(|b| !is_word_byte(b)).unwrap_or(rest.len());
        let end = rest[..run].find("//").unwrap_or(run);
        self.offset += end;
        &rest[..end]
    }

    fn name(&mut self, expected: &'static str) -> Result<Cow<'a, str>, ErrorAt> {
        if self.rest().starts_with('"') {
            return self.string();
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.unexpected(expected));
        }
        Ok(Cow::Borrowed(word))
    }

    fn mark(&mut self) -> Result<Token<'a>, ErrorAt> {
        let mark = MARKS.into_iter().find(|mark| self.rest().starts_with(mark));
        let Some(mark) = mark else {
            return Err(self.unexpected("a token"));
        };
        self.offset += mark.len();
        Ok(Token::Mark(mark))
    }

    /// An error at the character where the lexer stands.
    fn unexpected(&self, expected: &'static str) -> ErrorAt {
        let found = match self.rest().chars().next() {
            None => "the end of the text".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        let expected = Cow::Borrowed(expected);
        ErrorAt::new(self.offset, ParseErrorKind::Unexpected { expected, found })
    }

    /// What stands between the quotes at the front, escapes untouched, and the offset where it starts.
    fn quoted(&mut self) -> Result<(usize, &'a str), ErrorAt> {
        let start = self.offset;
        let body = &self.rest()[1..];
        let mut escaped = false;
        for (at, byte) in body.bytes().enumerate() {
            match byte {
                b'\n' => break,
                b'"' if !escaped => {
                    self.offset += at + 2;
                    return Ok((start + 1, &body[..at]));
                }
                _ => escaped = byte == b'\\' && !escaped,
            }
        }
        Err(ErrorAt::new(start, ParseErrorKind::OpenString))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, ErrorAt> {
        let (start, body) = self.quoted()?;
        let Some(first) = body.find('\\') else {
            return Ok(Cow::Borrowed(body));
        };
        let mut text = body[..first].to_owned();
        let mut rest = &body[first..];
        while !rest.is_empty() {
            let offset = start + body.len() - rest.len();
            let Some(escape) = rest.strip_prefix('\\') else {
                let plain = rest.find('\\').unwrap_or(rest.len());
                text.push_str(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            };
            let escaped = match escape.strip_prefix("u{").and_then(|hex| hex.split_once('}')) {
                Some((digits, after)) => hex(digits).and_then(char::from_u32).map(|c| (c, after)),
                None => escape.chars().next().and_then(plain_escape).map(|c| (c, &escape[1..])),
            };
            let (c, after) = escaped.ok_or_else(|| bad_escape(offset, rest))?;
            text.push(c);
            rest = after;
        }
        Ok(Cow::Owned(text))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, ErrorAt> {
        let (start, body) = self.quoted()?;
        let mut bytes = Vec::with_capacity(body.len());
        let mut rest = body;
        while let Some(c) = rest.chars().next() {
            let offset = start + body.len() - rest.len();
            let Some(escape) = rest.strip_prefix('\\') else {
                let (plain, after) = rest.split_at(c.len_utf8());
                bytes.extend_from_slice(plain.as_bytes());
                rest = after;
                continue;
            };
            let escaped = match escape.strip_prefix('x') {
                Some(digits) => digits.get(..2).and_then(hex).map(|byte| (byte, &digits[2..])),
                None => escape
                    .chars()
                    .next()
                    .and_then(plain_escape)
                    .map(|c| (u32::from(c), &escape[1..])),
            };
            let (byte, after) = escaped.ok_or_else(|| bad_escape(offset, rest))?;
            bytes.push(u8::try_from(byte).expect("two hex digits and plain escapes fit a byte"));
            rest = after;
        }
        Ok(bytes)
    }
}

/// The character that a backslash before `c` stands for.
fn plain_escape(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '0' => Some('\0'),
        '\\' | '"' | '\'' => Some(c),
        _ => None,
    }
}

/// The value of hex digits, nothing else allowed.
fn hex(digits: &str) -> Option<u32> {
    let clean = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| clean)
}

fn bad_escape(offset: usize, rest: &str) -> ErrorAt {
    let shown = rest.chars().take(4).collect();
    ErrorAt::new(offset, ParseErrorKind::BadEscape(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token<'_>>, ErrorAt> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()?.1 {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn comments_end_words_and_lines() {
        let expected = [
            Token::Word("a/b"),
            Token::Mark("::"),
            Token::Mark(":"),
            Token::Word("-1"),
        ];
        assert_eq!(tokens("a/b//c : d\n::: -1 // end").unwrap(), expected);
    }

    #[test]
    fn names_and_strings_are_unescaped() {
        let expected = [
            Token::Tensor("a\"\\é\n".into()),
            Token::Op("".into()),
            Token::Bytes(vec![0xff, b'"', b'x']),
            Token::String("\u{1f600}".into()),
        ];
        assert_eq!(tokens(r#"%"a\"\\é\n" @"" b"\xff\"x" "\u{1f600}""#).unwrap(), expected);
    }

    #[test]
    fn malformed_strings_are_rejected_where_they_are() {
        for (text, offset) in [
            (r#"  "open"#, 2),
            ("\"two\nlines\"", 0),
            (r#""a\q""#, 2),
            (r#""\u{d800}""#, 1),
            (r#""\u{12"#, 0),
            (r#""\u{12""#, 1),
            (r#"b"\xf""#, 2),
            (r#"b"\xé""#, 2),
            ("% x", 1),
            ("a $", 2),
        ] {
            assert_eq!(tokens(text).unwrap_err().offset, offset, "{text}");
        }
    }
}
