//! The messages of CP-SAT, as much of them as our models, parameters and answers need: those of the crate `cp_sat`, under the same names. Field
//! numbers as in `ortools/sat/{cp_model,sat_parameters}.proto`; fields that are not here are not sent, and passed over where they are received.
//! The tests hold them against that crate.

use prost::{Enumeration, Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IntegerVariableProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) domain: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BoolArgumentProto {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) literals: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinearExpressionProto {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) vars: Vec<i32>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) coeffs: Vec<i64>,
    #[prost(int64, tag = "3")]
    pub(crate) offset: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AllDifferentConstraintProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) exprs: Vec<LinearExpressionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinearConstraintProto {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) vars: Vec<i32>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) coeffs: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) domain: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IntervalConstraintProto {
    #[prost(message, optional, tag = "4")]
    pub(crate) start: Option<LinearExpressionProto>,
    #[prost(message, optional, tag = "5")]
    pub(crate) end: Option<LinearExpressionProto>,
    #[prost(message, optional, tag = "6")]
    pub(crate) size: Option<LinearExpressionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NoOverlap2DConstraintProto {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) x_intervals: Vec<i32>,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) y_intervals: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CumulativeConstraintProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) capacity: Option<LinearExpressionProto>,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) intervals: Vec<i32>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) demands: Vec<LinearExpressionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReservoirConstraintProto {
    #[prost(int64, tag = "1")]
    pub(crate) min_level: i64,
    #[prost(int64, tag = "2")]
    pub(crate) max_level: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) time_exprs: Vec<LinearExpressionProto>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) level_changes: Vec<LinearExpressionProto>,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) active_literals: Vec<i32>,
}

/// What a constraint says.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Constraint {
    #[prost(message, tag = "3")]
    BoolOr(BoolArgumentProto),
    #[prost(message, tag = "26")]
    AtMostOne(BoolArgumentProto),
    #[prost(message, tag = "12")]
    Linear(LinearConstraintProto),
    #[prost(message, tag = "13")]
    AllDiff(AllDifferentConstraintProto),
    #[prost(message, tag = "24")]
    Reservoir(ReservoirConstraintProto),
    #[prost(message, tag = "19")]
    Interval(IntervalConstraintProto),
    #[prost(message, tag = "21")]
    NoOverlap2d(NoOverlap2DConstraintProto),
    #[prost(message, tag = "22")]
    Cumulative(CumulativeConstraintProto),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConstraintProto {
    #[prost(int32, repeated, tag = "2")]
    pub(crate) enforcement_literal: Vec<i32>,
    #[prost(oneof = "Constraint", tags = "3, 26, 12, 13, 24, 19, 21, 22")]
    pub(crate) constraint: Option<Constraint>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CpObjectiveProto {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) vars: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) coeffs: Vec<i64>,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) domain: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialVariableAssignment {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) vars: Vec<i32>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CpModelProto {
    #[prost(message, repeated, tag = "2")]
    pub(crate) variables: Vec<IntegerVariableProto>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) constraints: Vec<ConstraintProto>,
    #[prost(message, optional, tag = "4")]
    pub(crate) objective: Option<CpObjectiveProto>,
    #[prost(message, optional, tag = "6")]
    pub(crate) solution_hint: Option<PartialVariableAssignment>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SatParameters {
    #[prost(int32, optional, tag = "31")]
    pub(crate) random_seed: Option<i32>,
    #[prost(double, optional, tag = "36")]
    pub(crate) max_time_in_seconds: Option<f64>,
    #[prost(int64, optional, tag = "37")]
    pub(crate) max_number_of_conflicts: Option<i64>,
    #[prost(int64, optional, tag = "40")]
    pub(crate) max_memory_in_mb: Option<i64>,
    #[prost(double, optional, tag = "67")]
    pub(crate) max_deterministic_time: Option<f64>,
    #[prost(int32, optional, tag = "90")]
    pub(crate) linearization_level: Option<i32>,
    #[prost(bool, optional, tag = "135")]
    pub(crate) catch_sigint_signal: Option<bool>,
    #[prost(bool, optional, tag = "136")]
    pub(crate) interleave_search: Option<bool>,
    #[prost(int32, optional, tag = "206")]
    pub(crate) num_workers: Option<i32>,
    #[prost(string, repeated, tag = "207")]
    pub(crate) subsolvers: Vec<String>,
}

/// Values of [`CpSolverResponse::status`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enumeration)]
#[repr(i32)]
pub(crate) enum CpSolverStatus {
    Unknown = 0,
    ModelInvalid = 1,
    Feasible = 2,
    Infeasible = 3,
    Optimal = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CpSolverResponse {
    #[prost(enumeration = "CpSolverStatus", tag = "1")]
    pub(crate) status: i32,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) solution: Vec<i64>,
    #[prost(int64, tag = "29")]
    pub(crate) inner_objective_lower_bound: i64,
    #[prost(int64, tag = "11")]
    pub(crate) num_conflicts: i64,
    #[prost(string, tag = "20")]
    pub(crate) solution_info: String,
}

#[cfg(test)]
#[path = "messages_tests.rs"]
pub(crate) mod tests;
