//! How large a model is.

/// Variables and constraints of a model, as handed to the solver before its presolve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ModelSize {
    /// Integer variables.
    pub integers: usize,
    /// 0/1 variables.
    pub booleans: usize,
    /// The largest number of values that one variable may take.
    pub largest_domain: usize,
    /// Optional intervals, each with its own start, length and end; counted as constraints by CP-SAT, but not below.
    pub intervals: usize,
    /// Linear, 0/1 and scheduling constraints together.
    pub constraints: usize,
    /// Cumulative constraints among them.
    pub cumulatives: usize,
    /// Reservoir constraints among them.
    pub reservoirs: usize,
    /// Coefficients of all linear constraints, demands and level changes.
    pub terms: usize,
}
