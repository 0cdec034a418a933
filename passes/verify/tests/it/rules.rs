//! Every rule: a plan that breaks it beside the nearest one that keeps it.

use remat_plan::{Objective, OrderMode, Plan, Problem, Step, StorageId, StorageRole};
use remat_verify::{CheckError, Code, MAX_VIOLATIONS, Rejection, check_file, replay};

use remat_testing::net::{self, Net, Place, example, kept, op, storage, transient};
use remat_testing::plans::{PLAIN, RECOMPUTING, file, plan};

/// The codes of a plan's violations, each once; none for a valid plan.
fn codes(problem: &Problem, steps: &str) -> Vec<Code> {
    replay(problem, &plan(problem, steps)).map_or_else(|rejection| rejection.codes(), |_| Vec::new())
}

fn rejection(problem: &Problem, steps: &str) -> Rejection {
    replay(problem, &plan(problem, steps)).unwrap_err()
}

#[track_caller]
fn valid(problem: &Problem, steps: &str) {
    assert_eq!(replay(problem, &plan(problem, steps)).map(|_| ()), Ok(()), "{steps}");
}

#[track_caller]
fn invalid(problem: &Problem, steps: &str, expected: &[Code]) {
    assert_eq!(codes(problem, steps), expected, "{steps}");
}

fn paging(problem: &mut Problem) {
    problem.paging = Some(net::paging());
}

#[test]
fn figures_of_a_valid_plan_are_its_peak_duration_and_memory_at_each_step() {
    let problem = example().done();
    let replay = replay(&problem, &plan(&problem, RECOMPUTING)).unwrap();
    assert_eq!((replay.peak, replay.peak_step), (300, 2));
    assert_eq!(
        (replay.duration, replay.recompute_duration, replay.recomputes),
        (52, 11, 2)
    );
    let memory: Vec<_> = replay.trace.iter().map(|at| (at.during, at.after)).collect();
    let expected = [
        (100, 100),
        (100, 100),
        (300, 300),
        (300, 200),
        (300, 300),
        (300, 100),
        (200, 200),
        (200, 200),
        (300, 300),
        (300, 200),
        (200, 100),
    ];
    assert_eq!(memory, expected);
    assert!(replay.trace.iter().enumerate().all(|(step, at)| at.step == step));
}

#[test]
fn an_empty_plan_is_valid_for_an_empty_problem_only() {
    let empty = Net::new().done();
    let none = replay(&empty, &Plan::default()).unwrap();
    assert_eq!((none.peak, none.duration, none.trace.len()), (0, 0, 0));
    let found = replay(&example().done(), &Plan::default()).unwrap_err();
    assert_eq!(found.codes(), [Code::V004, Code::V011]);
    assert!(found.violations.iter().all(|violation| violation.step.is_none()));
}

#[test]
fn v001_a_second_compute_is_rejected_and_a_recompute_accepted() {
    let problem = example().done();
    valid(&problem, RECOMPUTING);
    invalid(
        &problem,
        &RECOMPUTING.replace("recompute conv", "compute conv"),
        &[Code::V001],
    );
}

#[test]
fn v002_a_recompute_without_compute_is_rejected() {
    let problem = example().done();
    let plain = "recompute conv, compute flat, compute gemm, compute relu, compute add";
    invalid(&problem, plain, &[Code::V002]);
    valid(&problem, &plain.replace("recompute conv", "compute conv"));
}

#[test]
fn v003_reading_what_was_freed_is_rejected_at_the_first_reader_only() {
    let net = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(1))])
        .op("b", 1, &["ta"], &[("tb", transient(1))])
        .op("c", 1, &["ta", "tb"], &[("tc", transient(1))]);
    let problem = net.done();
    let found = rejection(&problem, "compute a, free ta, compute b, compute c");
    let steps: Vec<_> = found
        .violations
        .iter()
        .map(|violation| (violation.code, violation.step))
        .collect();
    assert_eq!(steps, [(Code::V003, Some(2))]);
    valid(&problem, "compute a, compute b, compute c, free ta");
    let twice = rejection(
        &problem,
        "compute a, free ta, compute b, recompute a, free ta, compute c",
    );
    assert_eq!(twice.violations.len(), 2, "lost again after it came back: {twice}");
}

