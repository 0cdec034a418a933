//! The command that was run, with one option changed, as a line for a shell.

use std::ffi::OsString;

use remat::SolveError;
use remat::plan::percent;

/// An option that takes a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed<'a> {
    /// Its long name, without dashes.
    pub(crate) long: &'a str,
    /// Its short name, if it has one.
    pub(crate) short: Option<char>,
    /// The new value.
    pub(crate) value: &'a str,
}

/// Flags without value that may stand before a short option in one word, `-qb 80%`.
const FLAGS: [char; 2] = ['q', 'v'];

/// The arguments, program first, with this option changed, or added where it is not there, quoted for a shell. `None` if an argument is
/// no text.
pub(crate) fn with(arguments: impl IntoIterator<Item = OsString>, changed: Changed<'_>) -> Option<String> {
    let arguments: Option<Vec<String>> = arguments
        .into_iter()
        .map(|argument| argument.into_string().ok())
        .collect();
    let arguments = arguments?;
    let end = arguments
        .iter()
        .position(|argument| argument == "--")
        .unwrap_or(arguments.len());
    let (options, rest) = arguments.split_at(end);
    let mut new = Vec::new();
    let mut is_there = false;
    let mut old = options.iter();
    while let Some(argument) = old.next() {
        match changed.part_of(argument) {
            None => new.push(argument.clone()),
            Some(Part::Name) => {
                new.extend([argument.clone(), changed.value.to_owned()]);
                // The value that it had.
                old.next();
                is_there = true;
            }
            Some(Part::NameAnd(name)) => {
                new.push(format!("{name}{}", changed.value));
                is_there = true;
            }
        }
    }
    if !is_there {
        new.extend([format!("--{}", changed.long), changed.value.to_owned()]);
    }
    new.extend_from_slice(rest);
    shlex::try_join(new.iter().map(String::as_str)).ok()
}

/// The command that does what was refused, for errors that know one.
pub(crate) fn after(error: &SolveError) -> Option<String> {
    let (long, short, value) = match error {
        SolveError::Refused(refusal) => ("budget", Some('b'), refusal.retry?.to_string()),
        SolveError::TooLong { found, baseline, .. } => ("max-overhead", None, percent(share_of(*found, *baseline)?)),
        _ => return None,
    };
    let changed = Changed {
        long,
        short,
        value: &value,
    };
    with(crate::embedding::command_line()?, changed)
}

/// The time beyond the baseline in millionths of it, rounded up to a tenth of a per cent.
fn share_of(found: u64, baseline: u64) -> Option<u64> {
    const TENTH_OF_A_PERCENT: u64 = 1_000;
    let added = u128::from(found.saturating_sub(baseline)) * 1_000_000;
    let millionths = added.checked_div(u128::from(baseline))? + 1;
    u64::try_from(millionths)
        .ok()?
        .checked_next_multiple_of(TENTH_OF_A_PERCENT)
}

/// What an argument has of the option.
enum Part {
    /// The name; the value is the next argument.
    Name,
    /// Both; the name with what stands before the value.
    NameAnd(String),
}

impl Changed<'_> {
    fn part_of(&self, argument: &str) -> Option<Part> {
        if let Some(long) = argument.strip_prefix("--") {
            return match long.strip_prefix(self.long)? {
                "" => Some(Part::Name),
                rest => rest
                    .starts_with('=')
                    .then(|| Part::NameAnd(format!("--{}=", self.long))),
            };
        }
        let cluster = argument.strip_prefix('-')?;
        let at = cluster.find(|c: char| !FLAGS.contains(&c))?;
        let value = cluster[at..].strip_prefix(self.short?)?;
        if value.is_empty() {
            return Some(Part::Name);
        }
        let name = argument.len() - value.len();
        let equals = if value.starts_with('=') { "=" } else { "" };
        Some(Part::NameAnd(format!("{}{equals}", &argument[..name])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(line: &[&str]) -> String {
        let arguments = line.iter().map(OsString::from);
        let budget = Changed {
            long: "budget",
            short: Some('b'),
            value: "63%",
        };
        with(arguments, budget).expect("it is text")
    }

    #[test]
    fn the_value_is_replaced_wherever_it_stands() {
        for (line, expected) in [
            (
                &["remat-opt", "m.onnx", "-b", "1%", "-q"][..],
                "remat-opt m.onnx -b '63%' -q",
            ),
            (&["remat-opt", "m.onnx", "-b1%"], "remat-opt m.onnx '-b63%'"),
            (&["remat-opt", "m.onnx", "-b=1%"], "remat-opt m.onnx '-b=63%'"),
            (&["remat-opt", "m.onnx", "-qb", "1%"], "remat-opt m.onnx -qb '63%'"),
            (
                &["remat-opt", "m.onnx", "--budget", "1%"],
                "remat-opt m.onnx --budget '63%'",
            ),
            (
                &["remat-opt", "--budget=1%", "m.onnx"],
                "remat-opt '--budget=63%' m.onnx",
            ),
        ] {
            assert_eq!(changed(line), expected);
        }
    }

    #[test]
    fn what_is_not_there_is_added_before_the_end_of_options() {
        assert_eq!(changed(&["remat-opt", "m.onnx"]), "remat-opt m.onnx --budget '63%'");
        assert_eq!(changed(&["remat-opt", "--", "-b"]), "remat-opt --budget '63%' -- -b");
        assert_eq!(
            changed(&["remat-opt", "--budgets", "1%"]),
            "remat-opt --budgets '1%' --budget '63%'"
        );
    }

    #[test]
    fn a_share_of_time_is_rounded_up() {
        assert_eq!(share_of(1_029_300, 1_000_000), Some(30_000));
        assert_eq!(share_of(1_000_000, 1_000_000), Some(1_000));
        assert_eq!(share_of(3, 2), Some(501_000));
        assert_eq!(share_of(1, 0), None);
    }

    #[test]
    fn arguments_are_quoted() {
        assert_eq!(
            changed(&["remat-opt", "my model.onnx", "-b", "1%"]),
            "remat-opt 'my model.onnx' -b '63%'"
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_not_shown() {
        use std::os::unix::ffi::OsStringExt;
        let broken = OsString::from_vec(vec![0xff]);
        let budget = Changed {
            long: "budget",
            short: None,
            value: "1",
        };
        assert_eq!(with([broken], budget), None);
    }
}
