//! Words that do not stand in some files: calls that are for others to make, and folders of one machine.

use crate::workspace::{Finding, Source};

/// Words, where they do not stand, and what is said of them.
struct Rule {
    words: &'static [&'static str],
    /// Whether comments and tests count, too, and files that are no code.
    is_about_text: bool,
    applies: fn(&Source) -> bool,
    /// Files and folders that are exempt, and why.
    exempt: &'static [(&'static str, &'static str)],
    why: &'static str,
}

const RULES: [Rule; 3] = [
    Rule {
        words: &[
            "println!",
            "eprintln!",
            "print!",
            "eprint!",
            "process::exit",
            "env::var",
            "env::args",
        ],
        is_about_text: false,
        applies: Source::is_library,
        exempt: &[(
            "passes/mlir/plugin/src/entry.rs",
            "the plugin is loaded into a program of others, which says nothing on its behalf",
        )],
        why: "in a library: only `tools` talk to the outside",
    },
    Rule {
        words: &[
            "fs::write(",
            "File::create",
            "OpenOptions",
            "fs::rename(",
            "fs::copy(",
            "NamedTempFile",
        ],
        is_about_text: false,
        applies: |source| source.path.contains("/src/"),
        exempt: &[
            (
                "dialect/files/",
                "the routine itself: whole or not at all, and never onto an input",
            ),
            (
                "passes/onnxruntime/run/src/resident.rs",
                "a switch of the system, which is no file",
            ),
            (
                "passes/onnxruntime/arena/src/paging/file.rs",
                "a file without a name, which nobody else sees",
            ),
            ("tools/xtask/src/tidy/words.rs", "names them"),
        ],
        why: "writes a file: `remat_files` does",
    },
    Rule {
        // Written in halves, so that this file does not name them itself. The last one is what `tempfile` names its folders.
        words: &[
            concat!("/wo", "rk/"),
            concat!("/ho", "me/"),
            concat!("/ro", "ot/"),
            concat!("/Us", "ers/"),
            concat!("/tm", "p/.tmp"),
        ],
        is_about_text: true,
        applies: |_| true,
        exempt: &[],
        why: "is a folder of one machine",
    },
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule.check(source)).collect()
}

impl Rule {
    fn check(&self, source: &Source) -> Vec<Finding> {
        let is_code = source.is_rust() && !source.is_test();
        let is_exempt = self.exempt.iter().any(|(path, _)| source.is_at(path));
        if is_exempt || !(self.applies)(source) || !(is_code || self.is_about_text) {
            return Vec::new();
        }
        let lines: Vec<(usize, &str)> = if self.is_about_text {
            source
                .text
                .lines()
                .enumerate()
                .map(|(at, line)| (at + 1, line))
                .collect()
        } else {
            source.code().collect()
        };
        let named = |line| self.words.iter().find(|word| has_word(line, word));
        let named = lines.iter().filter_map(|&(at, line)| Some((at, named(line)?)));
        named
            .map(|(at, word)| Finding::new(source, at, format!("`{}` {}", word.trim_end_matches('('), self.why)))
            .collect()
    }
}

/// Whether the word stands in the line as the start of a name or of a path rather than in the middle of one.
fn has_word(line: &str, word: &str) -> bool {
    let is_start = |c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '}' | ')' | '~' | '*');
    let starts = |at: usize| line[..at].chars().next_back().is_none_or(is_start);
    line.match_indices(word).any(|(at, _)| starts(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&source(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_library_that_prints_reads_the_environment_exits_or_writes_is_found() {
        for code in [
            "println!(\"x\");",
            "std::env::var(\"X\")",
            "std::process::exit(1)",
            "    eprint!(\"x\")",
            "std::fs::write(path, text)?;",
            "let file = File::create(path)?;",
        ] {
            assert_eq!(
                lines("passes/plan/src/a.rs", &format!("//! A.\n{code}\n")),
                [2],
                "{code}"
            );
        }
        assert_eq!(lines("tools/remat-opt/src/commands/a.rs", "File::create(path)?"), [1]);
    }

    #[test]
    fn tests_comments_tools_and_other_words_pass() {
        let test_module = "fn f() {}\n#[cfg(test)]\nmod tests { fn g() { println!(); File::create(path); } }\n";
        for (path, text) in [
            ("passes/plan/src/a.rs", test_module),
            ("passes/plan/src/a_tests.rs", "println!()"),
            ("passes/plan/tests/a.rs", "println!(); std::fs::write(path, text)?;"),
            ("passes/plan/src/a.rs", "// println!()\nmy_println!()"),
            ("tools/bench/src/main.rs", "println!()"),
            (
                "tools/bench/src/a.rs",
                "remat_files::write(path, text)?; File::open(path)?; OutputFile::create(path)?;",
            ),
            ("dialect/files/src/write.rs", "File::create(path)?"),
        ] {
            assert!(lines(path, text).is_empty(), "{path}: {text}");
        }
    }

    #[test]
    fn folders_of_one_machine_are_found_in_any_text_and_relative_paths_pass() {
        let text = format!("fine\nlet p = \"{}me/x\";\n", "/ho");
        assert_eq!(lines("docs/a.md", &text), [2]);
        assert_eq!(lines("Makefile", &format!("X={}rk/y", "/wo")), [1]);
        let text = format!("src{0}rk/x https://example.org{0}rk/ ..{0}rk/\n", "/wo");
        assert!(lines("docs/a.md", &text).is_empty());
    }
}
