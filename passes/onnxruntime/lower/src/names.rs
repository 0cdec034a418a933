//! Names that nothing in a model has.

use remat_onnx::OnnxModel;
use remat_onnx::proto::ModelProto;
use rustc_hash::FxHashSet;

/// Hands out names.
pub(crate) struct Names {
    taken: FxHashSet<String>,
}

impl Names {
    /// Avoids the names of the model and those that stand in what it was rewritten to.
    pub(crate) fn new(model: &OnnxModel, rewritten: &ModelProto) -> Self {
        let mut taken: FxHashSet<String> = model.reserved_names().into_iter().map(str::to_owned).collect();
        for node in &rewritten.graph.get_or_default().node {
            taken.insert(node.name.clone());
            taken.extend(node.output.iter().cloned());
        }
        Self { taken }
    }

    /// `base`, or the first of `base_1`, `base_2`, … that is free.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        for suffix in 1usize.. {
            if !self.taken.contains(&name) {
                break;
            }
            name = format!("{base}_{suffix}");
        }
        self.taken.insert(name.clone());
        name
    }
}
