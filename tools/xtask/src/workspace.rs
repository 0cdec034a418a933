//! Where the workspace lies and what text is in it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR"));
    tool.ancestors().nth(2).unwrap_or(tool).to_path_buf()
}

/// A text file of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    /// Path from the root, with `/` between its parts.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
}

impl Source {
    /// The folder of the crate that the file belongs to, `passes/plan` or `passes/onnxruntime/run` say; none for a file of no crate.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        let starts = ["/src/", "/tests/", "/benches/", "/build.rs", "/Cargo.toml"];
        let end = starts.iter().filter_map(|part| self.path.find(part)).min()?;
        Some(&self.path[..end]).filter(|folder| folder.contains('/'))
    }

    /// Whether the file is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is code of a library: of what is no tool.
    pub(crate) fn is_library(&self) -> bool {
        let folder = self.crate_folder().unwrap_or_default();
        let code = self.path.strip_prefix(folder);
        (folder.starts_with("dialect/") || folder.starts_with("passes/"))
            && code.is_some_and(|rest| rest.starts_with("/src/"))
    }

    /// Whether it is this file, or lies in this folder, whose path ends with a slash.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        self.path == path || path.ends_with('/') && self.path.starts_with(path)
    }

    /// Whether the whole file is tests.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        self.path.contains("/tests/") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// Lines of code with their numbers from 1: no comments, and nothing from the test module on, which stands last.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines
            .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The lines of a document in Markdown; those within fenced code are replaced by the mark of a fence.
    pub(crate) fn prose(&self) -> Vec<&str> {
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
        self.text.lines().map(line).collect()
    }
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    /// Path from the root.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The text files that git knows or would add, ordered by path; binary and deleted files are left out.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git")
        .args(list)
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git cannot list the files of `{}`",
        root.display()
    );
    let paths = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    let mut paths: Vec<&str> = paths.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).ok()?;
        Some(Source {
            path: path.to_owned(),
            text,
        })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

#[cfg(test)]
pub(crate) fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
