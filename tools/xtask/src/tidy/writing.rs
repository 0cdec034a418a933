//! Files are written by one routine, `remat_files`: whole or not at all, and never onto an input.

use crate::workspace::{Finding, Source, has_word};

/// Where the routine is.
const ROUTINE: &str = "dialect/files";

/// What writes to no file: a switch of the system (`/proc/self/clear_refs`).
const SWITCH: &str = "passes/onnxruntime/run/src/resident.rs";

/// What writes to files past it.
const CALLS: &[&str] = &[
    "fs::write(",
    "File::create",
    "OpenOptions",
    "fs::rename(",
    "fs::copy(",
    "NamedTempFile",
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let folder = source.crate_folder().unwrap_or_default();
    let code = source
        .path
        .strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with("/src/"));
    let is_exempt = folder == ROUTINE || source.path == SWITCH || source.path.ends_with("/tidy/writing.rs");
    if !code || !source.is_rust() || source.is_test() || is_exempt {
        return Vec::new();
    }
    let calls = |line: &str| CALLS.iter().find(|call| has_word(line, call));
    let called = source.code().filter_map(|(line, code)| Some((line, calls(code)?)));
    called
        .map(|(line, call)| {
            let call = call.trim_end_matches('(');
            Finding::new(source, line, format!("`{call}` writes a file: `remat_files` does"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn what_writes_past_the_routine_is_found() {
        for code in ["std::fs::write(path, text)?;", "let file = File::create(path)?;"] {
            let text = format!("//! A.\n{code}\n");
            for path in ["passes/plan/src/a.rs", "tools/remat-opt/src/commands/a.rs"] {
                let found = check(&source(path, &text));
                assert_eq!(found.len(), 1, "{path}: {code}");
                assert_eq!(found[0].line, 2);
            }
            assert!(check(&source("dialect/files/src/write.rs", &text)).is_empty());
            assert!(check(&source("passes/plan/tests/a.rs", &text)).is_empty());
        }
    }

    #[test]
    fn the_routine_itself_and_reading_pass() {
        let text = "remat_files::write(path, text)?;\nlet file = File::open(path)?;\nOutputFile::create(path)?;\n";
        assert!(check(&source("tools/bench/src/a.rs", text)).is_empty());
    }
}
