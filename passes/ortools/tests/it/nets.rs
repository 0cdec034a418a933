//! Small problems: by hand and at random.

use proptest::prelude::*;
use remat_plan::{
    Accounting, OpId, OrderMode, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageRole, TensorId, baseline,
};

/// One op of a problem under construction.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) duration: u64,
    pub(crate) workspace: u64,
    pub(crate) recomputable: bool,
    /// Results of earlier ops, by number; taken modulo how many there are.
    pub(crate) reads: Vec<usize>,
    /// Bytes and role of each result; none at all: a view of the first operand.
    pub(crate) results: Vec<(u64, StorageRole)>,
}

impl Op {
    /// An op with one transient result.
    pub(crate) fn plain(duration: u64, bytes: u64, reads: &[usize]) -> Self {
        let results = vec![(bytes, StorageRole::Transient)];
        Self {
            duration,
            workspace: 0,
            recomputable: true,
            reads: reads.to_vec(),
            results,
        }
    }
}

/// The problem of these ops in fixed order, without budget.
pub(crate) fn problem(ops: &[Op]) -> Problem {
    let mut problem = Problem {
        name: "net".into(),
        accounting: Accounting::Runtime,
        order: OrderMode::Fixed,
        max_computes: Some(2),
        budget: None,
        paging: None,
        objective: remat_plan::Objective::Time,
        deadline: None,
        ops: Vec::new().into(),
        tensors: Vec::new().into(),
        storages: Vec::new().into(),
    };
    for op in ops {
        let id: OpId = problem.ops.next_key();
        let count = problem.tensors.len();
        let mut reads: Vec<TensorId> = op
            .reads
            .iter()
            .filter(|_| count > 0)
            .map(|read| TensorId::from(read % count))
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let mut defines = Vec::new();
        for &(bytes, role) in &op.results {
            let tensor = problem.tensors.next_key();
            let storage = problem.storages.push_and_get_key(ProblemStorage {
                root: tensor,
                bytes,
                role,
            });
            let name = format!("t{}", problem.tensors.len());
            defines.push(problem.tensors.push_and_get_key(ProblemTensor {
                name,
                storage,
                producer: Some(id),
            }));
        }
        if let (true, Some(&base)) = (op.results.is_empty(), reads.first()) {
            reads.truncate(1);
            let storage = problem.tensors[base].storage;
            let name = format!("t{}", problem.tensors.len());
            defines.push(problem.tensors.push_and_get_key(ProblemTensor {
                name,
                storage,
                producer: Some(id),
            }));
        }
        problem.ops.push(ProblemOp {
            name: format!("op{}", id.index()),
            duration: op.duration,
            energy_pj: 0,
            workspace: op.workspace,
            recomputable: op.recomputable,
            reads,
            defines,
        });
    }
    problem.validate().unwrap();
    problem
}

/// Peak of running every op once.
pub(crate) fn baseline_peak(problem: &Problem) -> u64 {
    let unlimited = Problem {
        budget: None,
        ..problem.clone()
    };
    remat_verify::replay(&unlimited, &baseline(problem)).unwrap().peak
}

/// The problem with a budget of so many hundredths of the way from the largest op to the peak of the baseline.
pub(crate) fn with_budget(mut problem: Problem, hundredths: u64) -> Problem {
    let structure = remat_plan::Structure::of(&problem);
    let least = problem.bottleneck(&structure).map_or(0, |bottleneck| bottleneck.bytes);
    let peak = baseline_peak(&problem);
    problem.budget = Some(least + peak.saturating_sub(least) * hundredths / 100);
    problem
}

/// Ops with one transient result each, as in the papers.
pub(crate) fn paper_ops(count: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = (0u64..9, 1u64..9, prop::collection::vec(0usize..8, 1..3));
    prop::collection::vec(
        op.prop_map(|(duration, bytes, reads)| Op::plain(duration, bytes, &reads)),
        3..=count,
    )
}

/// Ops of all kinds: several results, graph outputs, workspace, views, ops that must not run twice. Views cost nothing.
pub(crate) fn any_ops(count: usize) -> impl Strategy<Value = Vec<Op>> {
    let role = prop_oneof![4 => Just(StorageRole::Transient), 1 => Just(StorageRole::Kept)];
    let results = prop_oneof![
        5 => prop::collection::vec((0u64..9, role), 1..3),
        1 => Just(Vec::new()),
    ];
    let reads = prop::collection::vec(0usize..8, 1..3);
    let op = (0u64..9, 0u64..4, prop::bool::weighted(0.85), reads, results);
    let op = op.prop_map(|(duration, workspace, recomputable, reads, results)| {
        let view = results.is_empty();
        let (duration, workspace) = if view { (0, 0) } else { (duration, workspace) };
        Op {
            duration,
            workspace,
            recomputable: recomputable || view,
            reads,
            results,
        }
    });
    prop::collection::vec(op, 3..=count)
}

/// Five results of a chain that are all read again at the end, the last first: keeping all of them is dear.
pub(crate) fn fan() -> Problem {
    let mut ops: Vec<Op> = vec![Op::plain(3, 4, &[])];
    ops.extend((0..4).map(|index| Op::plain(2 + index as u64, 4, &[index])));
    ops.push(Op::plain(1, 1, &[4]));
    ops.extend((0..5).map(|index| Op::plain(1, 1, &[4 - index, 5 + index])));
    problem(&ops)
}
