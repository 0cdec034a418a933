//! Subgraphs of If, Loop and Scan as models of their own, and a model whose subgraphs have plans.

use remat_cost::{OpCost, OpRecord, PROFILE_FORMAT, ProfileFile, Provenance, analytic, no_bodies};
use remat_ir::{Graph, OpId};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_plan::{BodyPlan, Problem, StorageRole};

use crate::{Error, LoadOptions, Model, ReadError};

/// What a node takes that runs subgraphs with plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyCost {
    /// The node.
    pub node: String,
    /// Bytes on top of operands and results.
    pub bytes: u64,
}

impl Model {
    /// A subgraph of an op of `onnx` as a model; `place` is that in the op's list of bodies, `options` are those that the model was read with.
    ///
    /// What a Loop's subgraph gives is memory of its own. If and Scan hand theirs the memory of their results, which counts around it.
    ///
    /// # Errors
    /// [`ReadError::Onnx`] if there is no such subgraph; those of [`Model::open`].
    pub fn of_body(onnx: &OnnxModel, op: OpId, place: usize, options: &LoadOptions) -> Result<Self, Error> {
        let body = onnx.body(op, place).map_err(ReadError::Onnx)?;
        let own = LoadOptions {
            dims: Default::default(),
            sizes: Default::default(),
            profile: None,
            ..options.clone()
        };
        let is_loop = onnx.graph().ops[op].op_type == "Loop";
        Self::from_onnx_with(body, &own, |graph, problem| {
            if !is_loop {
                leave_out_outputs(graph, problem);
            }
        })
    }

    /// The values of dimensions and the sizes that the model was read with.
    #[must_use]
    pub fn import_options(&self) -> ImportOptions {
        let setup = self.setup();
        ImportOptions {
            open_sizes: false,
            dims: setup.map(|setup| setup.dims.clone()).unwrap_or_default(),
            fixed: setup.map(|setup| setup.fixed_dims.clone()).unwrap_or_default(),
            sizes: setup.map(|setup| setup.sizes.clone()).unwrap_or_default(),
        }
    }

    /// The model as `onnx`, which is this one with subgraphs as `bodies` have them; `costs` say what their nodes take. `options` are those that this
    /// model was read with.
    ///
    /// A node takes longer by what its subgraphs do, by the cost model.
    ///
    /// # Errors
    /// Those of [`Model::open`].
    pub fn with_bodies(
        &self,
        onnx: OnnxModel,
        bodies: Vec<BodyPlan>,
        costs: &[BodyCost],
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let device = options.device()?;
        let after = analytic(onnx.graph(), &device, no_bodies);
        let before = self.graph().map(|graph| analytic(graph, &device, no_bodies));
        let known: &[OpCost] = self.profile().map_or(&[], |profile| profile.ops.as_ref());
        let stated = known.iter().filter(|op| op.provenance != Provenance::Analytic);
        let mut ops: Vec<OpRecord> = stated
            .map(|op| record(&op.node, op.duration_ns, op.workspace_bytes))
            .collect();
        for cost in costs {
            let of = |ops: &[OpCost]| {
                let found = ops.iter().find(|op| op.node == cost.node);
                found.map_or(0, |op| op.duration_ns)
            };
            let modelled = before.as_ref().map_or(0, |before| of(before.ops.as_ref()));
            let added = of(after.ops.as_ref()).saturating_sub(modelled);
            ops.retain(|op| op.node != cost.node);
            ops.push(record(&cost.node, of(known).saturating_add(added), cost.bytes));
        }
        let import = self.import_options();
        let own = LoadOptions {
            dims: import.dims,
            sizes: import.sizes,
            profile: Some(ProfileFile {
                format: PROFILE_FORMAT.to_owned(),
                device: device.name.clone(),
                method: "subgraphs as they are planned".to_owned(),
                date: None,
                run: None,
                ops,
            }),
            ..options.clone()
        };
        Ok(Self::from_onnx(onnx, &own)?.with_bodies_of(self, bodies))
    }
}

fn record(node: &str, duration_ns: u64, workspace_bytes: u64) -> OpRecord {
    OpRecord {
        node: node.to_owned(),
        duration_ns,
        workspace_bytes: Some(workspace_bytes),
        outputs: Vec::new(),
    }
}

/// Leaves out memory that whoever runs the graph has for its outputs.
fn leave_out_outputs(graph: &Graph, problem: &mut Problem) {
    for &output in &graph.outputs {
        problem.storages[graph.tensors[output].storage].role = StorageRole::External;
    }
}
