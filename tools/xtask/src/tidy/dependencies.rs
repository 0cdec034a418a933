//! Crates depend on each other in the direction of the data, and what talks to people stays in `tools`.

use toml::{Table, Value};

use crate::workspace::{Finding, Source};

/// Which crates of the workspace each library may depend on; tests may use any.
const ALLOWED: &[(&str, &[&str])] = &[
    ("remat-files", &[]),
    ("remat-ir", &[]),
    ("remat-operators", &["remat-ir"]),
    ("remat-onnx", &["remat-files", "remat-ir", "remat-operators"]),
    ("remat-onnx-mlir", &["remat-ir", "remat-onnx", "remat-operators"]),
    ("remat-nodelink", &["remat-files", "remat-ir"]),
    ("remat-mlir", &["remat-ir", "remat-operators"]),
    ("remat-plan", &["remat-files", "remat-ir"]),
    // Checkers know nothing that makes what they judge.
    ("remat-verify", &["remat-files", "remat-ir", "remat-plan"]),
    ("remat-fission-check", &["remat-ir", "remat-verify"]),
    (
        "remat-cost",
        &["remat-files", "remat-ir", "remat-operators", "remat-plan"],
    ),
    ("remat-solve", &["remat-ir", "remat-plan"]),
    ("remat-place", &["remat-files", "remat-ir", "remat-plan", "remat-solve"]),
    (
        "remat-fission",
        &["remat-cost", "remat-files", "remat-ir", "remat-operators", "remat-plan"],
    ),
    ("remat-rewrite", &["remat-files", "remat-ir", "remat-plan"]),
    ("remat-schedule", &["remat-plan"]),
    // Solvers are registered above them: no system of a paper knows another one, but POET's program, which is that of Checkmate with pages.
    ("remat-classic", &["remat-plan", "remat-solve"]),
    ("remat-dtr", &["remat-files", "remat-plan", "remat-solve"]),
    ("remat-ortools", &["remat-files", "remat-plan", "remat-solve"]),
    ("remat-moccasin", &["remat-ortools", "remat-plan", "remat-solve"]),
    ("remat-checkmate", &["remat-ortools", "remat-plan", "remat-solve"]),
    (
        "remat-poet",
        &["remat-checkmate", "remat-ortools", "remat-plan", "remat-solve"],
    ),
    ("remat-onnxruntime-arena", &[]),
    ("remat-onnxruntime-run", &["remat-files", "remat-onnxruntime-arena"]),
    (
        "remat-onnxruntime-lower",
        &["remat-ir", "remat-onnx", "remat-operators"],
    ),
    ("remat-onnxruntime-sim", &["remat-ir", "remat-operators"]),
    (
        "remat",
        &[
            "remat-files",
            "remat-ir",
            "remat-onnx",
            "remat-onnx-mlir",
            "remat-onnxruntime-sim",
            "remat-nodelink",
            "remat-plan",
            "remat-verify",
            "remat-cost",
            "remat-solve",
            "remat-rewrite",
            "remat-schedule",
            "remat-ortools",
            "remat-checkmate",
            "remat-classic",
            "remat-moccasin",
            "remat-poet",
            "remat-dtr",
            "remat-fission",
            "remat-fission-check",
            "remat-place",
        ],
    ),
    (
        "remat-onnxruntime-observe",
        &[
            "remat",
            "remat-cost",
            "remat-files",
            "remat-ir",
            "remat-onnx",
            "remat-onnxruntime-arena",
            "remat-onnxruntime-run",
            "remat-onnxruntime-sim",
            "remat-plan",
            "remat-solve",
        ],
    ),
    (
        // What is predicted runs nothing.
        "remat-onnxruntime-predict",
        &[
            "remat",
            "remat-cost",
            "remat-ir",
            "remat-onnx",
            "remat-onnxruntime-lower",
            "remat-onnxruntime-sim",
            "remat-plan",
            "remat-solve",
        ],
    ),
    (
        "remat-onnxruntime-deploy",
        &[
            "remat",
            "remat-cost",
            "remat-files",
            "remat-ir",
            "remat-onnx",
            "remat-onnxruntime-lower",
            "remat-onnxruntime-observe",
            "remat-onnxruntime-predict",
            "remat-onnxruntime-run",
            "remat-operators",
            "remat-plan",
            "remat-solve",
        ],
    ),
    ("remat-mlir-passes", &["remat", "remat-mlir"]),
    ("remat-plugin", &["remat-mlir-passes"]),
];

