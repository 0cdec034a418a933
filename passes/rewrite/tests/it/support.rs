//! Problems from graphs.

use remat_ir::{ElementType, Graph, GraphBuilder, Op, OpKind, OpSpec, StorageClass, StorageId, TensorId, ValueType};
use remat_plan::{Accounting, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageRole};
use remat_testing::net::{Net, paging};

/// A vector of single-precision numbers.
pub(crate) fn vector(elements: u64) -> ValueType {
    ValueType::tensor(ElementType::Float32, &[elements])
}

/// The problem of a graph: every op takes one unit of time, `workspace` gives the bytes on top.
pub(crate) fn problem(graph: &Graph, accounting: Accounting, workspace: impl Fn(&Op) -> u64) -> Problem {
    let role = |id: StorageId| match graph.storages[id].class {
        StorageClass::Input | StorageClass::Constant => StorageRole::External,
        StorageClass::Intermediate => {
            let returned = graph.outputs.iter().any(|&t| graph.tensors[t].storage == id);
            if returned && accounting == Accounting::Runtime {
                StorageRole::LiveOut
            } else {
                StorageRole::Transient
            }
        }
    };
    let distinct = |op: &Op| {
        let mut reads: Vec<TensorId> = op.reads().collect();
        reads.sort_unstable();
        reads.dedup();
        reads
    };
    let ops = graph.ops.iter().map(|op| ProblemOp {
        name: op.name.clone(),
        duration: 1,
        energy_pj: 0,
        workspace: workspace(op),
        recomputable: op.effects.recomputable(),
        reads: distinct(op),
        defines: op.results().collect(),
    });
    let tensors = graph.tensors.iter().map(|tensor| ProblemTensor {
        name: tensor.name.clone(),
        storage: tensor.storage,
        producer: tensor.producer,
    });
    let storages = graph.storages.iter_enumerated().map(|(id, storage)| ProblemStorage {
        root: storage.root,
        bytes: storage.bytes.unwrap(),
        role: role(id),
    });
    let net = Net(Problem {
        name: graph.name.clone(),
        accounting,
        paging: Some(paging()),
        ops: ops.collect(),
        tensors: tensors.collect(),
        storages: storages.collect(),
        ..Net::new().0
    });
    net.done()
}

/// `conv`: x, w -> a; `flat`: a -> v, a view; `gemm`: v -> b; `relu`: b -> c; `add`: v, c -> y.
pub(crate) fn example() -> Graph {
    let mut builder = GraphBuilder::new("example");
    let x = builder.input("x", vector(16)).unwrap();
    let w = builder.constant("w", vector(4)).unwrap();
    let mut add = |spec: OpSpec| builder.op(spec).unwrap().1[0].unwrap();
    let mut conv = OpSpec::new("conv", "Conv").reads(x).reads(w).defines("a", vector(16));
    conv.inputs.push(None);
    conv.source = Some(7);
    conv.attributes.insert("group".into(), remat_ir::Attribute::Int(1));
    let a = add(conv);
    let v = add(OpSpec::new("flat", "Flatten").reads(a).views("v", vector(16), a));
    let b = add(OpSpec::new("gemm", "Gemm").reads(v).defines("b", vector(32)));
    let c = add(OpSpec::new("relu", "Relu").reads(b).defines("c", vector(16)));
    let y = add(OpSpec::new("add", "Add").reads(v).reads(c).defines("y", vector(16)));
    builder.output(y);
    builder.finish()
}

/// The peak of the storages that the run owns, from the ops of a rewritten graph alone. `workspace` is given the op.
pub(crate) fn peak(graph: &Graph, workspace: impl Fn(&Op) -> u64) -> u64 {
    let owned = |tensor: TensorId| {
        let storage = &graph.storages[graph.tensors[tensor].storage];
        (storage.class == StorageClass::Intermediate && storage.root == tensor).then(|| storage.bytes.unwrap())
    };
    let (mut resident, mut peak) = (0, 0);
    for op in &graph.ops {
        if matches!(op.kind, OpKind::Dealloc | OpKind::PageOut) {
            resident -= op.reads().filter_map(owned).sum::<u64>();
            continue;
        }
        if op.kind == OpKind::PageIn {
            resident += op.reads().filter_map(owned).sum::<u64>();
            peak = peak.max(resident);
            continue;
        }
        resident += op.results().filter_map(owned).sum::<u64>();
        peak = peak.max(resident + workspace(op));
    }
    peak
}
