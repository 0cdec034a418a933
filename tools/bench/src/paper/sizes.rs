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

/// The rows for one problem under one budget. A figure is absent where the paper states only the order of growth.
pub(super) fn rows(name: &str, problem: &Problem, edges: usize) -> Vec<Vec<String>> {
    let nodes = problem.ops.len();
    let row = |formulation: &str, figures: [Option<usize>; 5]| -> Vec<String> {
        let head = [
            name.to_owned(),
            formulation.to_owned(),
            nodes.to_string(),
            edges.to_string(),
        ];
        let figures = figures.map(|figure| figure.map_or_else(String::new, |figure| figure.to_string()));
        head.into_iter().chain(figures).collect()
    };
    let moccasin = Moccasin { computes: Some(2) };
    let own = [
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
    let (events, pairs) = (nodes * (nodes + 1) / 2, nodes * nodes + nodes * edges);
    let mut rows = vec![
        row(
            "paper: Moccasin, C = 2",
            [Some(2 * nodes), Some(2 * nodes), Some(events), None, None],
        ),
        row("paper: Checkmate", [None, Some(pairs), Some(2), None, None]),
    ];
    rows.extend(own.into_iter().filter_map(|(formulation, size)| {
        // A model that is refused for its size has none.
        let size: ModelSize = size.ok()?;
        let domain = size.largest_domain;
        let figures = [size.integers, size.booleans, domain, size.constraints, size.terms];
        Some(row(formulation, figures.map(Some)))
    }));
    rows
}

/// The table around the rows of all graphs.
pub(super) fn table(rows: Vec<Vec<String>>) -> Table {
    Table::new(2, HEADER, rows)
}
