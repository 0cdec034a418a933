//! A graph and a problem that other inputs are applied to.

use std::sync::LazyLock;

use remat_ir::Graph;
use remat_plan::Problem;

/// A residual block with a view, its backward pass, and a random op.
const GRAPH: &str = include_str!("../../../test/fuzz/text/residual_step.ir");

/// A case of the plan corpus with a view and a second memory.
const CASE: &str = include_str!("../../../test/plans/valid/a_copy_stays.json");

/// The graph of a small training step.
pub(crate) fn graph() -> &'static Graph {
    static SAMPLE: LazyLock<Graph> = LazyLock::new(|| GRAPH.parse().expect("the sample is a graph"));
    &SAMPLE
}

/// A small problem.
pub(crate) fn problem() -> &'static Problem {
    static SAMPLE: LazyLock<Problem> = LazyLock::new(|| {
        let mut case: serde_json::Value = serde_json::from_str(CASE).expect("the sample is JSON");
        let text = case["problem"].take().to_string();
        Problem::from_json(&text).expect("the sample is a problem")
    });
    &SAMPLE
}
