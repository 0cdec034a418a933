//! Plans that cannot be applied are errors that say where and why.

use remat_ir::{Effects, GraphError};
use remat_plan::{Accounting, OpId, Plan, Problem, Step, StorageId};
use remat_rewrite::{RewriteError, rewrite};

use crate::support::{example, problem};
use remat_testing::plans::{RECOMPUTING, plan};

fn runtime_problem() -> Problem {
    problem(&example(), Accounting::Runtime, |_| 0)
}

#[test]
fn ids_behind_the_tables_are_errors() {
    let problem = runtime_problem();
    for step in [
        Step::Compute(OpId::new(99)),
        Step::Recompute(OpId::new(99)),
        Step::Free(StorageId::new(99)),
        Step::PageOut(StorageId::new(99)),
        Step::PageIn(StorageId::new(99)),
    ] {
        let plan = Plan { steps: vec![step] };
        let error = rewrite(&example(), &problem, &plan, &|_| false).unwrap_err();
        assert!(
            matches!(error, RewriteError::UnknownId { step: 0, id: 99, .. }),
            "{error}"
        );
    }
}

#[test]
fn recomputing_what_is_not_pure_is_an_error() {
    let mut graph = example();
    graph.ops[OpId::new(0)].effects = Effects::Random;
    let problem = runtime_problem();
    let found = rewrite(&graph, &problem, &plan(&problem, RECOMPUTING), &|_| false).unwrap_err();
    let expected = GraphError::BadRecompute {
        op: "conv__remat1".into(),
    };
    assert_eq!(found, RewriteError::Invalid(vec![expected]));
}

#[test]
fn the_problem_of_another_graph_is_an_error() {
    let problem = runtime_problem();
    let plan = plan(&problem, RECOMPUTING);
    let mut renamed = example();
    renamed.tensors[remat_ir::TensorId::new(3)].name = "other".into();
    let mut longer = example();
    longer.ops.push(longer.ops[OpId::new(0)].clone());
    let messages = [renamed, longer].map(|graph| {
        let error = rewrite(&graph, &problem, &plan, &|_| false).unwrap_err();
        error.to_string()
    });
    insta::assert_snapshot!(messages.join("\n"), @r"
    graph and problem disagree about tensor 3: `other` in the graph, `v` in the problem
    graph and problem disagree about op 5: `conv` in the graph, none in the problem
    ");
}

#[test]
fn a_graph_is_rewritten_once() {
    let problem = runtime_problem();
    let plan = plan(&problem, RECOMPUTING);
    let new = rewrite(&example(), &problem, &plan, &|_| false).unwrap();
    let of_new = crate::support::problem(&new, Accounting::Runtime, |_| 0);
    let error = rewrite(&new, &of_new, &Plan::default(), &|_| false).unwrap_err();
    assert_eq!(error, RewriteError::AlreadyRewritten("dealloc a".into()));
}
