//! The invariants of the architecture, one file per rule.

mod circles;
mod dependencies;
mod documentation;
mod errors;
mod length;
mod links;
mod machine_paths;
mod names;
mod operators;
mod silence;
mod tables;
mod unsafe_code;
mod writing;

use crate::workspace::{Finding, Source};

/// Everything that breaks a rule, by file and line.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let rules: [fn(&Source) -> Vec<Finding>; 12] = [
        dependencies::check,
        documentation::check,
        errors::check,
        length::check,
        links::check,
        machine_paths::check,
        names::check,
        operators::check,
        silence::check,
        tables::check,
        unsafe_code::check,
        writing::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| sources.iter().flat_map(rule)).collect();
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
