//! The invariants of the architecture, one file per rule.

mod dependencies;
mod documentation;
mod errors;
mod length;
mod links;
mod machine_paths;
mod names;
mod silence;
mod tables;
mod unsafe_code;
mod writing;

use crate::workspace::{Finding, Source};

/// Everything that breaks a rule, by file and line.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let rules: [fn(&Source) -> Vec<Finding>; 11] = [
        dependencies::check,
        documentation::check,
        errors::check,
        length::check,
        links::check,
        machine_paths::check,
        names::check,
        silence::check,
        tables::check,
        unsafe_code::check,
        writing::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| sources.iter().flat_map(rule)).collect();
    findings.sort();
    findings
}

/// Whether `call` stands in `line` at the start of a word.
fn has_word(line: &str, call: &str) -> bool {
    let starts = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(call).any(|(at, _)| starts(at))
}

/// The lines of a document in Markdown; those within fenced code are replaced by the mark of a fence.
fn prose(text: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let line = |line| {
        let trimmed = str::trim_start(line);
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, None) => line,
            (None, Some(_)) => {
                fence = mark;
                "```"
            }
            (Some(_), _) => {
                if fence == mark {
                    fence = None;
                }
                "```"
            }
        }
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use crate::workspace;

    #[test]
    fn this_workspace_is_tidy() {
        let findings = super::check(&workspace::sources(&workspace::root()).unwrap());
        let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
