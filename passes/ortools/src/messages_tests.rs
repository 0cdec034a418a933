use cp_sat::builder::{CpModelBuilder, LinearExpr};
use cp_sat::proto;
use remat_testing::{Trial, trial};

use super::*;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_model_is_the_same_in_both),
        trial!(parameters_and_answers_are_the_same_in_both),
        trial!(what_the_builder_builds_is_read),
    ]
}

/// A message of ours as the crate reads it: where a field had another number, it would be passed over, or come out under another name.
fn through<T: cp_sat::prost::Message + Default + std::fmt::Debug>(ours: &(impl Message + std::fmt::Debug)) -> T {
    let bytes = ours.encode_to_vec();
    let theirs = T::decode(bytes.as_slice()).unwrap();
    assert_eq!(theirs.encode_to_vec(), bytes, "{theirs:?}");
    let text = format!("{theirs:?}");
    for field in format!("{ours:?}").split([',', '{', '}', ']']).map(str::trim) {
        assert!(text.contains(field), "{field}: {text}");
    }
    theirs
}

fn expression(offset: i64) -> LinearExpressionProto {
    LinearExpressionProto {
        vars: vec![1, 0],
        coeffs: vec![3, -4],
        offset,
    }
}

/// A model with every message and every field.
fn model() -> CpModelProto {
    let literals = BoolArgumentProto { literals: vec![0, -2] };
    let kinds = [
        Constraint::BoolOr(literals.clone()),
        Constraint::AtMostOne(literals),
        Constraint::Linear(LinearConstraintProto {
            vars: vec![0, 1],
            coeffs: vec![1, -1],
            domain: vec![i64::MIN, 7],
        }),
        Constraint::AllDiff(AllDifferentConstraintProto {
            exprs: vec![expression(0), expression(1)],
        }),
        Constraint::Reservoir(ReservoirConstraintProto {
            min_level: -1,
            max_level: 5,
            time_exprs: vec![expression(2)],
            level_changes: vec![expression(3)],
            active_literals: vec![1],
        }),
        Constraint::Interval(IntervalConstraintProto {
            start: Some(expression(4)),
            end: Some(expression(5)),
            size: Some(expression(6)),
        }),
        Constraint::Cumulative(CumulativeConstraintProto {
            capacity: Some(expression(7)),
            intervals: vec![5],
            demands: vec![expression(8)],
        }),
        Constraint::NoOverlap2d(NoOverlap2DConstraintProto {
            x_intervals: vec![5, 6],
            y_intervals: vec![7, 8],
        }),
    ];
    let constraint = |constraint| ConstraintProto {
        enforcement_literal: vec![1],
        constraint: Some(constraint),
    };
    CpModelProto {
        variables: vec![IntegerVariableProto {
            name: "x".to_owned(),
            domain: vec![0, 1, 5, 9],
        }],
        constraints: kinds.map(constraint).to_vec(),
        objective: Some(CpObjectiveProto {
            vars: vec![0],
            coeffs: vec![2],
            domain: vec![0, 8],
        }),
        solution_hint: Some(PartialVariableAssignment {
            vars: vec![0],
            values: vec![5],
        }),
    }
}

fn a_model_is_the_same_in_both() {
    let ours = model();
    let theirs: proto::CpModelProto = through(&ours);
    assert_eq!(theirs.constraints.len(), ours.constraints.len());
    assert_eq!(CpModelProto::decode(ours.encode_to_vec().as_slice()).unwrap(), ours);
}

fn parameters_and_answers_are_the_same_in_both() {
    through::<proto::SatParameters>(&SatParameters {
        random_seed: Some(1),
        max_time_in_seconds: Some(2.5),
        max_number_of_conflicts: Some(3),
        max_memory_in_mb: Some(4),
        max_deterministic_time: Some(5.5),
        linearization_level: Some(2),
        catch_sigint_signal: Some(false),
        interleave_search: Some(true),
        num_workers: Some(6),
        subsolvers: vec!["max_lp".to_owned()],
    });
    let theirs = proto::CpSolverResponse {
        status: proto::CpSolverStatus::Optimal as i32,
        solution: vec![3, -1],
        inner_objective_lower_bound: 7,
        num_conflicts: 8,
        solution_info: "text".to_owned(),
        ..proto::CpSolverResponse::default()
    };
    let bytes = cp_sat::prost::Message::encode_to_vec(&theirs);
    let ours = CpSolverResponse::decode(bytes.as_slice()).unwrap();
    let expected = CpSolverResponse {
        status: CpSolverStatus::Optimal as i32,
        solution: vec![3, -1],
        inner_objective_lower_bound: 7,
        num_conflicts: 8,
        solution_info: "text".to_owned(),
    };
    assert_eq!(ours, expected);
}

fn what_the_builder_builds_is_read() {
    let mut builder = CpModelBuilder::default();
    let (a, b) = (builder.new_bool_var(), builder.new_bool_var());
    builder.add_or([a, b]);
    builder.add_le(LinearExpr::from(a) + LinearExpr::from(b), 1);
    builder.minimize(LinearExpr::from(a) + (2, b));
    let bytes = cp_sat::prost::Message::encode_to_vec(builder.proto());
    let ours = CpModelProto::decode(bytes.as_slice()).unwrap();
    assert_eq!(ours.variables.len(), 2);
    let [Some(Constraint::BoolOr(clause)), Some(Constraint::Linear(row))] =
        &[0, 1].map(|at: usize| ours.constraints[at].constraint.clone())
    else {
        panic!("{:?}", ours.constraints)
    };
    assert_eq!(
        (clause.literals.as_slice(), row.coeffs.as_slice()),
        (&[0, 1][..], &[1, 1][..])
    );
    assert_eq!(ours.objective.unwrap().coeffs, [1, 2]);
}
