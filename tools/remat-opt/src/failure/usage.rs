//! Command lines that cannot be understood, and those that ask for help.

use std::ffi::OsString;

use super::{FailureBody, Kind, print_failure};
use crate::console;

/// Prints what clap has to say: help on stdout; a usage error on stderr and, where programs read along, as an object on stdout.
pub(crate) fn report_usage(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let plain = error.render().to_string();
    let safe = remat_files::lines(&plain);
    if error.use_stderr() && safe != plain {
        // A name from elsewhere stands on the command line: colours are left out rather than told from it.
        console::write_stderr(&safe);
    } else if !console::is_captured() {
        // Nothing can be done where the stream is gone.
        _ = error.print();
    }
    let status = u8::try_from(error.exit_code()).unwrap_or(Kind::Usage.status());
    if error.use_stderr() && wants_json(arguments) {
        print_failure(FailureBody {
            kind: Kind::Usage,
            message: message(&error.render().to_string()),
            help: Some("`--help` lists all options".to_owned()),
            exit_status: status,
            node: None,
            details: None,
        });
    }
    status
}

/// Whether a command line that cannot be parsed asks for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    let words = arguments.iter().map(|argument| argument.to_string_lossy());
    let words: Vec<_> = words.take_while(|word| word != "--").collect();
    let pairs = words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    pairs || words.iter().any(|word| word == "--format=json")
}

/// The first paragraph, without the word `error`.
fn message(rendered: &str) -> String {
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(line: &str) -> bool {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        wants_json(&words)
    }

    #[test]
    fn json_is_asked_for_before_the_end_of_options_only() {
        assert!(wants("remat-opt in --format json --nonsense"));
        assert!(wants("remat-opt --format=json"));
        assert!(!wants("remat-opt in --format text json"));
        assert!(!wants("remat-opt -- --format json"));
    }

    #[test]
    fn a_message_is_the_first_paragraph() {
        let rendered = "error: unexpected argument '--x' found\n\n  tip: y\n\nUsage: z\n";
        assert_eq!(message(rendered), "unexpected argument '--x' found");
    }
}
