//! Crates depend on each other in the direction of the data, and what talks to people stays in `tools`. A crate is called as its folder, with or
//! without `remat-` before it; in a room of several crates the room's name may come first.

use toml::{Table, Value};

use crate::workspace::{Finding, Source};

/// Which crates of the workspace each library may depend on, without `remat-` before their names; tests may use any.
const ALLOWED: &str = "\
files:
formula:
# A part for other runtimes: no dependencies at all, and no standard library.
planner:
planner-c: planner
ir: formula
operators: ir
onnx: files formula ir operators
onnx-mlir: ir onnx operators
nodelink: files ir
mlir: ir operators build
plan: files ir
# Checkers know nothing that makes what they judge.
verify: files ir plan
fission-check: ir verify
cost: files formula ir operators plan
solve: ir plan planner
place: files plan planner solve
fission: cost files ir operators plan
rewrite: files ir plan
schedule: plan
# Solvers are registered above them: no system of a paper knows another one, but POET's program, which is that of Checkmate with pages.
classic: plan planner solve
dtr: files plan solve
ortools: files plan solve
moccasin: ortools plan solve
checkmate: ortools plan solve
poet: checkmate ortools plan solve
onnxruntime-arena: formula build
onnxruntime-run: build files formula onnxruntime-arena
onnxruntime-lower: ir onnx operators
onnxruntime-sim: ir operators
pytorch-allocator: files
remat: files formula ir onnx onnx-mlir onnxruntime-sim nodelink plan verify cost solve rewrite schedule ortools checkmate classic moccasin poet dtr fission fission-check place
onnxruntime-observe: remat cost files formula ir onnx onnxruntime-arena onnxruntime-lower onnxruntime-run onnxruntime-sim plan solve
# What is predicted runs nothing.
onnxruntime-predict: remat cost ir onnx onnxruntime-lower onnxruntime-sim plan solve
onnxruntime-deploy: remat cost files ir onnx onnxruntime-lower onnxruntime-observe onnxruntime-predict onnxruntime-run operators plan solve
mlir-passes: remat mlir build
plugin: mlir-passes build
";

/// Crates for command lines.
const TOOLS_ONLY: &[&str] = &["anyhow", "clap", "clap_complete", "indicatif", "miette"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let Some(folder) = source.path.strip_suffix("/Cargo.toml").and(source.crate_folder()) else {
        return Vec::new();
    };
    let manifest: Table = match source.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(source, 1, format!("not a manifest: {error}"))],
    };
    let name = manifest.get("package").and_then(|package| package.get("name"));
    let Some(name) = name.and_then(Value::as_str) else {
        return vec![Finding::new(source, 1, "the manifest gives no `name`")];
    };
    let mut found = Vec::new();
    let (_, room) = folder.split_once('/').unwrap_or(("", folder));
    let joined = room.replace('/', "-");
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    if name != folder && ![folder, &joined].contains(&bare(name)) {
        let message = format!("crate `{name}` lies in folder `{folder}`: expected `remat-{joined}`");
        found.push(Finding::new(source, line_of(&source.text, "name"), message));
    }
    if source.path.starts_with("dialect/") || source.path.starts_with("passes/") {
        found.extend(directions(source, name, &manifest));
    }
    found
}

/// What a library depends on that it must not know.
fn directions(source: &Source, name: &str, manifest: &Table) -> Vec<Finding> {
    let mut rows = ALLOWED.lines().filter_map(|row| row.split_once(':'));
    let Some((_, allowed)) = rows.find(|&(known, _)| known == bare(name)) else {
        let message = format!("crate `{name}` has no place in the direction of dependencies");
        return vec![Finding::new(source, 1, message)];
    };
    let allowed: Vec<&str> = allowed.split_whitespace().collect();
    let message = |dependency: &str| {
        if TOOLS_ONLY.contains(&dependency) {
            Some(format!("`{name}` is a library: `{dependency}` is for `tools` only"))
        } else if is_ours(dependency) && !allowed.contains(&bare(dependency)) {
            Some(format!("`{name}` must not depend on `{dependency}`"))
        } else {
            None
        }
    };
    let named = dependencies(manifest).into_iter();
    let named = named.filter_map(|dependency| Some((message(&dependency)?, dependency)));
    named
        .map(|(message, dependency)| Finding::new(source, line_of(&source.text, &dependency), message))
        .collect()
}

/// The name of a crate as the table has it.
fn bare(name: &str) -> &str {
    name.strip_prefix("remat-").unwrap_or(name)
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

/// The line that has the key, or a value of this name.
fn line_of(text: &str, name: &str) -> usize {
    let is_it = |line: &str| line.contains(name) && line.contains('=') && (name == "name" || !line.starts_with("name"));
    text.lines().position(is_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    /// What is found in the manifest of a crate with these dependencies.
    fn findings(name: &str, tables: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{name}\"\n{tables}");
        let source = source(&format!("passes/{}/Cargo.toml", bare(name)), &manifest);
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_checker_must_not_know_a_solver() {
        let tables = "[dependencies]\nremat-plan.workspace = true\nremat-solve.workspace = true\n";
        let expected = "passes/verify/Cargo.toml:5: `remat-verify` must not depend on `remat-solve`";
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
        let clap = "[dependencies]\nclap.workspace = true\n";
        assert_eq!(findings("remat", clap).len(), 1);
        assert!(findings("remat", "[dependencies]\nserde.workspace = true\n").is_empty());
        let tool = format!("[package]\nname = \"some\"\n{clap}");
        assert!(check(&source("tools/some/Cargo.toml", &tool)).is_empty());
    }

    #[test]
    fn a_library_without_a_place_or_a_broken_manifest_is_found() {
        assert_eq!(findings("remat-new", "").len(), 1);
        assert_eq!(check(&source("passes/some/Cargo.toml", "[package")).len(), 1);
        assert_eq!(check(&source("passes/plan/Cargo.toml", "[package]\n")).len(), 1);
    }

    #[test]
    fn a_crate_is_called_as_its_folder() {
        for (folder, name, line) in [
            ("passes/plan", "remat-solve", Some(2)),
            ("passes/plan", "remat-plan", None),
            ("passes/remat", "remat", None),
            ("tools/remat-opt", "remat-opt", None),
            ("passes/onnxruntime/run", "remat-onnxruntime-run", None),
            ("passes/mlir/plugin", "remat-plugin", None),
        ] {
            let manifest = format!("[package]\nname = \"{name}\"\n");
            let found = check(&source(&format!("{folder}/Cargo.toml"), &manifest));
            assert_eq!(found.first().map(|finding| finding.line), line, "{name}");
        }
        assert!(check(&source("Cargo.toml", "[workspace]\n")).is_empty());
    }
}
