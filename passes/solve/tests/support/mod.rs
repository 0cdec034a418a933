//! Random problems with everything a solver has to cope with.

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{
    Accounting, OpId, OrderMode, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageId, StorageRole, Structure,
    TensorId, baseline,
};
use typed_index_collections::TiVec;

/// What an op is, before its operands are chosen among the tensors that exist by then.
#[derive(Clone, Debug)]
pub(crate) struct OpDraw {
    duration: u64,
    workspace: u64,
    recomputable: bool,
    reads: Vec<Index>,
    result: Results,
}

#[derive(Clone, Debug)]
enum Results {
    /// New storages: bytes, and whether they hold graph outputs.
    New(Vec<(u64, bool)>),
    /// A view of the first operand.
    View,
}

/// What may occur in a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Several results, kept storages, workspace, ops that may run only once.
    pub(crate) models: bool,
    /// Views: lazy ones, and such that may not run again.
    pub(crate) views: bool,
    /// Views that may run again only, of no duration.
    pub(crate) free_views: bool,
    /// How far back operands are.
    pub(crate) reach: usize,
}

impl Features {
    pub(crate) const ALL: Self = Self {
        models: true,
        views: true,
        free_views: false,
        reach: 8,
    };
    /// All but what an exhaustive search over scheduled ops does not see.
    pub(crate) const EXACT: Self = Self {
        models: true,
        views: true,
        free_views: true,
        reach: 8,
    };
    /// The setting of the papers: one result per op, nothing else.
    pub(crate) const PAPER: Self = Self {
        models: false,
        views: false,
        free_views: false,
        reach: 8,
    };
}

fn op_draw(features: Features) -> impl Strategy<Value = OpDraw> {
    let weight = |on: bool, weight: u32| if on { weight } else { 1 };
    let results = if features.models {
        prop::collection::vec((0u64..9, prop::bool::weighted(0.15)), 1..4).boxed()
    } else {
        (1u64..9).prop_map(|bytes| vec![(bytes, false)]).boxed()
    };
    let result = if features.views {
        prop_oneof![5 => results.prop_map(Results::New), 1 => Just(Results::View)].boxed()
    } else {
        results.prop_map(Results::New).boxed()
    };
    let workspace = prop_oneof![weight(features.models, 3) => Just(0), u32::from(features.models) => 0u64..6];
    let recomputable = prop::bool::weighted(if features.models { 0.85 } else { 1.0 });
    let reads = prop::collection::vec(any::<Index>(), 1..4);
    (0u64..20, workspace, recomputable, reads, result).prop_map(
        move |(duration, workspace, recomputable, reads, result)| {
            let free = features.free_views && matches!(result, Results::View);
            OpDraw {
                duration: if free { 0 } else { duration },
                workspace: if free { 0 } else { workspace },
                recomputable: free || recomputable,
                reads,
                result,
            }
        },
    )
}

/// Valid problems in fixed order, without a budget.
pub(crate) fn problems(ops: std::ops::Range<usize>, features: Features) -> impl Strategy<Value = Problem> {
    prop::collection::vec(op_draw(features), ops).prop_map(move |draws| build(&draws, features.reach))
}

/// A problem in the setting of the papers: duration, bytes and operands of each op.
pub(crate) fn paper(ops: &[(u64, u64, &[usize])]) -> Problem {
    let op = |(id, &(duration, _, reads)): (usize, &(u64, u64, &[usize]))| ProblemOp {
        name: format!("op{id}"),
        duration,
        energy_pj: 0,
        workspace: 0,
        recomputable: true,
        reads: reads.iter().map(|&read| TensorId::new(read)).collect(),
        defines: vec![TensorId::new(id)],
    };
    let tensor = |id| ProblemTensor {
        name: format!("t{id}"),
        storage: StorageId::new(id),
        producer: Some(OpId::new(id)),
    };
    let storage = |(id, &(_, bytes, _)): (usize, &(u64, u64, &[usize]))| ProblemStorage {
        root: TensorId::new(id),
        bytes,
        role: StorageRole::Transient,
    };
    Problem {
        name: "paper".to_owned(),
        accounting: Accounting::Paper,
        order: OrderMode::Fixed,
        max_computes: None,
        budget: None,
        paging: None,
        objective: remat_plan::Objective::Time,
        deadline: None,
        ops: ops.iter().enumerate().map(op).collect(),
        tensors: (0..ops.len()).map(tensor).collect(),
        storages: ops.iter().enumerate().map(storage).collect(),
    }
}

