//! What a rewritten file states about itself, so that we notice when another program undid the plan.
//!
//! Simplifiers merge clones with their originals and drop nodes that nothing reads, the order anchors among them: the file still
//! computes the same, and takes the memory of the original. Both kinds of nodes are counted when a file is written, and the counts stand
//! in the model's metadata, which simplifiers keep (seen with onnxsim 0.8.1 and onnxslim 0.1.98; metadata of nodes they drop, names and
//! attributes they keep).

use std::fmt;

use onnx_protobuf::{GraphProto, ModelProto, NodeProto, StringStringEntryProto};
use remat_operators::operator;

use crate::attributes::subgraphs;

/// Key in a copied node's metadata under which stands the name of the node it repeats.
pub const RECOMPUTE_OF: &str = "remat.recompute_of";

/// The attribute of a clone that keeps runtimes from merging it; its value differs from clone to clone.
pub const MARK: &str = "__remat";

/// What is appended to the name of the value that an order anchor reads.
pub const ANCHOR_SUFFIX: &str = "__read";

/// Keys in the model's metadata.
const CLONES: &str = "remat.clones";
const ANCHORS: &str = "remat.anchors";

/// How many nodes of a file only serve the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// Nodes that repeat others.
    pub clones: u64,
    /// Nodes that read a value to fix its place in the order, or to keep it from being fused.
    pub anchors: u64,
}

/// A file that has fewer of these nodes than it states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostMarks {
    /// What the file states.
    pub stated: Marks,
    /// What is in it.
    pub found: Marks,
}

impl fmt::Display for LostMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = |stated: u64, found: u64| stated.saturating_sub(found);
        write!(
            f,
            "{} of {} recomputed nodes and {} of {} order anchors are gone: a simplifier went over the rewritten file, and the memory that \
             was saved is lost; simplify before, never after",
            lost(self.stated.clones, self.found.clones),
            self.stated.clones,
            lost(self.stated.anchors, self.found.anchors),
            self.stated.anchors,
        )
    }
}

impl Marks {
    /// Counts the nodes, those of subgraphs among them.
    #[must_use]
    pub fn found(model: &ModelProto) -> Self {
        let mut found = Self::default();
        found.count(model.graph.get_or_default());
        found
    }

    fn count(&mut self, graph: &GraphProto) {
        for node in &graph.node {
            let is_anchor = is_anchor(node);
            self.anchors += u64::from(is_anchor);
            self.clones += u64::from(!is_anchor && is_clone(node));
            subgraphs(node).for_each(|inner| self.count(inner));
        }
    }

    /// What the model's metadata states; `None` if it states nothing.
    #[must_use]
    pub fn stated(model: &ModelProto) -> Option<Self> {
        let value = |key: &str| {
            let entry = model.metadata_props.iter().find(|entry| entry.key == key)?;
            entry.value.parse::<u64>().ok()
        };
        let (clones, anchors) = (value(CLONES), value(ANCHORS));
        (clones.is_some() || anchors.is_some()).then(|| Self {
            clones: clones.unwrap_or(0),
            anchors: anchors.unwrap_or(0),
        })
    }

    /// Writes the counts into the metadata; a model without such nodes gets no entry.
    pub fn state(model: &mut ModelProto) {
        let found = Self::found(model);
        model
            .metadata_props
            .retain(|entry| entry.key != CLONES && entry.key != ANCHORS);
        if found == Self::default() {
            return;
        }
        for (key, value) in [(CLONES, found.clones), (ANCHORS, found.anchors)] {
            model.metadata_props.push(StringStringEntryProto {
                key: key.to_owned(),
                value: value.to_string(),
                ..StringStringEntryProto::default()
            });
        }
    }
}

impl LostMarks {
    /// How many nodes a model has lost; `None` if none, or if the model states nothing.
    #[must_use]
    pub fn of(model: &ModelProto) -> Option<Self> {
        let (stated, found) = (Marks::stated(model)?, Marks::found(model));
        (found.clones < stated.clones || found.anchors < stated.anchors).then_some(Self { stated, found })
    }
}

/// The name of the node that this one repeats, as its metadata has it.
pub(crate) fn origin(node: &NodeProto) -> Option<&str> {
    let entry = node.metadata_props.iter().find(|entry| entry.key == RECOMPUTE_OF)?;
    Some(&entry.value)
}

/// Whether the node repeats another one: by its metadata, its attribute or its name.
fn is_clone(node: &NodeProto) -> bool {
    origin(node).is_some()
        || node.attribute.iter().any(|attribute| attribute.name == MARK)
        || node.output.iter().any(|output| is_name_of_clone(output))
}

/// `name__remat1`, `name__remat1_2`.
fn is_name_of_clone(name: &str) -> bool {
    name.rsplit_once(MARK).is_some_and(|(_, number)| {
        number.starts_with(|c: char| c.is_ascii_digit()) && number.chars().all(|c| c.is_ascii_digit() || c == '_')
    })
}

/// Whether the node reads a value without looking at an element, under a name of ours.
fn is_anchor(node: &NodeProto) -> bool {
    let is_reader = operator(&node.domain, &node.op_type).measures;
    let is_named = |output: &String| {
        let suffix = output.rsplit_once(ANCHOR_SUFFIX).map(|(_, suffix)| suffix);
        suffix.is_some_and(|suffix| suffix.chars().all(|c| c.is_ascii_digit() || c == '_'))
    };
    is_reader && node.output.iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use remat_testing::onnx::{self, NodeExt};

    use super::*;

    fn node(op_type: &str, output: &str) -> NodeProto {
        onnx::node(op_type, &[], &[output])
    }

    fn model(nodes: Vec<NodeProto>) -> ModelProto {
        onnx::model(onnx::graph(&[], nodes, &[]))
    }

    fn rewritten() -> ModelProto {
        let marked = node("Relu", "b").int(MARK, 0);
        model(vec![
            node("Relu", "a"),
            node("Relu", "a__remat1"),
            node("Relu", "a__remat2_1"),
            marked,
            node("Size", "a__remat1__read"),
            node("Size", "a__read_3"),
            node("Size", "a__remat_size"),
        ])
    }

    #[test]
    fn clones_are_told_by_name_or_attribute_and_anchors_are_none() {
        assert_eq!(Marks::found(&rewritten()), Marks { clones: 3, anchors: 2 });
    }

    #[test]
    fn what_is_stated_is_found_until_nodes_go() {
        let mut model = rewritten();
        assert_eq!((Marks::stated(&model), LostMarks::of(&model)), (None, None));
        Marks::state(&mut model);
        Marks::state(&mut model);
        assert_eq!(model.metadata_props.len(), 2);
        assert_eq!(Marks::stated(&model), Some(Marks::found(&model)));
        assert_eq!(LostMarks::of(&model), None);
        let graph = model.graph.mut_or_insert_default();
        graph.node.retain(|node| node.op_type != "Size");
        graph.node.remove(1);
        let lost = LostMarks::of(&model).expect("nodes are gone");
        let text = lost.to_string();
        assert!(
            text.contains("1 of 3 recomputed nodes and 2 of 2 order anchors are gone"),
            "{text}"
        );
        assert!(text.contains("simplify before, never after"));
    }

    #[test]
    fn a_model_without_such_nodes_states_nothing() {
        let mut plain = model(vec![node("Relu", "a")]);
        Marks::state(&mut plain);
        assert!(plain.metadata_props.is_empty());
    }
}
