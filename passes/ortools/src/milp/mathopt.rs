//! The messages of MathOpt, OR-Tools' front end to mixed-integer solvers, as much of them as a program and its answer need. Field
//! numbers as in `ortools/math_opt/{model,sparse_containers,result,solution}.proto`.

use prost::Message;

use super::Program;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparseVector {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) ids: Vec<i64>,
    #[prost(double, repeated, tag = "2")]
    pub(crate) values: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparseMatrix {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) row_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) column_ids: Vec<i64>,
    #[prost(double, repeated, tag = "3")]
    pub(crate) coefficients: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Variables {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) ids: Vec<i64>,
    #[prost(double, repeated, tag = "2")]
    pub(crate) lower_bounds: Vec<f64>,
    #[prost(double, repeated, tag = "3")]
    pub(crate) upper_bounds: Vec<f64>,
    #[prost(bool, repeated, tag = "4")]
    pub(crate) integers: Vec<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Objective {
    #[prost(message, optional, tag = "3")]
    pub(crate) linear_coefficients: Option<SparseVector>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinearConstraints {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) ids: Vec<i64>,
    #[prost(double, repeated, tag = "2")]
    pub(crate) lower_bounds: Vec<f64>,
    #[prost(double, repeated, tag = "3")]
    pub(crate) upper_bounds: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Model {
    #[prost(message, optional, tag = "2")]
    pub(crate) variables: Option<Variables>,
    #[prost(message, optional, tag = "3")]
    pub(crate) objective: Option<Objective>,
    #[prost(message, optional, tag = "4")]
    pub(crate) linear_constraints: Option<LinearConstraints>,
    #[prost(message, optional, tag = "5")]
    pub(crate) linear_constraint_matrix: Option<SparseMatrix>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectiveBounds {
    #[prost(double, tag = "3")]
    pub(crate) dual_bound: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Termination {
    #[prost(int32, tag = "1")]
    pub(crate) reason: i32,
    #[prost(string, tag = "3")]
    pub(crate) detail: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) objective_bounds: Option<ObjectiveBounds>,
}

/// Values of [`Termination::reason`].
pub(crate) const OPTIMAL: i32 = 1;
pub(crate) const INFEASIBLE: i32 = 2;
pub(crate) const INFEASIBLE_OR_UNBOUNDED: i32 = 4;
pub(crate) const NO_SOLUTION_FOUND: i32 = 6;
pub(crate) const FEASIBLE: i32 = 9;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PrimalSolution {
    #[prost(message, optional, tag = "1")]
    pub(crate) variable_values: Option<SparseVector>,
    #[prost(double, tag = "2")]
    pub(crate) objective_value: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Solution {
    #[prost(message, optional, tag = "1")]
    pub(crate) primal_solution: Option<PrimalSolution>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SolveResult {
    #[prost(message, optional, tag = "2")]
    pub(crate) termination: Option<Termination>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) solutions: Vec<Solution>,
}

impl SolveResult {
    /// The first solution, the best, with a value for each column.
    pub(crate) fn best(&self, columns: usize) -> Option<Vec<f64>> {
        let values = self
            .solutions
            .first()?
            .primal_solution
            .as_ref()?
            .variable_values
            .as_ref()?;
        let mut solution = vec![0.0; columns];
        for (&id, &value) in values.ids.iter().zip(&values.values) {
            *solution.get_mut(usize::try_from(id).ok()?)? = value;
        }
        Some(solution)
    }
}

/// The program as a message. Rows may name their columns in any order, but each only once.
pub(crate) fn model(program: &Program) -> Model {
    let ids = |count: usize| (0i64..).take(count).collect::<Vec<i64>>();
    let (columns, rows) = (&program.columns, &program.rows);
    let mut matrix = SparseMatrix::default();
    for row in 0..rows.len() {
        let (from, to) = rows.range(row);
        let mut terms: Vec<(i32, f64)> = (from..to)
            .map(|term| (rows.columns[term], rows.coefficients[term]))
            .collect();
        // MathOpt wants them ascending.
        terms.sort_unstable_by_key(|&(column, _)| column);
        for (column, coefficient) in terms {
            matrix.row_ids.push(i64::try_from(row).unwrap_or(i64::MAX));
            matrix.column_ids.push(i64::from(column));
            matrix.coefficients.push(coefficient);
        }
    }
    Model {
        variables: Some(Variables {
            ids: ids(columns.len()),
            lower_bounds: columns.iter().map(|column| column.lower).collect(),
            upper_bounds: columns.iter().map(|column| column.upper).collect(),
            integers: columns.iter().map(|column| column.integer).collect(),
        }),
        objective: Some(Objective {
            linear_coefficients: Some(SparseVector {
                ids: ids(columns.len()),
                values: columns.iter().map(|column| column.cost).collect(),
            }),
        }),
        linear_constraints: Some(LinearConstraints {
            ids: ids(rows.len()),
            lower_bounds: rows.lower.clone(),
            upper_bounds: rows.upper.clone(),
        }),
        linear_constraint_matrix: Some(matrix),
    }
}
