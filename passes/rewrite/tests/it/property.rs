//! Random graphs under random valid plans: the rewritten graph is valid, takes the memory that the checker says, computes the
//! same outputs, and survives its textual form.

use proptest::prelude::*;
use proptest::sample::Index;
use remat_ir::{Effects, Graph, GraphBuilder, Op, OpSpec, Placement, ResultSpec, TensorId};
use remat_plan::{Accounting, OpId, Plan, Problem, Step, Structure, lower_sequence};
use remat_rewrite::rewrite;

use crate::interpreter::outputs;
use crate::support::{peak, problem, vector};

#[derive(Clone, Debug)]
struct RandomOp {
    /// Operands; `None` where one is left out.
    inputs: Vec<Option<Index>>,
    captures: Vec<Index>,
    /// For each result: its kind, its number of elements, and which operand it looks into if it is a view.
    results: Vec<(u8, u64, Index)>,
    pure: bool,
}

fn random_op() -> impl Strategy<Value = RandomOp> {
    (
        prop::collection::vec(prop::option::weighted(0.9, any::<Index>()), 0..4),
        prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(any::<Index>(), 1..3)],
        prop::collection::vec((0u8..12, 0u64..20, any::<Index>()), 1..4),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(inputs, captures, results, pure)| RandomOp {
            inputs,
            captures,
            results,
            pure,
        })
}

fn random_graph() -> impl Strategy<Value = Graph> {
    let ops = prop::collection::vec(random_op(), 1..10);
    (ops, prop::collection::vec(any::<Index>(), 1..4)).prop_map(|(ops, outputs)| build(&ops, &outputs))
}

fn build(ops: &[RandomOp], outputs: &[Index]) -> Graph {
    let mut builder = GraphBuilder::new("random");
    let mut tensors = vec![
        builder.input("x", vector(3)).unwrap(),
        builder.constant("w", vector(5)).unwrap(),
    ];
    for (id, op) in ops.iter().enumerate() {
        let mut spec = OpSpec::new(format!("op{id}"), format!("Op{}", id % 3));
        let pick = |index: &Index| *index.get(&tensors);
        spec.inputs = op.inputs.iter().map(|input| input.as_ref().map(pick)).collect();
        spec.captures = op.captures.iter().map(pick).collect();
        spec.effects = if op.pure { Effects::Pure } else { Effects::Random };
        let reads: Vec<TensorId> = spec.inputs.iter().flatten().chain(&spec.captures).copied().collect();
        let result = |(position, &(kind, elements, base)): (usize, &(u8, u64, Index))| {
            let placement = match kind {
                0 => return None,
                1 => Placement::Constant,
                2..6 if !reads.is_empty() => Placement::ViewOf(*base.get(&reads)),
                _ => Placement::New,
            };
            let (name, ty) = (format!("t{id}.{position}"), vector(elements));
            Some(ResultSpec { name, ty, placement })
        };
        spec.results = op.results.iter().enumerate().map(result).collect();
        tensors.extend(builder.op(spec).unwrap().1.into_iter().flatten());
    }
    for output in outputs {
        builder.output(*output.get(&tensors));
    }
    let graph = builder.finish();
    assert_eq!(graph.validate(), Ok(()));
    graph
}

/// The reference order with recomputes inserted where they can be lowered, and some frees left out so that duplicates arise.
fn random_plan(problem: &Problem, again: &[(Index, Index)], keep: &[Index]) -> Plan {
    let structure = Structure::of(problem);
    let mut sequence: Vec<OpId> = structure.scheduled().collect();
    let mut plan = lower_sequence(problem, &structure, sequence.iter().copied()).unwrap();
    for (place, which) in again {
        let place = place.index(sequence.len());
        let op = sequence[..=place][which.index(place + 1)];
        let mut longer = sequence.clone();
        longer.insert(place + 1, op);
        let lowered = lower_sequence(problem, &structure, longer.iter().copied());
        if let (true, Ok(lowered)) = (problem.ops[op].recomputable, lowered) {
            (sequence, plan) = (longer, lowered);
        }
    }
    for index in keep {
        let frees: Vec<usize> = (0..plan.steps.len())
            .filter(|&step| matches!(plan.steps[step], Step::Free(_)))
            .collect();
        if !frees.is_empty() {
            plan.steps.remove(*index.get(&frees));
        }
    }
    plan
}

