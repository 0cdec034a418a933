//! Table 1 of the paper: how large the models of the formulations are.
//!
//! The paper states for `n` nodes, `m` edges and `C` intervals per node: Moccasin has `O(C n)` variables over `n (n + 1) / 2` events,
//! Checkmate `O(n² + n m)` 0/1 variables. Beside that stands what is handed to the solvers here, before their presolve.

use remat::checkmate::CheckmateIlp;
use remat::moccasin::Moccasin;
use remat::ortools::{Candidates, Gap, ModelSize};
use remat::plan::Problem;

use crate::table::Table;

const HEADER: &[&str] = &[
    "graph",
    "formulation",
    "nodes",
    "edges",
    "integers",
    "0/1",
    "largest domain",
    "constraints",
    "terms",
];

/// One model.
struct Size {
    formulation: &'static str,
    /// Integers, 0/1, largest domain, constraints, terms; absent where only the order of growth is stated.
    figures: [Option<usize>; 5],
}

/// The rows for one problem under one budget.
pub(super) fn rows(name: &str, problem: &Problem, edges: usize) -> Vec<Vec<String>> {
    let nodes = problem.ops.len();
    let paper = [
        Size {
            formulation: "paper: Moccasin, C = 2",
            figures: [
                Some(2 * nodes),
                Some(2 * nodes),
                Some(nodes * (nodes + 1) / 2),
                None,
                None,
            ],
        },
        Size {
            formulation: "paper: Checkmate",
            figures: [None, Some(nodes * nodes + nodes * edges), Some(2), None, None],
        },
    ];
    let row = |size: Size| {
        let mut row = vec![
            name.to_owned(),
            size.formulation.to_owned(),
            nodes.to_string(),
            edges.to_string(),
        ];
        row.extend(
            size.figures
                .iter()
                .map(|figure| figure.map_or_else(String::new, |figure| figure.to_string())),
        );
        row
    };
    paper.into_iter().chain(own(problem)).map(row).collect()
}

/// The table around the rows of all graphs.
pub(super) fn table(rows: Vec<Vec<String>>) -> Table {
    Table::new(2, HEADER, rows)
}

/// The models of ours.
fn own(problem: &Problem) -> Vec<Size> {
    let moccasin = Moccasin { computes: Some(2) };
    let models = [
        ("`checkmate:ilp`", CheckmateIlp::NEW.model_size(problem)),
        ("`moccasin`, C = 2", moccasin.model_size(problem)),
        (
            "`gap`, recomputes before 1 use",
            Gap::model_size(problem, Candidates::Uses(1)),
        ),
        (
            "`gap`, recomputes before 2 uses",
            Gap::model_size(problem, Candidates::Uses(2)),
        ),
    ];
    let figures = |size: ModelSize| {
        [
            size.integers,
            size.booleans,
            size.largest_domain,
            size.constraints,
            size.terms,
        ]
        .map(Some)
    };
    // A model that is refused for its size has none.
    let sizes = models
        .into_iter()
        .filter_map(|(formulation, size)| Some((formulation, size.ok()?)));
    sizes
        .map(|(formulation, size)| Size {
            formulation,
            figures: figures(size),
        })
        .collect()
}
