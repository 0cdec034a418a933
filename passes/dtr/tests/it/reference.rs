//! The figures of the reference simulator, to the nanosecond.
//!
//! `reference_sums.tsv` has what the DTR paper's own simulator prints for four of its logs (eager runtime, thrash limit 2, budget =
//! floor of ratio times base peak).

use remat_dtr::{SimulateOptions, SimulateStatus, base_peak, simulate};

use crate::support::paper_log;

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
    let Some(trace) = paper_log(log) else { return };
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

#[test]
fn resnet_recomputes_what_the_reference_recomputes() {
    check("resnet32", (509, 696, 10_061_179_152, 291_905_487, 35_584_920));
}

#[test]
fn unet_recomputes_what_the_reference_recomputes() {
    check("unet", (399, 512, 8_415_764_640, 435_278_292, 93_386_276));
}

#[test]
fn densenet_recomputes_what_the_reference_recomputes() {
    check("densenet121", (2925, 3652, 11_020_749_360, 355_299_140, 82_830_040));
}

#[test]
fn lstm_recomputes_what_the_reference_recomputes() {
    check("lstm", (8063, 8319, 5_595_127_736, 769_458_833, 194_424_928));
}
