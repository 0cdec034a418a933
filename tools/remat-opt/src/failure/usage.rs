//! Command lines that cannot be understood, and those that ask for help.

use std::ffi::OsString;

use clap::CommandFactory;

use super::{FailureBody, Kind, print_failure, similar};
use crate::cli::Cli;
use crate::console;

/// Prints what clap has to say: help on stdout; a usage error on stderr and, where programs read along, as an object on stdout.
pub(crate) fn report_usage(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let plain = match misspelt(arguments) {
        Some((word, meant)) => format!(
            "error: `{word}` is neither a file nor a command: did you mean `{meant}`?\n\nFor more information, try '--help'.\n"
        ),
        None => error.render().to_string(),
    };
    let is_ours = plain != error.render().to_string();
    let safe = remat_files::lines(&plain);
    if error.use_stderr() && (is_ours || safe != plain) {
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
            message: message(&plain),
            // An interpreter has its own help.
            help: (!console::is_captured()).then(|| "`--help` lists all options".to_owned()),
            exit_status: status,
            node: None,
            details: None,
        });
    }
    status
}

/// The first word, where it is no file and nearly the name of a command, and that name. It was then taken for an input.
fn misspelt(arguments: &[OsString]) -> Option<(String, String)> {
    let word = arguments.get(1)?.to_str()?;
    if word.starts_with('-') || word.contains(['.', '/']) || std::path::Path::new(word).exists() {
        return None;
    }
    let line = Cli::command();
    let commands = || {
        line.get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
    };
    if commands().any(|command| command == word) {
        return None;
    }
    Some((
        word.to_owned(),
        similar(word, commands().collect::<Vec<_>>().into_iter())?.to_owned(),
    ))
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

    fn meant(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        misspelt(&words).map(|(_, meant)| meant)
    }

    #[test]
    fn a_command_that_is_nearly_one_is_recognized() {
        assert_eq!(meant("remat-opt inspec m.onnx").as_deref(), Some("inspect"));
        assert_eq!(
            meant("remat-opt max_batch m.onnx --memory 1GiB").as_deref(),
            Some("max-batch")
        );
        for line in [
            "remat-opt",
            "remat-opt inspect",
            "remat-opt model.onnx x",
            "remat-opt --help",
            "remat-opt model x",
        ] {
            assert_eq!(meant(line), None, "{line}");
        }
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