#[test]
fn v003_reading_what_was_not_computed_yet_is_rejected() {
    let problem = example().done();
    invalid(
        &problem,
        "compute conv, compute flat, compute relu, compute gemm, compute add",
        &[Code::V003],
    );
}

#[test]
fn v003_reading_a_view_of_an_earlier_instance_is_rejected() {
    let problem = example().done();
    let stale = RECOMPUTING.replace("recompute flat, ", "");
    invalid(&problem, &stale, &[Code::V003]);
    let message = &rejection(&problem, &stale).violations[0].message;
    insta::assert_snapshot!(message, @"step 7 runs `add`, which reads `v`, but `a` was computed anew and the view `flat` was not run again");
}

#[test]
fn v003_a_view_of_a_freed_storage_is_rejected_and_its_readers_are_not_blamed() {
    let problem = example().done();
    let found = rejection(
        &problem,
        "compute conv, free a, compute flat, compute gemm, compute relu, compute add",
    );
    let steps: Vec<_> = found
        .violations
        .iter()
        .map(|violation| (violation.code, violation.step))
        .collect();
    assert_eq!(steps, [(Code::V003, Some(2))]);
}

#[test]
fn v003_chains_of_views_have_to_be_run_again_from_the_base() {
    let problem = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(8))])
        .op("v", 0, &["ta"], &[("tv", Place::View("ta"))])
        .op("w", 0, &["tv"], &[("tw", Place::View("tv"))])
        .op("z", 1, &["tw"], &[("tz", kept(8))])
        .done();
    let head = "compute a, compute v, compute w, free ta, recompute a";
    valid(&problem, &format!("{head}, recompute v, recompute w, compute z"));
    invalid(&problem, &format!("{head}, recompute w, compute z"), &[Code::V003]);
    invalid(&problem, &format!("{head}, recompute v, compute z"), &[Code::V003]);
}

#[test]
fn v003_a_constant_is_there_once_its_op_ran_and_stays() {
    let external = Place::New(StorageRole::External, 1 << 40);
    let problem = Net::new()
        .op("constant", 0, &[], &[("k", external)])
        .op("cast", 0, &["k"], &[("kv", Place::View("k"))])
        .op("use", 1, &["k", "kv"], &[("y", kept(8))])
        .with(|problem| problem.budget = Some(8))
        .done();
    valid(&problem, "compute constant, compute cast, compute use");
    valid(
        &problem,
        "compute constant, compute cast, recompute constant, compute use",
    );
    invalid(&problem, "compute cast, compute constant, compute use", &[Code::V003]);
    invalid(&problem, "compute constant, compute use, compute cast", &[Code::V003]);
}

#[test]
fn v004_an_op_whose_result_nobody_reads_must_run_too() {
    let problem = example().op("unread", 1, &["x"], &[("u", transient(1))]).done();
    invalid(&problem, PLAIN, &[Code::V004]);
    valid(&problem, &format!("{PLAIN}, compute unread, free u"));
}

#[test]
fn v005_freeing_twice_or_before_the_compute_is_rejected() {
    let problem = example().done();
    invalid(&problem, &format!("{PLAIN}, free a"), &[Code::V005]);
    invalid(&problem, &format!("free a, {PLAIN}"), &[Code::V005]);
}

