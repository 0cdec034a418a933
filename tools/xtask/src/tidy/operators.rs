//! What passes know of an operator stands in its row of the table: they name no operators.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::workspace::{Finding, Source};

/// Where operators are named, and why; folders end with a slash.
const NAMED: &[(&str, &str)] = &[
    (
        "passes/fission-check/src/",
        "the checker knows operators by itself, apart from what the rules of fission read",
    ),
    (
        "passes/fission/src/pieces.rs",
        "builds the ops that take tiles out of tensors and put them together",
    ),
    (
        "passes/fission/src/rules/reshape.rs",
        "two operators of one rule, one of which lists extents",
    ),
    (
        "passes/onnxruntime/arena/src/paging/kind.rs",
        "the operators that the library has",
    ),
    ("passes/onnxruntime/lower/src/", "builds the nodes that files get"),
    (
        "passes/onnxruntime/sim/src/from_graph.rs",
        "one arm for each kind of control flow",
    ),
    (
        "passes/remat/src/bodies.rs",
        "results of one kind of control flow are memory of their own",
    ),
    (
        "passes/onnxruntime/observe/src/profile.rs",
        "nodes that the runtime takes out when it loads a model",
    ),
    (
        "passes/onnxruntime/predict/src/simulate.rs",
        "nodes that lowering built",
    ),
];

/// The names in ONNX's domains and the runtime's; those of dialects are words of other things, too.
static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let rows = remat_operators::rows().filter(|row| row.domain.is_empty() || row.domain.starts_with("com."));
    rows.map(|row| row.name).filter(|name| !name.is_empty()).collect()
});

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let is_pass = source.path.starts_with("passes/") && source.is_library() && source.is_rust() && !source.is_test();
    if !is_pass || NAMED.iter().any(|(path, _)| source.is_at(path)) {
        return Vec::new();
    }
    let named = source.code().filter_map(|(number, line)| {
        let name = line.split('"').skip(1).step_by(2).find(|text| NAMES.contains(text))?;
        Some(Finding::new(
            source,
            number,
            format!("`{name}` is an operator: state what is known of it as a column of the table (dialect/operators)"),
        ))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    const TEXT: &str = "fn f(op: &str) -> bool {\n    // Not \"Conv\" in comments.\n    op == \"Conv\"\n}\n";

    #[test]
    fn an_operator_that_a_pass_names_is_found() {
        let found = check(&source("passes/plan/src/a.rs", TEXT));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn other_words_and_those_who_build_nodes_pass() {
        assert!(check(&source("passes/plan/src/a.rs", &TEXT.replace("Conv", "conv"))).is_empty());
        assert!(check(&source("passes/onnxruntime/lower/src/a.rs", TEXT)).is_empty());
        assert!(check(&source("dialect/onnx/src/a.rs", TEXT)).is_empty());
        assert!(check(&source("passes/plan/src/a_tests.rs", TEXT)).is_empty());
    }
}
