//! Plans of subgraphs, each beside the node that runs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PlanFile;

/// The plan of one subgraph of a node: of a branch of If, of what Loop and Scan repeat.
///
/// The subgraph is a problem of its own: what it reads from outside and what its node gives it counts as nothing. What the node takes while it runs
/// this subgraph is its workspace in the plan around it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyPlan {
    /// The node.
    pub node: String,
    /// The attribute that holds the subgraph, `then_branch` say.
    pub body: String,
    /// Bytes that the node takes for the subgraph as it came, on top of operands and results.
    pub bytes_before: u64,
    /// Bytes that it takes with the plan.
    pub bytes: u64,
    /// The plan, with those of subgraphs of its own in its setup.
    pub plan: PlanFile,
}
