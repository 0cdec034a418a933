//! A file of plans line by line: the next line, and the numbers, formulas and dimensions in it.

use std::fmt;

use crate::formula::{Derived, Formula, OpenDim};

/// The largest block, and the largest size of a dimension.
pub(crate) const MOST_BYTES: u64 = 1 << 44;

/// What is wrong with a file of plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanFileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for PlanFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for PlanFileError {}

/// The lines that are left.
pub(crate) struct Lines<'t> {
    lines: std::str::Lines<'t>,
    /// Of the line that was read last.
    number: usize,
    /// How many variables formulas may have.
    pub(crate) variables: usize,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self {
            lines: text.lines(),
            number: 0,
            variables: 0,
        }
    }

    pub(crate) fn wrong(&self, why: &str) -> PlanFileError {
        PlanFileError {
            line: self.number,
            why: why.to_owned(),
        }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.lines.clone().next().is_none()
    }

    /// Whether the next line begins with a word.
    pub(crate) fn is_next(&self, word: &str) -> bool {
        self.lines.clone().next().is_some_and(|line| line.starts_with(word))
    }

    /// What follows a word with which the next line begins; that line is read then.
    pub(crate) fn after(&mut self, word: &str) -> Option<&'t str> {
        let rest = self.lines.clone().next()?.strip_prefix(word)?;
        self.next().ok()?;
        Some(rest)
    }

    pub(crate) fn next(&mut self) -> Result<&'t str, PlanFileError> {
        self.number += 1;
        self.lines.next().ok_or_else(|| self.wrong("the file ends too early"))
    }

    pub(crate) fn field(&mut self, key: &str) -> Result<String, PlanFileError> {
        let value = self.next()?.strip_prefix(key).and_then(|rest| rest.strip_prefix(' '));
        let value = value.filter(|value| !value.is_empty() && !value.contains(char::is_control));
        value
            .map(str::to_owned)
            .ok_or_else(|| self.wrong(&format!("expected `{key} ..`")))
    }

    pub(crate) fn number(&self, text: &str, what: &str, most: u64) -> Result<u64, PlanFileError> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|&value: &u64| is_plain && value <= most);
        value.ok_or_else(|| self.wrong(&format!("{what}: `{text}` is not a number from 0 to {most}")))
    }

    pub(crate) fn formula(&self, text: &str) -> Result<Formula, PlanFileError> {
        Formula::parse(text, self.variables).ok_or_else(|| {
            self.wrong(&format!(
                "`{text}` is not a formula in {} variables such as `4*d0^2+64`",
                self.variables
            ))
        })
    }

    pub(crate) fn dim(&self, text: &str) -> Result<OpenDim, PlanFileError> {
        let [least, most, name] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err(self.wrong("expected `dim LEAST MOST NAME`"));
        };
        let (least, most) = (
            self.number(least, "size", MOST_BYTES)?,
            self.number(most, "size", MOST_BYTES)?,
        );
        if least > most {
            return Err(self.wrong(&format!("from {least} to {most} there is no size")));
        }
        if name.contains(char::is_control) {
            return Err(self.wrong("expected `dim LEAST MOST NAME`"));
        }
        Ok(OpenDim {
            name: name.to_owned(),
            least,
            most,
        })
    }

    pub(crate) fn derived(&self, text: &str) -> Result<Derived, PlanFileError> {
        let fields: Vec<&str> = text.split(' ').collect();
        match fields[..] {
            ["floor", of, by] => {
                let by = u32::try_from(self.number(by, "divisor", u32::MAX.into())?).unwrap_or(0);
                if by == 0 {
                    return Err(self.wrong("a quotient by 0"));
                }
                Ok(Derived::Quotient(self.formula(of)?, by))
            }
            ["max", one, other] => Ok(Derived::Max(self.formula(one)?, self.formula(other)?)),
            ["min", one, other] => Ok(Derived::Min(self.formula(one)?, self.formula(other)?)),
            _ => {
                Err(self
                    .wrong("expected `let floor FORMULA N`, `let max FORMULA FORMULA` or `let min FORMULA FORMULA`"))
            }
        }
    }

    pub(crate) fn input(&self, text: &str) -> Result<(String, Vec<Formula>), PlanFileError> {
        let named = text
            .split_once(' ')
            .filter(|(_, name)| !name.contains(char::is_control));
        let (shape, name) = named.ok_or_else(|| self.wrong("expected `input SHAPE NAME`"))?;
        if shape == "-" {
            return Ok((name.to_owned(), Vec::new()));
        }
        let dims: Result<Vec<Formula>, PlanFileError> = shape.split(',').map(|dim| self.formula(dim)).collect();
        Ok((name.to_owned(), dims?))
    }
}
