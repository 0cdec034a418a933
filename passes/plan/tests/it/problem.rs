//! Problems: read what was written, refuse what breaks a rule.

use remat_plan::{AntiDependence, OpId, Problem, ProblemError, StorageId, StorageRole, TensorId};

use remat_testing::net::{Net, example, op, storage, tensor, transient};

fn pairs(ids: &[(usize, usize)]) -> Vec<AntiDependence> {
    let pair = |&(before, after): &(usize, usize)| AntiDependence {
        before: OpId::new(before),
        after: OpId::new(after),
    };
    ids.iter().map(pair).collect()
}

fn error(change: impl FnOnce(&mut Problem)) -> ProblemError {
    Problem::from_json(&example().with(change).0.to_json()).unwrap_err()
}

#[test]
fn a_problem_is_read_back_with_and_without_limits() {
    let limited = example().with(|problem| {
        problem.budget = Some(300);
        problem.max_computes = Some(2);
        problem.paging = Some(remat_testing::net::paging());
    });
    let bound = example().never_after("conv", "gemm").never_after("conv", "add");
    for problem in [example().done(), limited.done(), Net::new().done(), bound.done()] {
        assert_eq!(Problem::from_json(&problem.to_json()), Ok(problem));
    }
}

#[test]
fn the_digest_follows_every_field() {
    let problem = example().done();
    assert_eq!(problem.digest(), example().done().digest());
    let changes: [fn(&mut Problem); 9] = [
        |problem| problem.budget = Some(300),
        |problem| problem.max_computes = Some(2),
        |problem| problem.ops[OpId::new(0)].duration += 1,
        |problem| problem.storages[StorageId::new(1)].bytes += 1,
        |problem| problem.ops[OpId::new(0)].energy_pj += 1,
        |problem| problem.deadline = Some(300),
        |problem| problem.objective = remat_plan::Objective::Energy,
        |problem| problem.paging = Some(remat_testing::net::paging()),
        |problem| problem.anti_dependences = pairs(&[(0, 2)]),
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
fn anti_dependences_follow_the_reference_order_and_are_stated_once() {
    let (before, after) = ("gemm".to_owned(), "conv".to_owned());
    assert_eq!(
        error(|problem| problem.anti_dependences = pairs(&[(2, 0)])),
        ProblemError::AntiDependenceAgainstOrder { before, after }
    );
    let itself = error(|problem| problem.anti_dependences = pairs(&[(2, 2)]));
    assert_eq!(
        itself.to_string(),
        "op `gemm` is never to run after `gemm`, but does not stand before it in the reference order"
    );
    let twice = error(|problem| problem.anti_dependences = pairs(&[(0, 2), (1, 2), (0, 2)]));
    assert_eq!(
        twice.to_string(),
        "that op `conv` never runs after `gemm` is stated twice"
    );
    let outside = error(|problem| problem.anti_dependences = pairs(&[(0, 99)]));
    assert_eq!(
        outside.to_string(),
        "anti-dependence 0 refers to op 99, but there are only 5"
    );
}

#[test]
fn a_problem_without_anti_dependences_is_written_as_before() {
    assert!(!example().done().to_json().contains("anti_dependences"));
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
fn a_view_before_the_memory_it_looks_into_is_refused() {
    let text = r#"{"name": "odd", "accounting": "runtime", "order": "fixed",
        "ops": [{"name": "early", "duration": 1, "reads": [], "defines": [0]},
                {"name": "late", "duration": 1, "reads": [], "defines": [1]},
                {"name": "use", "duration": 1, "reads": [0, 1], "defines": []}],
        "tensors": [{"name": "v", "storage": 0, "producer": 0}, {"name": "t", "storage": 0, "producer": 1}],
        "storages": [{"root": 1, "bytes": 8, "role": "transient"}]}"#;
    let error = Problem::from_json(text).unwrap_err();
    assert_eq!(error, stranger("early", "v", "t"));
}

fn stranger(op: &str, tensor: &str, root: &str) -> ProblemError {
    ProblemError::ViewOfStranger {
        op: op.into(),
        tensor: tensor.into(),
        root: root.into(),
    }
}

/// A tracer that numbers storages by address takes a new buffer for an old one that was freed: `flat` then looks into memory that it
/// does not read. Such a problem made the search panic.
#[test]
fn a_view_of_memory_that_its_op_does_not_read_is_refused() {
    let moved = error(|problem| {
        let (v, x) = (tensor(problem, "v"), storage(problem, "x"));
        problem.tensors[v].storage = x;
    });
    assert_eq!(moved, stranger("flat", "v", "x"));
}

#[test]
fn a_tensor_that_no_op_defines_lies_in_external_memory() {
    let transient = error(|problem| {
        let x = storage(problem, "x");
        problem.storages[x].role = StorageRole::Transient;
    });
    assert_eq!(transient, ProblemError::NotExternal("x".into()));
    let view = error(|problem| {
        let (flat, v) = (op(problem, "flat"), tensor(problem, "v"));
        problem.ops[flat].defines.clear();
        problem.tensors[v].producer = None;
    });
    let expected = ProblemError::ViewWithoutProducer {
        tensor: "v".into(),
        root: "a".into(),
        creator: "conv".into(),
    };
    assert_eq!(view, expected);
}

#[test]
fn what_is_read_twice_is_refused() {
    let twice = error(|problem| {
        let (conv, x) = (op(problem, "conv"), tensor(problem, "x"));
        problem.ops[conv].reads = vec![x, x];
    });
    let (op, tensor) = ("conv".into(), "x".into());
    assert_eq!(twice, ProblemError::RepeatedRead { op, tensor });
}

#[test]
fn a_limit_of_no_computes_is_refused() {
    assert_eq!(
        error(|problem| problem.max_computes = Some(0)),
        ProblemError::NoComputes
    );
}

#[test]
fn fields_that_a_problem_does_not_have_are_refused_with_their_place() {
    let text = example().done().to_json();
    for (field, misspelt) in [
        ("\"recomputable\"", "\"recomputeable\""),
        ("\"producer\"", "\"maker\""),
        ("\"role\"", "\"kind\""),
        ("\"order\"", "\"ordering\""),
    ] {
        let error = Problem::from_json(&text.replacen(field, misspelt, 1))
            .unwrap_err()
            .to_string();
        let named = misspelt.trim_matches('"');
        assert!(
            error.contains(&format!("unknown field `{named}`")) && error.contains("line"),
            "{error}"
        );
    }
}

#[test]
fn a_second_memory_needs_a_bus_that_moves_something_and_times_and_energies_that_fit() {
    let with = |change: fn(&mut remat_plan::Paging)| {
        let mut paging = remat_testing::net::paging();
        change(&mut paging);
        example().with(|problem| problem.paging = Some(paging)).0.validate()
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(
        with(|paging| paging.page_in.bytes_per_s = 0),
        Err(ProblemError::NoBandwidth)
    );
    let slow = with(|paging| paging.page_out.latency_ns = u64::MAX / 8);
    assert_eq!(slow, Err(ProblemError::Overflow("transfer times")));
    let hungry = with(|paging| paging.page_in.energy_pj_per_byte = u64::MAX / 8);
    assert_eq!(hungry, Err(ProblemError::Overflow("transfer energies")));
}

#[test]
fn a_problem_without_second_memory_is_written_as_before() {
    let text = example().done().to_json();
    assert!(
        ["paging", "objective", "deadline", "energy"]
            .iter()
            .all(|word| !text.contains(word))
    );
}

#[test]
fn a_second_memory_in_other_words_is_no_problem() {
    let text = example()
        .done()
        .to_json()
        .replacen('{', r#"{"paging": {"out_ns_per_mib": 1, "in_ns_per_mib": 1},"#, 1);
    assert!(matches!(Problem::from_json(&text), Err(ProblemError::Json(_))));
}
