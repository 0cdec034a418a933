//! Plans of subgraphs, in words and as records.

use remat::Model;
use remat::plan::{BodyPlan, StepKind};
use remat_files::shown;
use schemars::JsonSchema;
use serde::Serialize;

use crate::units;

/// A subgraph with a plan of its own.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BodyRecord {
    /// The node and the attribute that holds the subgraph, as `NODE/ATTRIBUTE`, behind those around it.
    name: String,
    /// Bytes that the node takes for it without the plan, on top of operands and results.
    bytes_before: u64,
    /// Bytes that it takes with the plan.
    bytes: u64,
    /// How many runs of ops the plan adds to one run of the subgraph.
    recomputes: usize,
    /// How many runs of ops that makes.
    runs: usize,
}

impl BodyRecord {
    /// Those of plans and of the plans inside them, each before what is inside it.
    pub(crate) fn all(plans: &[BodyPlan]) -> Vec<Self> {
        let mut records = Vec::new();
        list(plans, "", &mut records);
        records
    }
}

fn list(plans: &[BodyPlan], around: &str, records: &mut Vec<BodyRecord>) {
    for plan in plans {
        let name = format!("{around}{}/{}", plan.node, plan.body);
        let count = |kind: StepKind| plan.plan.steps.iter().filter(|step| step.op == kind).count();
        let recomputes = count(StepKind::Recompute);
        let before_those = format!("{name}/");
        records.push(BodyRecord {
            name,
            bytes_before: plan.bytes_before,
            bytes: plan.bytes,
            recomputes,
            runs: count(StepKind::Compute) + recomputes,
        });
        list(&plan.plan.bodies, &before_those, records);
    }
}

/// The names of nodes of a model that run subgraphs.
pub(crate) fn nodes(model: &Model) -> Vec<&str> {
    let ops = model.graph().into_iter().flat_map(|graph| &graph.ops);
    ops.filter(|op| !op.bodies.is_empty())
        .map(|op| op.name.as_str())
        .collect()
}

/// A line for each subgraph with a plan.
pub(crate) fn lines(records: &[BodyRecord]) -> Vec<String> {
    let line = |record: &BodyRecord| {
        format!(
            "`{}`: {} -> {}, {} among {}",
            shown(&record.name),
            units::bytes(record.bytes_before),
            units::bytes(record.bytes),
            units::count(record.recomputes, "recompute"),
            units::count(record.runs, "run"),
        )
    };
    records.iter().map(line).collect()
}
