//! What the checker found.

use std::fmt;

use crate::Code;

/// How many violations a [`Rejection`] holds at most; further ones are only counted.
pub const MAX_VIOLATIONS: usize = 1000;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule.
    pub code: Code,
    /// Position of the step that breaks it, or of the op in a tiled graph, from 0; `None` where it is the whole.
    pub step: Option<usize>,
    /// What is wrong, with the names of op and tensor and the numbers that disagree.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, remat_files::shown(&self.message))
    }
}

/// The plan, or its certificate, breaks rules: those of single steps in the order of the steps, then those of the plan as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Rejection {
    /// The broken rules, at least one and at most [`MAX_VIOLATIONS`].
    pub violations: Vec<Violation>,
    /// How many more violations there are.
    pub suppressed: usize,
}

impl Rejection {
    /// The codes of the violations, ascending, each once.
    #[must_use]
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> = self.violations.iter().map(|violation| violation.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

impl fmt::Display for Rejection {
    /// One line that counts, then one line for each violation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.violations.len() + self.suppressed;
        let plural = if count == 1 { "" } else { "s" };
        let all = |is_about: fn(Code) -> bool| self.violations.iter().all(|violation| is_about(violation.code));
        let what = match () {
            () if all(Code::is_about_claims) => "certificate",
            () if all(Code::is_about_placements) => "placement",
            () if all(Code::is_about_fission) => "tiled graph",
            () => "plan",
        };
        write!(f, "{what} rejected with {count} violation{plural}")?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        if self.suppressed > 0 {
            write!(f, "\n  and {} more", self.suppressed)?;
        }
        Ok(())
    }
}

/// Collects violations up to [`MAX_VIOLATIONS`].
#[derive(Default)]
pub struct Findings {
    violations: Vec<Violation>,
    suppressed: usize,
}

impl Findings {
    /// Adds a violation; its message is only written if it is kept.
    pub fn add(&mut self, code: Code, step: Option<usize>, message: impl FnOnce() -> String) {
        if self.violations.len() == MAX_VIOLATIONS {
            self.suppressed += 1;
            return;
        }
        let message = message();
        self.violations.push(Violation { code, step, message });
    }

    /// Whether the figures of the replay are those of the plan.
    pub(crate) fn keep_figures(&self) -> bool {
        self.suppressed == 0 && self.violations.iter().all(|violation| violation.code.keeps_figures())
    }

    /// `value`, if nothing was found.
    ///
    /// # Errors
    /// [`Rejection`] with everything that was found.
    pub fn judge<T>(self, value: T) -> Result<T, Rejection> {
        if self.violations.is_empty() {
            return Ok(value);
        }
        Err(Rejection {
            violations: self.violations,
            suppressed: self.suppressed,
        })
    }
}