/// The same problems, each in fixed or in free order.
pub(crate) fn in_either_order(problems: impl Strategy<Value = Problem>) -> impl Strategy<Value = Problem> {
    (problems, any::<bool>()).prop_map(|(problem, free)| if free { in_free_order(problem) } else { problem })
}

/// The problem without its order.
pub(crate) fn in_free_order(problem: Problem) -> Problem {
    Problem {
        order: OrderMode::Free,
        ..problem
    }
}

/// Problems with a budget between what one op needs and the peak of the reference order.
pub(crate) fn budgeted(ops: std::ops::Range<usize>, features: Features) -> impl Strategy<Value = Problem> {
    (problems(ops, features), 0.0..1.0f64).prop_map(|(mut problem, share)| {
        let least = problem
            .bottleneck(&Structure::of(&problem))
            .map_or(0, |worst| worst.bytes);
        let peak = remat_verify::replay(&problem, &baseline(&problem))
            .expect("the baseline is valid")
            .peak;
        let room = peak.saturating_sub(least) as f64;
        problem.budget = Some(least + (share * room) as u64);
        problem
    })
}

fn build(draws: &[OpDraw], reach: usize) -> Problem {
    let input = ProblemTensor {
        name: "input".to_owned(),
        storage: StorageId::new(0),
        producer: None,
    };
    let mut tensors: TiVec<TensorId, ProblemTensor> = TiVec::from(vec![input]);
    let mut storages: TiVec<StorageId, ProblemStorage> = TiVec::from(vec![ProblemStorage {
        root: TensorId::new(0),
        bytes: 7,
        role: StorageRole::External,
    }]);
    let mut ops: TiVec<OpId, ProblemOp> = TiVec::new();
    for (number, draw) in draws.iter().enumerate() {
        let id = OpId::new(number);
        // Recent tensors are read more often, so that chains arise.
        let mut reads: Vec<TensorId> = Vec::new();
        for index in &draw.reads {
            let recent = tensors.len().min(reach);
            reads.push(TensorId::new(tensors.len() - 1 - index.index(recent)));
        }
        let base = reads[0];
        reads.sort_unstable();
        reads.dedup();
        let mut defines = Vec::new();
        let mut define = |storage: StorageId, tensors: &mut TiVec<TensorId, ProblemTensor>| {
            let tensor = ProblemTensor {
                name: format!("t{}", tensors.len()),
                storage,
                producer: Some(id),
            };
            defines.push(tensors.push_and_get_key(tensor));
        };
        match &draw.result {
            Results::View => define(tensors[base].storage, &mut tensors),
            Results::New(results) => {
                for &(bytes, kept) in results {
                    let role = if kept {
                        StorageRole::Kept
                    } else {
                        StorageRole::Transient
                    };
                    let root = tensors.next_key();
                    let storage = storages.push_and_get_key(ProblemStorage { root, bytes, role });
                    define(storage, &mut tensors);
                }
            }
        }
        ops.push(ProblemOp {
            name: format!("op{number}"),
            duration: draw.duration,
            energy_pj: 0,
            workspace: draw.workspace,
            recomputable: draw.recomputable,
            reads,
            defines,
        });
    }
    let problem = Problem {
        name: "random".to_owned(),
        accounting: Accounting::Runtime,
        order: OrderMode::Fixed,
        max_computes: None,
        budget: None,
        paging: None,
        objective: remat_plan::Objective::Time,
        deadline: None,
        ops,
        tensors,
        storages,
    };
    problem.validate().expect("the generator makes valid problems");
    problem
}
