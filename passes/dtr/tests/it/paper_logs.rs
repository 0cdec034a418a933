//! The logs of the DTR paper: the figures of the reference simulator, to the nanosecond, and plans from logs.
//!
//! `reference_sums.tsv` has what the DTR paper's own simulator prints for four of its logs (eager runtime, thrash limit 2, budget =
//! floor of ratio times base peak).

use remat_dtr::{SimulateOptions, SimulateStatus, Staged, Trace, base_peak, problem_of, read_log, simulate};
use remat_solve::{SolveControl, Solver};
use remat_testing::{Need, Trial, trial, workspace};
use remat_verify::replay;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(resnet_recomputes_what_the_reference_recomputes, Need::DtrLogs),
        trial!(unet_recomputes_what_the_reference_recomputes, Need::DtrLogs),
        trial!(densenet_recomputes_what_the_reference_recomputes, Need::DtrLogs),
        trial!(lstm_recomputes_what_the_reference_recomputes, Need::DtrLogs),
        trial!(
            staged_plans_of_the_papers_logs_take_the_time_of_the_simulation,
            Need::DtrLogs
        ),
    ]
}

/// A log of the paper; they belong to its authors and are no part of this repository.
fn paper_log(name: &str) -> Trace {
    let path = workspace().join("../shared/dtr-logs").join(format!("{name}.log.gz"));
    read_log(&std::fs::read(path).unwrap()).expect("the logs of the paper are well formed")
}

const SUMS: &str = include_str!("reference_sums.tsv");

fn status(name: &str) -> SimulateStatus {
    match name {
        "ok" => SimulateStatus::Ok,
        "oom" => SimulateStatus::Oom,
        "thrash" => SimulateStatus::Thrash,
        _ => unreachable!("no other status is in the table"),
    }
}

/// Operators, tensors, base peak, base cost, bytes of constants.
fn check(log: &str, base: (usize, usize, u64, u64, u64)) {
    let trace = paper_log(log);
    let peak = base_peak(&trace);
    let found = (
        trace.operators(),
        trace.tensors(),
        peak,
        trace.base_cost(),
        trace.constant_bytes(),
    );
    assert_eq!(found, base);
    let rows = SUMS.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let mut compared = 0;
    for row in rows.filter(|row| row[0] == log) {
        let ratio: f64 = row[2].parse().expect("a known form");
        let options = SimulateOptions {
            heuristic: row[1].parse().expect("a known form"),
            budget: Some((ratio * peak as f64) as u64),
            ..SimulateOptions::default()
        };
        let found = simulate(&trace, &options);
        assert_eq!(
            (found.status, found.recompute_ns),
            (status(row[3]), row[4].parse().expect("a known form")),
            "{row:?}"
        );
        compared += 1;
    }
    assert!(compared > 20, "only {compared} rows for `{log}`");
}

fn resnet_recomputes_what_the_reference_recomputes() {
    check("resnet32", (509, 696, 10_061_179_152, 291_905_487, 35_584_920));
}

fn unet_recomputes_what_the_reference_recomputes() {
    check("unet", (399, 512, 8_415_764_640, 435_278_292, 93_386_276));
}

fn densenet_recomputes_what_the_reference_recomputes() {
    check("densenet121", (2925, 3652, 11_020_749_360, 355_299_140, 82_830_040));
}

fn lstm_recomputes_what_the_reference_recomputes() {
    check("lstm", (8063, 8319, 5_595_127_736, 769_458_833, 194_424_928));
}

/// On the paper's logs, what is staged takes the time that the simulation takes, as long as nothing that is held to the end was
/// evicted.
fn staged_plans_of_the_papers_logs_take_the_time_of_the_simulation() {
    let log = "resnet32";
    let trace = paper_log(log);
    for tenths in [9, 7, 5, 3] {
        let budget = base_peak(&trace) * tenths / 10;
        let simulated = simulate(
            &trace,
            &SimulateOptions {
                budget: Some(budget),
                ..SimulateOptions::default()
            },
        );
        let mut problem = problem_of(&trace, log);
        problem.budget = Some(budget - trace.constant_bytes());
        let dtr_eq = Staged::ALL.iter().find(|solver| solver.name() == "dtr:eq").unwrap();
        let plan = dtr_eq.solve(&problem, &SolveControl::new()).plan.unwrap();
        let replayed = replay(&problem, &plan).unwrap();
        assert_eq!(
            replayed.recompute_duration, simulated.recompute_ns,
            "{log} at {tenths}/10"
        );
    }
}