#[test]
fn v006_a_budget_of_the_peak_is_kept_and_one_byte_less_is_exceeded() {
    let of = |budget| example().with(|problem| problem.budget = Some(budget)).done();
    valid(&of(300), RECOMPUTING);
    valid(&of(400), PLAIN);
    let found = rejection(&of(399), PLAIN);
    insta::assert_snapshot!(found, @r"
    plan rejected with 1 violation
      V006: budget exceeded at step 3 (`relu`): need 400 bytes, budget 399 bytes
    ");
    invalid(&of(299), RECOMPUTING, &[Code::V006]);
}

#[test]
fn v006_workspace_counts_during_its_step_only() {
    let with = |budget| {
        let net = example().with(|problem| {
            let gemm = op(problem, "gemm");
            problem.ops[gemm].workspace = 5 << 20;
            problem.budget = Some(budget);
        });
        net.done()
    };
    valid(&with((5 << 20) + 300), PLAIN);
    let found = rejection(&with((5 << 20) + 299), PLAIN);
    insta::assert_snapshot!(found, @r"
    plan rejected with 1 violation
      V006: budget exceeded at step 2 (`gemm`): need 5.0 MiB (5243180 bytes), budget 5.0 MiB (5243179 bytes)
    ");
}

#[test]
fn v006_the_twin_of_a_resident_result_counts_during_the_recompute_only() {
    let net = || {
        Net::new()
            .input("x")
            .op("split", 1, &["x"], &[("p", transient(10)), ("q", transient(20))])
            .op("f", 1, &["p", "q"], &[("r", transient(1))])
            .op("g", 1, &["p", "q", "r"], &[("y", kept(1))])
    };
    // `q` is lost and computed again beside a duplicate of `p`: p + r + duplicate of p + q.
    let steps = "compute split, compute f, free q, recompute split, compute g";
    valid(&net().with(|problem| problem.budget = Some(41)).done(), steps);
    invalid(
        &net().with(|problem| problem.budget = Some(40)).done(),
        steps,
        &[Code::V006],
    );
    let problem = net().done();
    let replay = replay(&problem, &plan(&problem, steps)).unwrap();
    assert_eq!((replay.trace[3].during, replay.trace[3].after), (41, 31));
}

#[test]
fn views_of_a_resident_storage_survive_a_twin() {
    let problem = example().done();
    valid(
        &problem,
        "compute conv, compute flat, recompute conv, compute gemm, compute relu, compute add",
    );
}

#[test]
fn v007_only_recomputable_ops_run_again() {
    let fixed = |problem: &mut Problem| {
        let conv = op(problem, "conv");
        problem.ops[conv].recomputable = false;
    };
    let problem = example().with(fixed).done();
    valid(&problem, PLAIN);
    invalid(&problem, RECOMPUTING, &[Code::V007]);
}

#[test]
fn v008_all_runs_count_but_views_are_exempt() {
    let of = |most| example().with(|problem| problem.max_computes = Some(most)).done();
    valid(&of(2), RECOMPUTING);
    invalid(&of(1), RECOMPUTING, &[Code::V008]);
    valid(
        &of(1),
        &PLAIN.replace("compute gemm", "recompute flat, recompute flat, compute gemm"),
    );
}

#[test]
fn v009_graph_outputs_inputs_and_constants_stay() {
    let problem = example().done();
    invalid(&problem, &format!("{PLAIN}, free y"), &[Code::V009]);
    invalid(&problem, &format!("free x, {PLAIN}"), &[Code::V009]);
    let paged = example().with(paging).done();
    invalid(&paged, &format!("{PLAIN}, page_out y"), &[Code::V009]);
}

#[test]
fn v010_first_runs_of_ops_that_create_storage_follow_the_order_where_it_is_fixed() {
    let of = |order| {
        Net::new()
            .input("x")
            .op("a", 1, &["x"], &[("ta", transient(1))])
            .op("v", 0, &["ta"], &[("tv", Place::View("ta"))])
            .op("b", 1, &["x"], &[("tb", transient(1))])
            .op("c", 1, &["tv", "tb"], &[("tc", kept(1))])
            .with(|problem| problem.order = order)
            .done()
    };
    let swapped = "compute b, compute a, compute v, compute c";
    valid(&of(OrderMode::Free), swapped);
    invalid(&of(OrderMode::Fixed), swapped, &[Code::V010]);
    valid(&of(OrderMode::Fixed), "compute a, compute b, compute v, compute c");
    valid(
        &of(OrderMode::Fixed),
        "compute a, compute b, recompute a, compute v, compute c",
    );
}

#[test]
fn v011_a_graph_output_must_be_there_at_the_end() {
    let problem = example().done();
    let without = RECOMPUTING.replace("compute add, ", "");
    invalid(&problem, &without, &[Code::V004, Code::V011]);
    let transient_output = example()
        .with(|problem| {
            let y = storage(problem, "y");
            problem.storages[y].role = StorageRole::Transient;
        })
        .done();
    invalid(&transient_output, &without, &[Code::V004]);
}

#[test]
fn v012_paging_needs_a_price() {
    let steps = "compute conv, compute flat, compute gemm, page_out a, compute relu, free b, page_in a, compute add";
    invalid(&example().done(), steps, &[Code::V012]);
    valid(&example().with(paging).done(), steps);
}

#[test]
fn paging_costs_time_rounded_up_and_energy_and_keeps_views() {
    let problem = example()
        .with(|problem| {
            let mut paging = net::paging();
            (paging.page_out.bytes_per_s, paging.page_in.bytes_per_s) = (99_000_000_000, 60_000_000_000);
            (paging.page_out.latency_ns, paging.page_in.energy_pj) = (3, 11);
            (paging.page_out.energy_pj_per_byte, paging.page_in.energy_pj_per_byte) = (2, 5);
            problem.paging = Some(paging);
            problem.ops.last_mut().unwrap().energy_pj = 1_000;
        })
        .done();
    let steps = "compute conv, compute flat, compute gemm, page_out a, compute relu, free b, page_in a, compute add";
    let replay = replay(&problem, &plan(&problem, steps)).unwrap();
    // 100 bytes: 100 / 99 and 100 / 60 ns, rounded up.
    assert_eq!((replay.paging_duration, replay.duration), (3 + 2 + 2, 41 + 7));
    assert_eq!((replay.paging_energy, replay.energy), (200 + 511, 200 + 511 + 1_000));
    assert_eq!((replay.trace[6].during, replay.trace[6].after), (200, 200));
    assert_eq!((replay.peak, replay.second_peak), (300, 100));
    assert_eq!(replay.objective(Objective::Energy), 1_711);
}

/// Runs of 10 that make 100 bytes each, and one that reads them all; out 1 ns per byte, in 2.
fn dma() -> Net {
    let make = |net: Net, name: &str| net.op(name, 10, &["x"], &[(&format!("t{name}"), transient(100))]);
    let net = ["a", "b", "c"].into_iter().fold(Net::new().input("x"), make);
    net.op("sum", 10, &["ta", "tb", "tc"], &[("y", transient(100))])
        .with(|problem| {
            let mut paging = net::paging();
            paging.mode = remat_plan::PagingMode::Dma;
            problem.paging = Some(paging);
        })
}

#[track_caller]
fn spans(problem: &Problem, steps: &str) -> (Vec<(u64, u64)>, u64, u64) {
    let replay = replay(problem, &plan(problem, steps)).unwrap();
    let spans = replay.times.iter().map(|span| (span.start, span.end)).collect();
    (spans, replay.duration, replay.peak)
}

#[test]
fn with_dma_transfers_overlap_runs_and_a_storage_takes_memory_until_it_has_left() {
    let problem = dma().done();
    let steps = "compute a, page_out ta, compute b, compute c, page_in ta, compute sum";
    let (times, duration, peak) = spans(&problem, steps);
    // The page-out ends at 110, and the page-in waits for the bus until then.
    assert_eq!(times, [(0, 10), (10, 110), (10, 20), (20, 30), (110, 310), (310, 320)]);
    assert_eq!((duration, peak), (320, 400));
    let mut sync = problem;
    sync.paging.as_mut().unwrap().mode = remat_plan::PagingMode::Sync;
    let (times, duration, _) = spans(&sync, steps);
    assert_eq!(
        times,
        [(0, 10), (10, 110), (110, 120), (120, 130), (130, 330), (330, 340)]
    );
    assert_eq!(duration, 340);
}

#[test]
fn with_dma_a_run_waits_for_memory_until_a_storage_has_left_and_no_longer() {
    let steps = "compute a, page_out ta, compute b, compute c";
    let of = |budget| {
        let net = dma().with(|problem| {
            problem.budget = Some(budget);
            problem.ops.pop();
            problem.tensors.pop();
            problem.storages.pop();
        });
        net.done()
    };
    let (times, duration, peak) = spans(&of(200), steps);
    assert_eq!(times, [(0, 10), (10, 110), (10, 20), (110, 120)]);
    assert_eq!((duration, peak), (120, 200));
    let (times, duration, peak) = spans(&of(300), steps);
    assert_eq!(times[3], (20, 30));
    assert_eq!((duration, peak), (110, 300));
    invalid(&of(199), steps, &[Code::V006]);
}

#[test]
fn a_copy_stays_where_the_storage_is_paged_out_again_and_moves_nothing_then() {
    let problem = example().with(paging).done();
    let steps = "compute conv, page_out a, page_in a, compute flat, compute gemm, page_out a, compute relu, free b, \
                 page_in a, compute add";
    let twice = replay(&problem, &plan(&problem, steps)).unwrap();
    assert_eq!(twice.paging_duration, 100 + 200 + 200);
    let again = steps.replace("page_in a, compute flat", "recompute conv, compute flat");
    let recomputed = replay(&problem, &plan(&problem, &again)).unwrap();
    assert_eq!((recomputed.paging_duration, recomputed.second_peak), (100 + 200, 100));
    // Freed in between, the copy is gone.
    let freed = steps.replace(
        "page_in a, compute flat",
        "page_in a, free a, recompute conv, compute flat",
    );
    assert_eq!(
        replay(&problem, &plan(&problem, &freed)).unwrap().paging_duration,
        100 + 200 + 100 + 200
    );
}

#[test]
fn a_storage_on_its_way_in_is_waited_for_before_it_leaves() {
    let problem = dma().done();
    let steps = "compute a, compute b, compute c, compute sum, page_out ta, page_in ta, free ta, free tb";
    let (times, duration, _) = spans(&problem, steps);
    assert_eq!(times[4..], [(40, 140), (140, 340), (40, 340), (340, 340)]);
    assert_eq!(duration, 340);
}

#[test]
fn v006_a_transfer_that_begins_while_nothing_runs_is_held_to_the_budget_itself() {
    let steps = "compute a, page_out ta, compute b, compute c, page_in ta, compute sum";
    let figures = |budget| {
        let problem = dma().with(|problem| {
            problem.budget = Some(budget);
            problem.storages.last_mut().unwrap().bytes = 0;
        });
        replay(&problem.done(), &plan(&dma().done(), steps)).map(|replay| replay.peak)
    };
    assert_eq!(figures(300), Ok(300));
    let rejection = figures(299).unwrap_err();
    let steps: Vec<_> = rejection.violations.iter().map(|violation| violation.step).collect();
    assert_eq!((rejection.codes(), steps), (vec![Code::V006], vec![Some(4), Some(5)]));
}

#[test]
fn v018_what_lies_in_the_second_memory_fits_its_capacity() {
    let of = |capacity| {
        let net = dma().with(|problem| problem.paging.as_mut().unwrap().capacity = Some(capacity));
        net.done()
    };
    let both = "compute a, compute b, page_out ta, page_out tb, compute c, page_in ta, page_in tb, compute sum";
    valid(&of(200), both);
    invalid(&of(199), both, &[Code::V018]);
    // The way back makes room.
    let in_turn = "compute a, page_out ta, page_in ta, compute b, page_out tb, compute c, page_in tb, compute sum";
    valid(&of(100), in_turn);
}

#[test]
fn v019_the_deadline_holds_for_runs_and_transfers() {
    let with = |deadline| dma().with(|problem| problem.deadline = Some(deadline)).done();
    let steps = "compute a, page_out ta, compute b, compute c, page_in ta, compute sum";
    valid(&with(320), steps);
    invalid(&with(319), steps, &[Code::V019]);
    let trailing = "compute a, compute b, compute c, compute sum, page_out ta";
    valid(&with(140), trailing);
    invalid(&with(139), trailing, &[Code::V019]);
}

#[test]
fn v020_a_claimed_energy_must_be_the_replayed_one() {
    let problem = example()
        .with(|problem| {
            problem.ops.first_mut().unwrap().energy_pj = 7;
            problem.objective = Objective::Energy;
        })
        .done();
    let mut file = file(&problem, &plan(&problem, RECOMPUTING), 300, 52);
    assert!(check_file(&problem, &file).is_ok());
    file.energy_pj = Some(14);
    assert!(check_file(&problem, &file).is_ok());
    file.energy_pj = Some(7);
    let Err(CheckError::Rejected(rejection)) = check_file(&problem, &file) else {
        panic!("accepted");
    };
    assert_eq!(rejection.codes(), [Code::V020]);
}

#[test]
fn v006_a_storage_that_is_paged_in_counts() {
    let problem = |budget| {
        Net::new()
            .input("x")
            .op("a", 1, &["x"], &[("ta", transient(6))])
            .op("b", 1, &["x"], &[("tb", transient(6))])
            .with(paging)
            .with(|problem| problem.budget = Some(budget))
            .done()
    };
    let steps = "compute a, page_out ta, compute b, page_in ta";
    valid(&problem(12), steps);
    let found = rejection(&problem(11), steps);
    assert_eq!((found.codes(), found.violations[0].step), (vec![Code::V006], Some(3)));
}

#[test]
fn v013_only_the_resident_moves_out_and_only_the_moved_comes_back() {
    let problem = example().with(paging).done();
    invalid(&problem, &format!("{PLAIN}, page_out a"), &[Code::V013]);
    invalid(&problem, &format!("{PLAIN}, page_in a"), &[Code::V013]);
    let computed_anew =
        "compute conv, page_out a, recompute conv, page_in a, compute flat, compute gemm, compute relu, compute add";
    invalid(&problem, computed_anew, &[Code::V013]);
    valid(&problem, &computed_anew.replace("page_in a, ", ""));
    invalid(
        &problem,
        &PLAIN.replace("compute gemm", "page_out a, free a, page_in a, compute gemm"),
        &[Code::V005],
    );
}

#[test]
fn v014_v015_claims_must_be_the_replayed_figures() {
    let problem = example().done();
    let plan = plan(&problem, RECOMPUTING);
    let codes = |file| match check_file(&problem, &file) {
        Ok(_) => Vec::new(),
        Err(CheckError::Rejected(rejection)) => rejection.codes(),
        Err(CheckError::File(error)) => panic!("{error}"),
    };
    let right = file(&problem, &plan, 300, 52);
    assert_eq!(codes(right.clone()), []);
    assert_eq!(codes(file(&problem, &plan, 301, 52)), [Code::V014]);
    assert_eq!(codes(file(&problem, &plan, 300, 51)), [Code::V015]);
    let baseline = remat_plan::PlanFile {
        baseline_duration: 42,
        ..right.clone()
    };
    assert_eq!(codes(baseline), [Code::V015]);
    let over = remat_plan::PlanFile {
        budget_bytes: Some(299),
        ..right
    };
    assert_eq!(codes(over), [Code::V006]);
}

#[test]
fn claims_are_not_judged_where_the_replay_had_to_assume_something() {
    let problem = example().done();
    let stale = plan(&problem, &RECOMPUTING.replace("recompute flat, ", ""));
    let error = check_file(&problem, &file(&problem, &stale, 0, 0)).unwrap_err();
    assert!(matches!(error, CheckError::Rejected(rejection) if rejection.codes() == [Code::V003]));
}

#[test]
fn v016_a_duration_that_overflows_is_rejected_and_the_largest_one_is_not() {
    let of = |duration| {
        Net::new()
            .input("x")
            .op("a", duration, &["x"], &[("ta", transient(1))])
            .done()
    };
    let thrice = "compute a, recompute a, recompute a";
    valid(&of(u64::MAX / 3), thrice);
    invalid(&of(u64::MAX / 3 + 1), thrice, &[Code::V016]);
}

#[test]
fn v016_a_transfer_that_overflows_is_rejected() {
    let of = |bytes_per_s| {
        let net = example().with(|problem| {
            let a = storage(problem, "a");
            problem.storages[a].bytes = 1 << 60;
            let mut paging = net::paging();
            paging.page_out.bytes_per_s = bytes_per_s;
            paging.page_in.bytes_per_s = u64::MAX;
            problem.paging = Some(paging);
        });
        net.0
    };
    let steps = "compute conv, compute flat, compute gemm, page_out a, compute relu, page_in a, compute add";
    valid(&of(u64::MAX), steps);
    invalid(&of(1), steps, &[Code::V016]);
}

#[test]
fn v016_memory_that_overflows_in_a_problem_that_was_never_validated_is_rejected() {
    let net = example().with(|problem| {
        for storage in &mut problem.storages {
            storage.bytes = u64::MAX / 2;
        }
    });
    invalid(&net.0, PLAIN, &[Code::V016]);
}

#[test]
fn v017_ids_behind_the_tables_are_rejected() {
    let problem = example().done();
    for step in [
        Step::Compute(problem.ops.next_key()),
        Step::Recompute(problem.ops.next_key()),
        Step::Free(problem.storages.next_key()),
        Step::PageOut(StorageId::new(1000)),
        Step::PageIn(StorageId::new(1000)),
    ] {
        let mut plan = plan(&problem, PLAIN);
        plan.steps.push(step);
        let found = replay(&problem, &plan).unwrap_err();
        assert_eq!(found.codes(), [Code::V017], "{step:?}");
    }
}

#[test]
fn v017_a_file_with_a_name_of_another_model_is_rejected_and_one_without_name_is_no_plan() {
    let problem = example().done();
    let right = file(&problem, &plan(&problem, RECOMPUTING), 300, 52);
    let mut other = right.clone();
    other.steps[4].node = Some("relu_1".into());
    insta::assert_snapshot!(check_file(&problem, &other).unwrap_err(), @r"
    plan rejected with 1 violation
      V017: step 4: there is no node `relu_1`
    ");
    let mut nameless = right;
    nameless.steps[4].node = None;
    assert!(matches!(check_file(&problem, &nameless), Err(CheckError::File(_))));
}

#[test]
fn violations_are_counted_beyond_the_number_that_is_kept() {
    let problem = example().done();
    let frees = vec!["free a"; MAX_VIOLATIONS + 5].join(", ");
    let found = rejection(&problem, &format!("{PLAIN}, {frees}"));
    assert_eq!((found.violations.len(), found.suppressed), (MAX_VIOLATIONS, 5));
    assert!(found.to_string().ends_with("\n  and 5 more"));
}

#[test]
fn a_rejection_tells_everything_at_once() {
    let problem = example()
        .with(|problem| {
            problem.order = OrderMode::Fixed;
            problem.max_computes = Some(1);
            problem.budget = Some(150);
            let relu = op(problem, "relu");
            problem.ops[relu].recomputable = false;
        })
        .op("left_out", 1, &["x"], &[("z", kept(1))])
        .done();
    let steps = "compute conv, free a, free a, compute flat, compute gemm, page_out b, compute relu, compute relu, \
                 recompute add, free y, free x, page_in c, page_out b";
    insta::assert_snapshot!(rejection(&problem, steps), @r"
    plan rejected with 19 violations
      V005: step 2 frees `a`, which is freed already
      V003: step 3 runs `flat`, which reads `a`, but it was freed
      V006: budget exceeded at step 4 (`gemm`): need 200 bytes, budget 150 bytes
      V012: step 5 pages `b` out, but the problem allows no paging
      V003: step 6 runs `relu`, which reads `b`, but it is paged out
      V001: step 7 computes `relu`, which ran before: it should recompute it
      V007: step 7 runs `relu` again, which is not recomputable
      V008: step 7 brings the runs of `relu` to 2, at most 1 are allowed
      V006: budget exceeded at step 7 (`relu`): need 200 bytes, budget 150 bytes
      V002: step 8 recomputes `add`, which did not run before: it should compute it
      V006: budget exceeded at step 8 (`add`): need 200 bytes, budget 150 bytes
      V009: step 9 frees `y`, which holds a graph output
      V009: step 10 frees `x`, which belongs to the caller or the session
      V012: step 11 pages `c` in, but the problem allows no paging
      V013: step 11 pages in `c`, which is not paged out
      V012: step 12 pages `b` out, but the problem allows no paging
      V013: step 12 pages out `b`, which is not resident
      V004: `left_out` is never computed
      V011: `z` holds a graph output, but is not resident at the end
    ");
}
