//! Errors are those of one stage, and libraries state facts: what option of a program helps is for the program to say.

use crate::workspace::{Finding, Source};

/// Most variants of an error.
const MOST: usize = 20;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() || source.is_test() {
        return Vec::new();
    }
    let mut findings = large(source);
    if source.is_library() {
        findings.extend(flags(source));
    }
    findings
}

/// Messages that name an option of the command line.
fn flags(source: &Source) -> impl Iterator<Item = Finding> {
    let lines = source.code().filter(|(_, code)| names_flag(code));
    lines.map(|(line, _)| Finding::new(source, line, "a message of a library names an option: `tools` do that"))
}

/// Whether there is a word like `--dim`. What begins a string is no message, but an argument for another program.
fn names_flag(code: &str) -> bool {
    let is_flag = |(at, _): (usize, &str)| {
        let before = code[..at].chars().next_back();
        let after = code[at + 2..].chars().next();
        before.is_some_and(|c| " `(".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
    };
    code.match_indices("--").any(is_flag)
}

/// Errors that are several.
fn large(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = source.code();
    while let Some((line, code)) = lines.next() {
        let name = code
            .trim_start_matches("pub ")
            .strip_prefix("enum ")
            .unwrap_or_default();
        let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
        if !name.ends_with("Error") {
            continue;
        }
        let body = lines.by_ref().take_while(|(_, code)| *code != "}");
        let is_variant = |code: &str| {
            code.strip_prefix("    ")
                .is_some_and(|code| code.starts_with(char::is_uppercase))
        };
        let variants = body.filter(|(_, code)| is_variant(code)).count();
        if variants > MOST {
            let text = format!("`{name}` has {variants} variants, at most {MOST} are allowed: split it by stage");
            findings.push(Finding::new(source, line, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&source(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_message_that_names_an_option_is_found_in_libraries_only() {
        let text = "//! Errors.\n#[error(\"set `--dim` for it\")]\n\"state it with --size\"\n// use --dim\n.arg(\"--exact\")\n";
        assert_eq!(found("dialect/onnx/src/error.rs", text), [2, 3]);
        assert!(found("tools/remat-opt/src/failure/help.rs", text).is_empty());
        assert!(found("passes/remat/tests/a.rs", text).is_empty());
    }

    #[test]
    fn an_error_of_too_many_kinds_is_found() {
        let error = |variants: usize| {
            let variants: String = (0..variants).map(|at| format!("    /// It.\n    V{at},\n")).collect();
            format!("pub enum SomeError {{\n{variants}}}\n")
        };
        assert_eq!(found("passes/plan/src/a.rs", &error(21)), [1]);
        assert!(found("passes/plan/src/a.rs", &error(20)).is_empty());
        let other = error(21).replace("SomeError", "Activity");
        assert!(found("passes/plan/src/a.rs", &other).is_empty());
    }
}
