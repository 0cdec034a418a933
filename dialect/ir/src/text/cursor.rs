//! Walks the tokens of a text, one token ahead.

use std::borrow::Cow;

use super::error::{ErrorAt, ParseErrorKind};
use super::lexer::{Lexer, Token};

/// The tokens of a text from the current one on.
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, ErrorAt> {
        let mut lexer = Lexer::new(text);
        let (offset, token) = lexer.next()?;
        Ok(Self { lexer, token, offset })
    }

    /// The current token.
    pub(super) fn token(&self) -> &Token<'a> {
        &self.token
    }

    /// Where the current token starts.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Steps over the current token and returns it.
    pub(super) fn advance(&mut self) -> Result<Token<'a>, ErrorAt> {
        let (offset, token) = self.lexer.next()?;
        self.offset = offset;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// An error at the current token.
    pub(super) fn unexpected(&self, expected: impl Into<Cow<'static, str>>) -> ErrorAt {
        let kind = ParseErrorKind::Unexpected {
            expected: expected.into(),
            found: self.lexer.shown(self.offset),
        };
        ErrorAt::new(self.offset, kind)
    }

    /// Whether the current token is this mark.
    pub(super) fn at_mark(&self, mark: &str) -> bool {
        matches!(&self.token, Token::Mark(m) if *m == mark)
    }

    /// Steps over this mark, if it is the current token.
    pub(super) fn eat_mark(&mut self, mark: &str) -> Result<bool, ErrorAt> {
        let found = self.at_mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Steps over this word, if it is the current token.
    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool, ErrorAt> {
        let found = self.token == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Steps over this mark.
    pub(super) fn mark(&mut self, mark: &str) -> Result<(), ErrorAt> {
        if self.eat_mark(mark)? {
            Ok(())
        } else {
            Err(self.unexpected(format!("`{mark}`")))
        }
    }

    /// Steps over this word.
    pub(super) fn word(&mut self, word: &str) -> Result<(), ErrorAt> {
        if self.eat_word(word)? {
            Ok(())
        } else {
            Err(self.unexpected(format!("`{word}`")))
        }
    }

    /// A bare word that `read` understands; `expected` describes it.
    pub(super) fn word_as<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, ErrorAt> {
        let value = match self.token {
            Token::Word(word) => read(word),
            _ => None,
        };
        let value = value.ok_or_else(|| self.unexpected(expected))?;
        self.advance()?;
        Ok(value)
    }

    /// A number that fits `T`.
    pub(super) fn number<T: std::str::FromStr>(&mut self, expected: &'static str) -> Result<T, ErrorAt> {
        self.word_as(expected, |word| word.parse().ok())
    }

    /// A name, bare or quoted.
    pub(super) fn name(&mut self, expected: &'static str) -> Result<Cow<'a, str>, ErrorAt> {
        let name = match &self.token {
            Token::Word(word) => Cow::Borrowed(*word),
            Token::String(text) => text.clone(),
            _ => return Err(self.unexpected(expected)),
        };
        self.advance()?;
        Ok(name)
    }

    /// `open item, item, … close`.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        item: impl FnMut(&mut Self) -> Result<T, ErrorAt>,
    ) -> Result<Vec<T>, ErrorAt> {
        self.mark(open)?;
        self.items(close, item)
    }

    /// The rest of a list whose opening mark is behind.
    pub(super) fn items<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, ErrorAt>,
    ) -> Result<Vec<T>, ErrorAt> {
        let mut items = Vec::new();
        if self.eat_mark(close)? {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat_mark(close)? {
                return Ok(items);
            }
            if !self.eat_mark(",")? {
                return Err(self.unexpected(format!("`,` or `{close}`")));
            }
        }
    }
}
