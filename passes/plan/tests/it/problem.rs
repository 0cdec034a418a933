//! Problems: read what was written, refuse what breaks a rule.

use remat_plan::{OpId, Problem, ProblemError, StorageId, TensorId};

use crate::net::{Net, example, op, storage, tensor, transient};

fn error(change: impl FnOnce(&mut Problem)) -> ProblemError {
    Problem::from_json(&example().with(change).0.to_json()).unwrap_err()
}

#[test]
fn a_problem_is_read_back_with_and_without_limits() {
    let limited = example().with(|problem| {
        problem.budget = Some(300);
        problem.max_computes = Some(2);
        problem.paging = Some(remat_plan::Paging {
            out_ns_per_mib: 3,
            in_ns_per_mib: 4,
        });
    });
    for problem in [example().done(), limited.done(), Net::new().done()] {
        assert_eq!(Problem::from_json(&problem.to_json()), Ok(problem));
    }
}

#[test]
fn the_digest_follows_every_field() {
    let problem = example().done();
    assert_eq!(problem.digest(), example().done().digest());
    let changes: [fn(&mut Problem); 4] = [
        |problem| problem.budget = Some(300),
        |problem| problem.max_computes = Some(2),
        |problem| problem.ops[OpId::new(0)].duration += 1,
        |problem| problem.storages[StorageId::new(1)].bytes += 1,
    ];
    for change in changes {
        assert_ne!(problem.digest(), example().with(change).done().digest());
    }
}

#[test]
fn ids_behind_their_tables_are_refused() {
    for (what, error) in [
        (
            "tensor",
            error(|problem| problem.ops[OpId::new(0)].reads.push(TensorId::new(99))),
        ),
        (
            "tensor",
            error(|problem| problem.ops[OpId::new(0)].defines.push(TensorId::new(99))),
        ),
        (
            "storage",
            error(|problem| problem.tensors[TensorId::new(0)].storage = StorageId::new(99)),
        ),
        (
            "op",
            error(|problem| problem.tensors[TensorId::new(0)].producer = Some(OpId::new(99))),
        ),
        (
            "tensor",
            error(|problem| problem.storages[StorageId::new(0)].root = TensorId::new(99)),
        ),
    ] {
        let expected = matches!(error, ProblemError::IdOutOfRange { what: found, id: 99, .. } if found == what);
        assert!(expected, "{error}");
    }
}

#[test]
fn names_that_stand_twice_are_refused() {
    let ops = error(|problem| problem.ops[OpId::new(1)].name = "conv".into());
    let tensors = error(|problem| problem.tensors[TensorId::new(1)].name = "x".into());
    assert_eq!(ops, ProblemError::DuplicateName("conv".into()));
    assert_eq!(tensors, ProblemError::DuplicateName("x".into()));
}

#[test]
fn ops_out_of_topological_order_are_refused_and_so_are_cycles() {
    let not_topological = |op: &str, tensor: &str| ProblemError::NotTopological {
        op: op.into(),
        tensor: tensor.into(),
    };
    let backwards = error(|problem| {
        let (conv, y) = (op(problem, "conv"), tensor(problem, "y"));
        problem.ops[conv].reads.push(y);
    });
    assert_eq!(backwards, not_topological("conv", "y"));
    let itself = error(|problem| {
        let (conv, a) = (op(problem, "conv"), tensor(problem, "a"));
        problem.ops[conv].reads.push(a);
    });
    assert_eq!(itself, not_topological("conv", "a"));
}

#[test]
fn producers_that_do_not_agree_are_refused() {
    let a = || ProblemError::WrongProducer("a".into());
    assert_eq!(error(|problem| problem.tensors[TensorId::new(1)].producer = None), a());
    assert_eq!(error(|problem| problem.ops[OpId::new(0)].defines.clear()), a());
    let twice = error(|problem| problem.ops[OpId::new(4)].defines.push(TensorId::new(1)));
    assert_eq!(twice, a());
}

#[test]
fn a_root_in_another_storage_is_refused() {
    let wrong = error(|problem| {
        let (a, b) = (storage(problem, "a"), tensor(problem, "b"));
        problem.storages[a].root = b;
    });
    assert_eq!(wrong, ProblemError::WrongRoot(1));
}

#[test]
fn sums_of_63_bits_are_accepted_and_larger_ones_refused() {
    let of = |bytes, duration| {
        let net = Net::new().op("a", duration, &[], &[("ta", transient(bytes))]);
        net.with(|problem| problem.ops[OpId::new(0)].workspace = 1).0
    };
    let largest = i64::MAX.cast_unsigned();
    assert_eq!(of(largest - 1, largest).validate(), Ok(()));
    assert_eq!(of(largest, 0).validate(), Err(ProblemError::Overflow("sizes")));
    assert_eq!(of(u64::MAX, 0).validate(), Err(ProblemError::Overflow("sizes")));
    assert_eq!(of(0, largest + 1).validate(), Err(ProblemError::Overflow("durations")));
}

#[test]
fn what_is_no_problem_is_refused() {
    for text in ["", "{}", "[]", r#"{"name": "x"}"#] {
        assert!(matches!(Problem::from_json(text), Err(ProblemError::Json(_))), "{text}");
    }
}

/// Written by hand: `v` claims to live in what `late` creates afterwards. The baseline of such a problem could not be lowered.
#[test]
fn a_view_before_the_memory_it_looks_into_is_rejected() {
    let text = r#"{"name": "odd", "accounting": "runtime", "order": "fixed",
        "ops": [{"name": "early", "duration": 1, "reads": [], "defines": [0]},
                {"name": "late", "duration": 1, "reads": [], "defines": [1]},
                {"name": "use", "duration": 1, "reads": [0, 1], "defines": []}],
        "tensors": [{"name": "v", "storage": 0, "producer": 0}, {"name": "t", "storage": 0, "producer": 1}],
        "storages": [{"root": 1, "bytes": 8, "role": "transient"}]}"#;
    let error = Problem::from_json(text).unwrap_err();
    assert_eq!(error, ProblemError::ViewBeforeBase("v".into()));
}