/// Crates for command lines.
const TOOLS_ONLY: &[&str] = &["anyhow", "clap", "clap_complete", "indicatif", "miette"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let library = source.path.starts_with("dialect/") || source.path.starts_with("passes/");
    if !library || !source.path.ends_with("/Cargo.toml") {
        return Vec::new();
    }
    let manifest: Table = match source.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(source, 1, format!("not a manifest: {error}"))],
    };
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![Finding::new(
            source,
            1,
            format!("crate `{name}` has no place in the direction of dependencies"),
        )];
    };
    let message = |dependency: &str| {
        if TOOLS_ONLY.contains(&dependency) {
            Some(format!("`{name}` is a library: `{dependency}` is for `tools` only"))
        } else if is_ours(dependency) && !allowed.contains(&dependency) {
            Some(format!("`{name}` must not depend on `{dependency}`"))
        } else {
            None
        }
    };
    let named = dependencies(&manifest)
        .into_iter()
        .filter_map(|dependency| Some((message(&dependency)?, dependency)));
    named
        .map(|(message, dependency)| Finding::new(source, line_of(&source.text, &dependency), message))
        .collect()
}

/// Whether the crate is one of this workspace.
fn is_ours(dependency: &str) -> bool {
    dependency == "remat" || dependency.starts_with("remat-") || dependency == "xtask"
}

/// Names of everything the crate is built with, tests apart, for all targets.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut names = Vec::new();
    for table in std::iter::once(manifest).chain(targets) {
        for kind in ["dependencies", "build-dependencies"] {
            let entries = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            names.extend(entries.map(|(name, entry)| {
                let package = entry.get("package").and_then(Value::as_str);
                package.unwrap_or(name).to_owned()
            }));
        }
    }
    names
}

/// The line that names the dependency.
fn line_of(text: &str, dependency: &str) -> usize {
    text.lines()
        .position(|line| line.contains(dependency) && line.contains('=') && !line.starts_with("name"))
        .map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    fn findings(name: &str, tables: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{name}\"\n{tables}");
        let source = source("passes/some/Cargo.toml", &manifest);
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_checker_must_not_know_a_solver() {
        let tables = "[dependencies]\nremat-plan.workspace = true\nremat-solve.workspace = true\n";
        let expected = "passes/some/Cargo.toml:5: `remat-verify` must not depend on `remat-solve`";
        assert_eq!(findings("remat-verify", tables), [expected]);
        let tables = tables.replace("[dep", "[dev-dep");
        assert!(findings("remat-verify", &tables).is_empty());
    }

    #[test]
    fn dependencies_under_another_name_or_target_are_found() {
        let renamed = "[dependencies]\nhidden = { package = \"remat-onnx\", version = \"1\" }\n";
        assert_eq!(findings("remat-solve", renamed).len(), 1);
        let target =
            "[target.'cfg(unix)'.dependencies]\nremat-onnx = \"1\"\n[build-dependencies]\nremat-rewrite = \"1\"\n";
        assert_eq!(findings("remat-solve", target).len(), 2);
    }

    #[test]
    fn libraries_do_without_command_line_crates() {
        assert_eq!(findings("remat", "[dependencies]\nclap.workspace = true\n").len(), 1);
        assert!(findings("remat", "[dependencies]\nserde.workspace = true\n").is_empty());
        let tool = source(
            "tools/some/Cargo.toml",
            "[package]\nname = \"some\"\n[dependencies]\nclap = \"4\"\n",
        );
        assert!(check(&tool).is_empty());
    }

    #[test]
    fn a_library_without_a_place_or_a_broken_manifest_is_found() {
        assert_eq!(findings("remat-new", "").len(), 1);
        assert_eq!(check(&source("passes/some/Cargo.toml", "[package")).len(), 1);
    }
}
