use super::*;

const MIB: u64 = 1 << 20;

const fn growth(before: u64, after: u64) -> Option<BeforeAfter> {
    Some(BeforeAfter {
        before_bytes: before * MIB,
        after_bytes: after * MIB,
    })
}

const GOOD: ArenaOff = ArenaOff {
    saved_bytes: 25 * MIB,
    overhead_percent: 4.0,
    is_measured: true,
    most_percent: Some(5.0),
    growth: growth(60, 41),
};

#[test]
fn a_setting_in_which_the_process_grows_is_not_recommended() {
    assert!(GOOD.is_recommended());
    let larger = ArenaOff {
        growth: growth(60, 156),
        ..GOOD
    };
    assert_eq!((larger.grows(), larger.is_recommended()), (Some(true), false));
    let unknown = ArenaOff { growth: None, ..GOOD };
    assert!(!unknown.is_recommended());
    let alike = ArenaOff {
        growth: growth(60, 62),
        ..GOOD
    };
    assert!(alike.is_recommended());
}

#[test]
fn a_setting_that_costs_more_time_than_allowed_is_not_recommended() {
    let slow = ArenaOff {
        overhead_percent: 5.1,
        ..GOOD
    };
    assert!(slow.is_slow() && !slow.is_recommended());
    let unlimited = ArenaOff {
        most_percent: None,
        ..slow
    };
    assert!(unlimited.is_recommended());
}

#[test]
fn faults_cost_what_the_system_takes_for_fresh_memory() {
    // 100 MiB at 0.25 us per KiB are 25.6 ms.
    let percent = faults_percent(100 * MIB, FRESH_NS_PER_MIB, 100_000_000);
    assert!((percent - 25.6).abs() < 1e-9, "{percent}");
    assert!(faults_percent(0, FRESH_NS_PER_MIB, 1).abs() < 1e-9);
}
