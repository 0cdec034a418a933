use super::*;

const MIB: u64 = 1 << 20;

fn peaks(first: u64, later: Option<u64>) -> Measured {
    Measured {
        first_run: Some(first),
        later_runs: later,
        ..Measured::default()
    }
}

#[test]
fn a_region_more_is_a_reason_to_reject_and_tables_of_the_runtime_are_none() {
    let before = peaks(31 * MIB, Some(31 * MIB));
    let why = |after: Measured| Some(after.higher_with_arena(&before, Basis::Measured)?.to_string());
    assert_eq!(why(peaks(31 * MIB + 90_000, Some(15 * MIB))), None);
    let first = why(peaks(32 * MIB, Some(15 * MIB))).unwrap();
    assert!(first.contains("first run"), "{first}");
    let later = why(peaks(16 * MIB, Some(33 * MIB))).unwrap();
    assert!(later.contains("later runs"), "{later}");
    assert_eq!(why(peaks(16 * MIB, None)), None, "what is not known is no reason");
}

#[test]
fn one_lower_peak_is_a_gain_and_tables_of_the_runtime_are_none() {
    let before = peaks(31 * MIB, Some(31 * MIB));
    let is_lower = |after: Measured| after.is_lower(&before);
    assert_eq!(is_lower(peaks(31 * MIB, Some(15 * MIB))), Some(true));
    assert_eq!(is_lower(peaks(31 * MIB - 90_000, Some(31 * MIB))), Some(false));
    assert_eq!(is_lower(Measured::default()), None);
    let nothing = peaks(704, Some(1928));
    assert_eq!(
        peaks(704, Some(1912)).is_lower(&nothing),
        Some(false),
        "two runs of one model"
    );
}

#[test]
fn a_process_that_grows_by_more_is_a_reason_too() {
    let process = |later| Measured {
        resident_first_bytes: Some(31 * MIB),
        resident_later_bytes: Some(later),
        ..peaks(31 * MIB, Some(31 * MIB))
    };
    let why = |after: Measured| {
        Some(
            after
                .higher_with_arena(&process(40 * MIB), Basis::Measured)?
                .to_string(),
        )
    };
    assert_eq!(why(process(44 * MIB)), None, "no two runs grow by the same");
    let more = why(process(60 * MIB)).unwrap();
    assert!(more.contains("the process grows"), "{more}");
}

#[test]
fn that_a_figure_is_predicted_only_is_said() {
    let rejection = peaks(2 * MIB, None).higher_with_arena(&peaks(MIB, None), Basis::Predicted);
    let text = rejection.unwrap().to_string();
    assert!(text.ends_with("(predicted, not measured)"), "{text}");
}

/// Growth of two processes beside each other.
const fn most(before_bytes: u64, after_bytes: u64) -> Option<BeforeAfter> {
    Some(BeforeAfter {
        before_bytes,
        after_bytes,
    })
}

#[test]
fn growth_in_later_runs_is_held_against_growth_in_later_runs_alone() {
    let growth = |first, later| Growth {
        first: Some(first),
        later,
    };
    let original = growth(18, Some(31));
    assert_eq!(original.most_beside(growth(11, Some(12))), most(31, 12));
    assert_eq!(original.most_beside(growth(11, None)), most(18, 11));
    assert!(!original.knows_later_runs_beside(growth(11, None)));
    let unknown = Growth {
        first: None,
        later: Some(3),
    };
    assert_eq!(original.most_beside(unknown), None);
}

#[test]
fn a_model_loads_late_that_takes_a_second_longer() {
    let loads = |load_ns| Measured {
        load_ns,
        ..Measured::default()
    };
    let before = loads(Some(200_000_000));
    assert_eq!(loads(Some(1_199_999_999)).loads_late(&before), None);
    let late = loads(Some(1_200_000_000)).loads_late(&before);
    assert_eq!(late, Some((200_000_000, 1_200_000_000)));
    assert_eq!(loads(None).loads_late(&before), None);
}

#[test]
fn what_a_loaded_session_takes_more_counts_in_every_peak() {
    let loaded = |bytes, peak| Measured {
        loaded_bytes: Some(bytes),
        ..peaks(peak, Some(peak))
    };
    let before = loaded(80 * MIB, 30 * MIB);
    let is_lower = |after: Measured| after.is_lower(&before);
    assert_eq!(is_lower(loaded(105 * MIB, 4 * MIB)), Some(true));
    assert_eq!(is_lower(loaded(105 * MIB, 6 * MIB)), Some(false));
    assert_eq!(loaded(81 * MIB, MIB).more_loaded(&before), 0, "tables of the runtime");
    assert_eq!(
        loaded(70 * MIB, MIB).more_loaded(&before),
        0,
        "fewer nodes are no gain of runs"
    );
    assert_eq!(Measured::default().more_loaded(&before), 0);
    let higher = loaded(105 * MIB, 6 * MIB).higher_with_arena(&before, Basis::Measured);
    assert_eq!(higher.map(|higher| higher.after), Some(31 * MIB));
}
