//! The invariants of the architecture, one file per rule.

mod circles;
mod crates;
mod errors;
mod files;
mod links;
mod operators;
mod tables;
mod unsafe_code;
mod words;

use crate::workspace::{Finding, Source};

/// Everything that breaks a rule, by file and line.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let rules: [fn(&Source) -> Vec<Finding>; 7] = [
        crates::check,
        errors::check,
        links::check,
        operators::check,
        tables::check,
        unsafe_code::check,
        words::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| sources.iter().flat_map(rule)).collect();
    findings.extend(sources.iter().filter_map(files::check));
    findings.extend(circles::check(sources));
    findings.sort();
    findings
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
