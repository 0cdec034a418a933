//! The weights that a run reads, in the order in which it does, as lines of a file of plans.
//!
//! ```text
//! weights weights.data         the file of the weights, in the folder of the plan
//! use 0 16777216               of every weight that a run reads: the offset in that file, and the bytes
//! use 16777216 4096
//! ```
//!
//! Uses stand in the order in which a run begins to read them. A weight that a run reads, leaves and reads again has a line for each time.

use std::fmt;

use crate::lines::{Lines, MOST_BYTES, PlanFileError};

/// Most uses of a run.
const MOST_USES: usize = 1 << 18;

/// The weights that a run reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedWeights {
    /// The name of the file of the weights, which lies in the folder of the plan.
    pub file: String,
    /// At least one, in the order in which a run begins to read them.
    pub uses: Vec<WeightUse>,
}

/// A part of the file of the weights that a run reads. The layout is that of `remat_arena_weight` in C.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WeightUse {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it has, at least one.
    pub bytes: u64,
}

impl WeightUse {
    /// Where it ends in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

impl fmt::Display for PlannedWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "weights {}", self.file)?;
        let mut uses = self.uses.iter();
        uses.try_for_each(|WeightUse { offset, bytes }| writeln!(f, "use {offset} {bytes}"))
    }
}

impl PlannedWeights {
    /// Whether a file may have this name: it lies in the folder of the plan.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_plain = !name.contains(['/', '\\']) && !name.contains(char::is_control);
        is_plain && !["", ".", ".."].contains(&name)
    }

    /// Reads the lines, where they come next.
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, PlanFileError> {
        let Some(name) = lines.after("weights ") else {
            return Ok(None);
        };
        if !Self::is_name(name) {
            return Err(lines.wrong(&format!("`{name}` is not the name of a file in the folder of the plan")));
        }
        let mut uses = Vec::new();
        while let Some(text) = lines.after("use ") {
            uses.push(one(lines, text)?);
            if uses.len() > MOST_USES {
                return Err(lines.wrong(&format!(
                    "{} uses of weights; there are at most {MOST_USES}",
                    uses.len()
                )));
            }
        }
        if uses.is_empty() {
            return Err(lines.wrong("weights that no run uses"));
        }
        let file = name.to_owned();
        Ok(Some(Self { file, uses }))
    }
}

fn one(lines: &Lines<'_>, text: &str) -> Result<WeightUse, PlanFileError> {
    let Some((offset, bytes)) = text.split_once(' ') else {
        return Err(lines.wrong("expected `use OFFSET BYTES`"));
    };
    let offset = lines.number(offset, "offset", MOST_BYTES)?;
    let bytes = lines.number(bytes, "bytes", MOST_BYTES)?;
    if bytes == 0 {
        return Err(lines.wrong("a use of 0 bytes"));
    }
    Ok(WeightUse { offset, bytes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ArenaPlanFile;

    const HEAD: &str = "remat-arena 2\nmodel blake3:00\nruntime 1.31.1\nlevel off\ndim 1 64 b\n";
    const TAIL: &str = "plan buffers 1 orders 1 first 0\n64 0 1 0\n";

    fn text(lines: &str) -> String {
        format!("{HEAD}{lines}{TAIL}")
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(
            name in "[a-z ][a-z.]{0,9}",
            uses in proptest::collection::vec((0..1u64 << 40, 1..1u64 << 40), 1..9),
        ) {
            let uses = uses.into_iter().map(|(offset, bytes)| WeightUse { offset, bytes }).collect();
            let weights = PlannedWeights { file: name, uses };
            let text = text(&weights.to_string());
            let file = ArenaPlanFile::parse(&text).expect("it is well-formed");
            prop_assert_eq!(file.to_string(), text);
            prop_assert_eq!(file.weights, Some(weights));
        }
    }

    #[test]
    fn a_malformed_line_is_refused_with_its_number() {
        let cases = [
            (6, "weights a/b\nuse 0 1\n", "`a/b` is not the name"),
            (6, "weights ..\nuse 0 1\n", "`..` is not the name"),
            (6, "weights w\n", "weights that no run uses"),
            (7, "weights w\nuse 0\n", "expected `use OFFSET BYTES`"),
            (7, "weights w\nuse 0 0\n", "a use of 0 bytes"),
            (7, "weights w\nuse x 1\n", "offset: `x`"),
            (
                8,
                "weights w\nuse 0 1\nuse 1 99999999999999999\n",
                "bytes: `99999999999999999`",
            ),
            (8, "weights w\nuse 0 1\nweights v\nuse 0 1\n", "expected `plan"),
            (6, "use 0 1\n", "expected `plan"),
        ];
        for (line, lines, why) in cases {
            let error = ArenaPlanFile::parse(&text(lines)).expect_err(lines);
            assert_eq!(error.line, line, "{lines}: {error}");
            assert!(error.why.contains(why), "{lines}: {error}");
        }
    }

    #[test]
    fn files_without_weights_have_none() {
        assert_eq!(ArenaPlanFile::parse(&text("")).map(|file| file.weights), Ok(None));
    }
}