/// Some transfers out and back where the checker allows them.
fn with_pages(problem: &Problem, mut plan: Plan, pages: &[(Index, Index, Index)]) -> Plan {
    for (which, out, back) in pages {
        let storage = which.index(problem.storages.len()).into();
        let mut paged = plan.clone();
        let out = out.index(plan.steps.len() + 1);
        paged.steps.insert(out, Step::PageOut(storage));
        let back = out + 1 + back.index(plan.steps.len() + 1 - out);
        paged.steps.insert(back, Step::PageIn(storage));
        if remat_verify::replay(problem, &paged).is_ok() {
            plan = paged;
        }
    }
    plan
}

/// Bytes that depend on the kind of op alone, so that they can be found again in the rewritten graph.
fn workspace(op: &Op) -> u64 {
    if op.op_type == "Op1" { 17 } else { 0 }
}

proptest! {
    #![proptest_config(remat_testing::cases(512))]

    #[test]
    fn the_rewritten_graph_keeps_peak_and_outputs(
        graph in random_graph(),
        again in prop::collection::vec(any::<(Index, Index)>(), 0..6),
        keep in prop::collection::vec(any::<Index>(), 0..3),
        pages in prop::collection::vec(any::<(Index, Index, Index)>(), 0..8),
    ) {
        let problem = problem(&graph, Accounting::Runtime, workspace);
        let plan = with_pages(&problem, random_plan(&problem, &again, &keep), &pages);
        let replay = remat_verify::replay(&problem, &plan);
        prop_assert!(replay.is_ok(), "{}", replay.unwrap_err());
        let new = rewrite(&graph, &problem, &plan, &|_| false).unwrap();
        prop_assert_eq!(new.validate(), Ok(()));
        prop_assert_eq!(peak(&new, workspace), replay.unwrap().peak);
        prop_assert_eq!(outputs(&new), outputs(&graph));
        let names = |graph: &Graph| graph.outputs.iter().map(|&t| graph.tensors[t].name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(names(&new), names(&graph));
        prop_assert_eq!(Graph::parse(&new.to_string()), Ok(new));
    }

    #[test]
    fn plans_in_paper_accounting_keep_the_outputs_too(
        graph in random_graph(),
        again in prop::collection::vec(any::<(Index, Index)>(), 0..6),
        keep in prop::collection::vec(any::<Index>(), 0..3),
        pages in prop::collection::vec(any::<(Index, Index, Index)>(), 0..8),
    ) {
        let problem = problem(&graph, Accounting::Paper, |_| 0);
        let plan = with_pages(&problem, random_plan(&problem, &again, &keep), &pages);
        prop_assert!(remat_verify::replay(&problem, &plan).is_ok());
        let new = rewrite(&graph, &problem, &plan, &|_| false).unwrap();
        prop_assert_eq!(new.validate(), Ok(()));
        prop_assert_eq!(outputs(&new), outputs(&graph));
    }

    #[test]
    fn any_steps_give_a_valid_graph_or_an_error(
        graph in random_graph(),
        again in prop::collection::vec(any::<(Index, Index)>(), 0..4),
        broken in prop::collection::vec((any::<Index>(), 0u8..6, any::<Index>()), 1..5),
    ) {
        let problem = problem(&graph, Accounting::Runtime, |_| 0);
        let mut plan = random_plan(&problem, &again, &[]);
        for (at, kind, which) in &broken {
            let op = OpId::new(which.index(graph.ops.len()));
            let storage = which.index(graph.storages.len()).into();
            let at = at.index(plan.steps.len());
            match kind {
                0 => plan.steps.insert(at, Step::Compute(op)),
                1 => plan.steps.insert(at, Step::Recompute(op)),
                2 => plan.steps.insert(at, Step::Free(storage)),
                3 => plan.steps.insert(at, Step::PageOut(storage)),
                4 => plan.steps.insert(at, Step::PageIn(storage)),
                _ => plan.steps.swap(0, at),
            }
        }
        let accepted = remat_verify::replay(&problem, &plan).is_ok();
        match rewrite(&graph, &problem, &plan, &|_| false) {
            Ok(new) => {
                prop_assert_eq!(new.validate(), Ok(()));
                prop_assert_eq!(outputs(&new), outputs(&graph));
            }
            Err(error) => prop_assert!(!accepted, "{}", error),
        }
    }
}
