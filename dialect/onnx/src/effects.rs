//! What running a node does besides computing its outputs.
//!
//! Only pure nodes may be recomputed, so the table of operators errs on the side of caution: whatever is not known counts as stateful.

use onnx_protobuf::{GraphProto, NodeProto};
use remat_ir::Effects;
use remat_operators::{Effect, operator};
use rustc_hash::FxHashSet;

use crate::attributes::{attribute, int, subgraphs};
use crate::opsets::{Opsets, domain};
use crate::tensor::small_values;

/// Values of a graph that are known to be the constant false.
#[derive(Debug, Default)]
pub(crate) struct Known<'m> {
    falsehoods: FxHashSet<&'m str>,
}

impl<'m> Known<'m> {
    /// The outputs of `Constant` nodes.
    pub(crate) fn of_nodes(nodes: &'m [NodeProto]) -> Self {
        let constants = nodes
            .iter()
            .filter(|n| n.op_type == "Constant" && domain(&n.domain).is_empty());
        let falsehoods = constants
            .filter(|n| {
                attribute(n, "value")
                    .and_then(|a| a.t.as_ref())
                    .is_some_and(|t| small_values(t, None) == Some(vec![0]))
            })
            .filter_map(|n| n.output.first())
            .map(String::as_str)
            .collect();
        Self { falsehoods }
    }

    /// The outputs of `Constant` nodes and the initializers that a caller cannot override.
    pub(crate) fn of_graph(graph: &'m GraphProto) -> Self {
        let mut known = Self::of_nodes(&graph.node);
        let inputs: FxHashSet<&str> = graph.input.iter().map(|v| v.name.as_str()).collect();
        let fixed = graph.initializer.iter().filter(|t| !inputs.contains(t.name.as_str()));
        known.falsehoods.extend(
            fixed
                .filter(|t| small_values(t, None) == Some(vec![0]))
                .map(|t| t.name.as_str()),
        );
        known
    }
}

/// The effects of a node that calls no function of the model.
pub(crate) fn of_operator(node: &NodeProto, opsets: &Opsets, known: &Known<'_>) -> Effects {
    match operator(&node.domain, &node.op_type).effects {
        Effect::ControlFlow => Effects::ControlFlow,
        Effect::Random => Effects::Random,
        Effect::RandomInTraining if drops(node, opsets, known) => Effects::Random,
        Effect::StatefulInTraining if trains(node, opsets) => Effects::Stateful,
        _ if subgraphs(node).next().is_some() => Effects::ControlFlow,
        Effect::Pure | Effect::RandomInTraining | Effect::StatefulInTraining => Effects::Pure,
        Effect::Stateful | Effect::Declared | Effect::DeclaredOrPure => Effects::Stateful,
    }
}

/// Whether a `Dropout` may drop: before opset 7 unless `is_test` is set, never in 7 to 11, from 12 on if its third input
/// is there and not known to be false.
fn drops(node: &NodeProto, opsets: &Opsets, known: &Known<'_>) -> bool {
    match opsets.get("").copied().unwrap_or(1) {
        ..=6 => int(node, "is_test").unwrap_or(0) == 0,
        7..=11 => false,
        _ => node
            .input
            .get(2)
            .is_some_and(|mode| !mode.is_empty() && !known.falsehoods.contains(mode.as_str())),
    }
}

/// Whether a `BatchNormalization` updates running statistics. ONNX Runtime aliases the updated statistics to its operands 3
/// and 4 unless they are graph outputs: what is read there changes, be it an initializer, and each run changes it again.
/// Before opset 7 unless `is_test` is set, in 7 to 13 if it has more results than the first, from 14 on as `training_mode`
/// says. Source: the kernel's `Alias(3, 1)` and `Alias(4, 2)` in `onnxruntime/core/providers/cpu/nn/batch_norm.cc`.
fn trains(node: &NodeProto, opsets: &Opsets) -> bool {
    match opsets.get("").copied().unwrap_or(1) {
        ..=6 => int(node, "is_test").unwrap_or(0) == 0,
        7..=13 => node.output.iter().skip(1).any(|output| !output.is_empty()),
        _ => int(node, "training_mode").unwrap_or(0) != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remat_testing::onnx::{self, NodeExt};

    fn node(domain: &str, op: &str, inputs: &[&str]) -> NodeProto {
        onnx::node(op, inputs, &[]).domain(domain)
    }

    fn effects(node: &NodeProto, opset: u64) -> Effects {
        let known = Known {
            falsehoods: ["never"].into_iter().collect(),
        };
        of_operator(node, &Opsets::from([(String::new(), opset)]), &known)
    }

    #[test]
    fn only_operators_of_known_domains_are_pure() {
        assert_eq!(effects(&node("", "Conv", &[]), 20), Effects::Pure);
        assert_eq!(effects(&node("ai.onnx", "RandomUniform", &[]), 20), Effects::Random);
        assert_eq!(effects(&node("com.microsoft", "FusedConv", &[]), 20), Effects::Pure);
        assert_eq!(effects(&node("com.microsoft", "BiasDropout", &[]), 20), Effects::Random);
        assert_eq!(effects(&node("my.domain", "Conv", &[]), 20), Effects::Stateful);
        assert_eq!(effects(&node("", "Loop", &[]), 20), Effects::ControlFlow);
    }

    #[test]
    fn batch_normalization_is_stateful_only_where_it_trains() {
        let with_outputs = |outputs: &[&str]| onnx::node("BatchNormalization", &["x", "s", "b", "m", "v"], outputs);
        assert_eq!(effects(&with_outputs(&["y"]), 6), Effects::Stateful);
        assert_eq!(effects(&with_outputs(&["y", "", ""]), 9), Effects::Pure);
        assert_eq!(effects(&with_outputs(&["y", "m2", "v2"]), 9), Effects::Stateful);
        assert_eq!(effects(&with_outputs(&["y"]), 15), Effects::Pure);
        let training = with_outputs(&["y", "m2", "v2"]).int("training_mode", 1);
        assert_eq!(effects(&training, 15), Effects::Stateful);
    }

    #[test]
    fn dropout_is_random_only_where_it_can_drop() {
        assert_eq!(effects(&node("", "Dropout", &["x"]), 6), Effects::Random);
        assert_eq!(effects(&node("", "Dropout", &["x"]), 10), Effects::Pure);
        assert_eq!(effects(&node("", "Dropout", &["x", "r"]), 13), Effects::Pure);
        assert_eq!(effects(&node("", "Dropout", &["x", "r", "never"]), 13), Effects::Pure);
        assert_eq!(effects(&node("", "Dropout", &["x", "r", "mode"]), 13), Effects::Random);
    }
}
