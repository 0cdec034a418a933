//! Graphs in their textual form, and what is done with graphs of any origin.

use remat_cost::{Device, ProblemBuildError, ProblemOptions, analytic, problem};
use remat_ir::{Graph, OpKind};
use remat_onnxruntime_sim::body_bytes;
use remat_plan::{Plan, Problem, ProblemError};
use remat_rewrite::rewrite;

use crate::judge;

/// Longest text that is looked at.
const MOST_BYTES: usize = 1 << 16;

/// Reads a graph, prints it, plans it if it is not a plan already, and applies the plans.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    if text.len() > MOST_BYTES {
        return false;
    }
    let graph = match text.parse::<Graph>() {
        Ok(graph) => graph,
        Err(error) => {
            assert!(error.line <= text.lines().count() + 1, "{error}");
            return false;
        }
    };
    assert_eq!(graph.validate(), Ok(()));
    assert_eq!(graph.to_string().parse().as_ref(), Ok(&graph));
    assert!(graph.to_dot().starts_with("digraph"));
    let profile = analytic(&graph, &device(), body_bytes);
    match problem(&graph, &profile, &ProblemOptions::default()) {
        Ok(problem) => apply(&graph, &judge::plans(&problem)),
        Err(ProblemBuildError::AlreadyRewritten(_)) => {
            assert!(graph.ops.iter().any(|op| op.kind != OpKind::Compute));
        }
        Err(error) => assert!(
            is_about_sizes(&error),
            "a graph that was read is not a problem: {error}"
        ),
    }
    true
}

/// The device that costs are estimated for.
pub(crate) fn device() -> Device {
    Device::preset("cpu").expect("there is a preset for CPUs")
}

/// Whether a valid graph may fail to become a problem for this reason: sizes that are not known or too large.
pub(crate) fn is_about_sizes(error: &ProblemBuildError) -> bool {
    matches!(
        error,
        ProblemBuildError::UnknownSizes { .. }
            | ProblemBuildError::Overflow(_)
            | ProblemBuildError::Invalid(ProblemError::Overflow(_))
    )
}

/// Every plan can be applied, and what it makes of the graph is valid and readable.
pub(crate) fn apply(graph: &Graph, plans: &[(Problem, Plan)]) {
    for (problem, plan) in plans {
        let rewritten = rewrite(graph, problem, plan, &|_| false);
        let rewritten = rewritten.expect("a plan that the checker accepts can be applied");
        assert_eq!(rewritten.validate(), Ok(()));
        is_printed_and_read(&rewritten);
    }
}

fn is_printed_and_read(graph: &Graph) {
    let printed = graph.to_string();
    let read = printed.parse::<Graph>().expect("what was printed is read");
    assert_eq!(read.to_string(), printed);
    assert_eq!(read.ops.len(), graph.ops.len());
}
