//! Values for the dimensions that graph inputs leave open.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use remat::ir::Graph;
use serde::{Deserialize, Serialize};

use crate::ort::dims;

/// What is given for all models, and for single ones.
pub(super) struct Choice {
    all: BTreeMap<String, u64>,
    special: BTreeMap<String, BTreeMap<String, u64>>,
    batch: u64,
    other: u64,
}

/// What is given for one model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Rule {
    /// By name.
    pub(super) given: BTreeMap<String, u64>,
    /// For others that look like a batch.
    pub(super) batch: u64,
    /// For all others.
    pub(super) other: u64,
}

impl Choice {
    /// # Errors
    /// If the file for single models cannot be read.
    pub(super) fn new(all: &[(String, u64)], special: Option<&Path>, batch: u64, other: u64) -> anyhow::Result<Self> {
        let read = |path: &Path| -> anyhow::Result<_> {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("`{}` does not hold dimensions", path.display()))
        };
        Ok(Self {
            all: all.iter().cloned().collect(),
            special: special.map(read).transpose()?.unwrap_or_default(),
            batch,
            other,
        })
    }

    /// What is given for the model of this name.
    pub(super) fn rule(&self, model: &str) -> Rule {
        let is_end = |end: &str| {
            model
                .strip_suffix(end)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let special = self.special.iter().filter(|(end, _)| is_end(end));
        let mut given = self.all.clone();
        given.extend(special.flat_map(|(_, dims)| dims.clone()));
        Rule {
            given,
            batch: self.batch,
            other: self.other,
        }
    }
}

impl Rule {
    /// A value for every dimension that the inputs of the graph leave open, and those that were given for others which it has.
    pub(super) fn choose(&self, graph: &Graph) -> BTreeMap<String, u64> {
        let mut chosen = dims::of(graph, &self.given);
        for &input in &graph.inputs {
            for name in dims::open(&graph.tensors[input].ty) {
                let value = if is_batch(name) { self.batch } else { self.other };
                chosen.entry(name.to_owned()).or_insert(value);
            }
        }
        chosen
    }
}

/// Whether the name is one that exporters give to the batch, or that of a first axis without a name.
fn is_batch(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("batch") || matches!(name.as_str(), "n" | "b" | "bs") || name.ends_with("[0]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_for_a_model_comes_before_what_is_given_for_all() {
        let special = BTreeMap::from([("b/model".to_owned(), BTreeMap::from([("seq".to_owned(), 16)]))]);
        let all = BTreeMap::from([("seq".to_owned(), 128), ("heads".to_owned(), 4)]);
        let (batch, other) = (1, 64);
        let choice = Choice {
            all,
            special,
            batch,
            other,
        };
        assert_eq!(choice.rule("a/b/model").given["seq"], 16);
        assert_eq!(choice.rule("a/b/model").given["heads"], 4);
        assert_eq!(choice.rule("a/ab/model").given["seq"], 128);
    }

    #[test]
    fn every_open_dimension_of_an_input_gets_a_value() {
        let path = remat_testing::workspace().join("test/models/features/dynamic_batch.onnx");
        let model = dims::open_model(&path).expect("it is a model");
        let rule = |given: &[(&str, u64)]| Rule {
            given: given.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            batch: 2,
            other: 64,
        };
        assert_eq!(
            rule(&[]).choose(model.graph()),
            BTreeMap::from([("batch".to_owned(), 2)])
        );
        let given = rule(&[("batch", 8), ("absent", 3)]);
        assert_eq!(given.choose(model.graph()), BTreeMap::from([("batch".to_owned(), 8)]));
    }

    #[test]
    fn batches_are_known_by_their_names() {
        assert!(
            ["batch", "Batch_Size", "N", "images[0]"]
                .iter()
                .all(|name| is_batch(name))
        );
        assert!(
            ["sequence", "x[1]", "height", "num_boxes"]
                .iter()
                .all(|name| !is_batch(name))
        );
    }
}
