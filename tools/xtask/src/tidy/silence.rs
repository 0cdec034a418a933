//! Libraries return values: only tools print, read the environment and exit.

use crate::workspace::{Finding, Source, has_word};

/// What libraries do not call.
const CALLS: &[&str] = &[
    "println!",
    "eprintln!",
    "print!",
    "eprint!",
    "process::exit",
    "env::var",
    "env::args",
];

/// Programs among the libraries: the plugin is loaded into one of others, which says nothing on its behalf.
const PROGRAMS: &[&str] = &["passes/mlir/plugin/src/entry.rs"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if PROGRAMS.contains(&source.path.as_str()) || !(source.is_library() && source.is_rust()) || source.is_test() {
        return Vec::new();
    }
    let calls = |line: &str| CALLS.iter().find(|call| has_word(line, call));
    let called = source.code().filter_map(|(line, code)| Some((line, calls(code)?)));
    called
        .map(|(line, call)| {
            Finding::new(
                source,
                line,
                format!("`{call}` in a library: only `tools` talk to the outside"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn a_library_that_prints_reads_the_environment_or_exits_is_found() {
        for code in [
            "println!(\"x\");",
            "std::env::var(\"X\")",
            "std::process::exit(1)",
            "    eprint!(\"x\")",
        ] {
            let found = check(&source("passes/plan/src/a.rs", &format!("//! A.\n{code}\n")));
            assert_eq!(found.len(), 1, "{code}");
            assert_eq!(found[0].line, 2, "{code}");
        }
    }

    #[test]
    fn tests_comments_tools_and_other_words_pass() {
        let test_module = "fn f() {}\n#[cfg(test)]\nmod tests { fn g() { println!(); } }\n";
        assert!(check(&source("passes/plan/src/a.rs", test_module)).is_empty());
        assert!(check(&source("passes/plan/src/a_tests.rs", "println!()")).is_empty());
        assert!(check(&source("passes/plan/tests/a.rs", "println!()")).is_empty());
        assert!(check(&source("passes/plan/src/a.rs", "// println!()\nmy_println!()")).is_empty());
        assert!(check(&source("tools/bench/src/main.rs", "println!()")).is_empty());
    }
}
