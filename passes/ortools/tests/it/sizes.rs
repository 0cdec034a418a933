//! The sizes of the models are those of the paper's Table 1: with `C` intervals per node, `O(C n)` integer and 0/1 variables over
//! a domain of `n (n + 1) / 2` events; for Checkmate `O(n^2 + n m)` 0/1 variables for `m` edges.

use remat_checkmate::CheckmateIlp;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Gap, ModelSize, Refusal};
use remat_plan::{OrderMode, Problem};

use remat_testing::net::{at_most_twice, paper, with_budget};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(intervals_have_as_many_variables_as_table_1_says),
        trial!(in_free_order_the_domain_is_one_event_for_every_run),
        trial!(more_intervals_than_can_be_numbered_are_refused),
        trial!(a_larger_candidate_set_makes_a_larger_gap_model),
        trial!(stages_have_as_many_variables_as_table_1_says),
    ]
}

/// A chain in which every op also reads the result before the last.
fn ladder(nodes: usize) -> Problem {
    let ops: Vec<_> = (0..nodes)
        .map(|index| (1, 1, Vec::from_iter(index.saturating_sub(2)..index)))
        .collect();
    with_budget(at_most_twice(paper(&ops)), 50)
}

fn intervals_have_as_many_variables_as_table_1_says() {
    for nodes in [4, 10, 25] {
        for computes in [1, 2, 3] {
            let mut problem = ladder(nodes);
            problem.max_computes = Some(computes);
            let edges = 2 * nodes - 3;
            let computes = computes as usize;
            let again = nodes * (computes - 1);
            assert_eq!(
                Moccasin::NEW.model_size(&problem).unwrap(),
                ModelSize {
                    // Start, length and end; activity.
                    integers: 3 * computes * nodes,
                    booleans: computes * nodes,
                    largest_domain: nodes * (nodes + 1) / 2,
                    intervals: computes * nodes,
                    // Length; order and activity of repetitions; memory; one reservoir per edge.
                    constraints: computes * nodes + 2 * again + 1 + edges,
                    cumulatives: 1,
                    reservoirs: edges,
                    terms: 3 * computes * nodes + 3 * again + computes * nodes + 4 * computes * edges,
                },
                "{nodes} nodes, {computes} computes"
            );
        }
    }
}

fn in_free_order_the_domain_is_one_event_for_every_run() {
    let mut problem = ladder(10);
    problem.order = OrderMode::Free;
    let size = Moccasin::NEW.model_size(&problem).unwrap();
    assert_eq!((size.integers, size.booleans, size.largest_domain), (60, 20, 20));
}

fn more_intervals_than_can_be_numbered_are_refused() {
    let apart = paper(&[(1, 1, []), (1, 1, [])]);
    for mut problem in [ladder(10), apart] {
        problem.max_computes = Some(u32::MAX);
        let refusal = Moccasin::NEW.model_size(&problem).unwrap_err();
        assert!(matches!(refusal, Refusal::TooLarge { .. }), "{refusal}");
    }
}

fn a_larger_candidate_set_makes_a_larger_gap_model() {
    let problem = ladder(25);
    let size = |candidates| Gap::model_size(&problem, candidates).unwrap();
    let sizes = [Candidates::Uses(1), Candidates::Uses(2), Candidates::AllStages].map(size);
    assert!(sizes.is_sorted_by_key(|size| size.booleans), "{sizes:?}");
    assert!(sizes[0].booleans < sizes[2].booleans);
    assert!(sizes.iter().all(|size| size.integers == 0 && size.largest_domain == 2));
}

fn stages_have_as_many_variables_as_table_1_says() {
    for nodes in [4, 10, 25] {
        let problem = ladder(nodes);
        // Node `k` has an edge from each of the two before it.
        let edges: Vec<usize> = (0..nodes).flat_map(|node| vec![node; node.min(2)]).collect();
        let size = CheckmateIlp::NEW.model_size(&problem).unwrap();
        let frees: usize = edges.iter().map(|node| nodes - node).sum();
        assert_eq!(size.booleans, nodes * nodes + frees);
        assert_eq!(size.integers, nodes * (nodes + 1) / 2);
    }
}
