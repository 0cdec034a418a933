//! A trace as a problem for any solver.

use remat_plan::{Accounting, OrderMode, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageRole, TensorId};
use typed_index_collections::TiVec;

use crate::trace::{Event, Trace, TraceOp};

/// The static graph of a trace, named `name`.
///
/// - Constants become external tensors: the session provides them, and they are not counted. [`Trace::constant_bytes`] says what
///   they take; a budget of DTR compares with one that is smaller by as much.
/// - An op with several results stays one op. Results that look into an argument are views; lowering runs those on demand.
/// - What the program still holds on to at its end is kept. DTR may evict such results and compute them again at the end; here they
///   stay from their first run on.
///
/// The order of the calls is the reference order. Durations are nanoseconds. The result is valid, without a budget.
#[must_use]
pub fn problem_of(trace: &Trace, name: &str) -> Problem {
    let mut held: TiVec<TensorId, i64> = TiVec::from(vec![0; trace.tensors.len()]);
    for &event in &trace.events {
        match event {
            Event::Call(op) => trace.ops[op].results.iter().for_each(|&result| held[result] += 1),
            Event::Reference(tensor) => held[tensor] += 1,
            Event::Release(tensor) => held[tensor] -= 1,
            Event::Expire(_) => {}
        }
    }
    let mut storages: TiVec<_, _> = trace
        .storages
        .iter_enumerated()
        .map(|(id, storage)| ProblemStorage {
            root: storage.root,
            bytes: storage.bytes,
            role: if trace.is_constant(id) {
                StorageRole::External
            } else {
                StorageRole::Transient
            },
        })
        .collect();
    for (tensor, &held) in held.iter_enumerated() {
        let storage: &mut ProblemStorage = &mut storages[trace.tensors[tensor].storage];
        if held > 0 && storage.role == StorageRole::Transient {
            storage.role = StorageRole::LiveOut;
        }
    }
    // Constants have no op of their own in a problem, so ids of ops shift.
    let mut id_of = TiVec::from(vec![None; trace.ops.len()]);
    let mut ops: TiVec<_, ProblemOp> = TiVec::new();
    for (id, op) in trace.ops.iter_enumerated().filter(|(_, op)| !op.is_constant) {
        let name = format!("{}_{}", op.name, ops.len());
        id_of[id] = Some(ops.push_and_get_key(problem_op(name, op)));
    }
    let tensor = |(id, tensor): (TensorId, &crate::trace::TraceTensor)| ProblemTensor {
        name: format!("x{}", id.index()),
        storage: tensor.storage,
        producer: id_of[tensor.producer],
    };
    Problem {
        name: name.to_owned(),
        accounting: Accounting::Runtime,
        order: OrderMode::Fixed,
        max_computes: None,
        budget: None,
        paging: None,
        objective: remat_plan::Objective::Time,
        deadline: None,
        anti_dependences: Vec::new(),
        tensors: trace.tensors.iter_enumerated().map(tensor).collect(),
        ops,
        storages,
    }
}

fn problem_op(name: String, op: &TraceOp) -> ProblemOp {
    let mut reads = op.arguments.clone();
    reads.sort_unstable();
    reads.dedup();
    ProblemOp {
        name,
        duration: op.duration,
        energy_pj: 0,
        workspace: op.workspace,
        recomputable: true,
        reads,
        defines: op.results.clone(),
    }
}
