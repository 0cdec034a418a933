use super::*;

#[test]
fn the_clock_stands_still_for_what_does_not_count() {
    let clock = Clock::start(&SolveControl::new().time_limit(Duration::from_secs(100)));
    clock.untimed(Activity::Measure, "", || std::thread::sleep(Duration::from_millis(50)));
    let end = clock.end.get().expect("there is a limit");
    let unmoved = clock.control.deadline.expect("there is a limit");
    assert!(end >= unmoved + Duration::from_millis(50));
    assert!(clock.limit() <= Some(Duration::from_secs(100)));
}

#[test]
fn searches_have_a_share_of_what_is_left() {
    let clock = Clock::start(&SolveControl::new().time_limit(Duration::from_secs(100)));
    let deadline = clock
        .search(clock.left(), Share::OneOf(2))
        .deadline
        .expect("there is a limit");
    let given = deadline.saturating_duration_since(Instant::now());
    assert!(given <= Duration::from_secs(50), "{given:?}");
    assert!(clock.has(Duration::from_secs(10)) && !clock.has(Duration::from_secs(1_000)));
}

#[test]
fn without_a_limit_there_is_always_time() {
    let clock = Clock::start(&SolveControl::new());
    assert!(clock.has(Duration::MAX));
    assert_eq!((clock.left(), clock.search(None, Share::Whole).deadline), (None, None));
    assert!(!clock.is_timed());
}

#[test]
fn what_is_left_out_is_named_once() {
    let clock = Clock::start(&SolveControl::new());
    clock.leave_out(LeftOut::Times);
    clock.leave_out(LeftOut::Times);
    assert_eq!(clock.left_out(), [LeftOut::Times]);
}

#[test]
fn searches_are_as_patient_as_the_limit_is_long_and_steps_know_no_patience_but_their_own() {
    let within = |control: SolveControl<'_>| Clock::start(&control).search(None, Share::Whole).patience;
    let [short, long] = [10, 600].map(|seconds| within(SolveControl::new().time_limit(Duration::from_secs(seconds))));
    assert!(short.min_steps < long.min_steps && short.factor < long.factor);
    assert_eq!(long, Patience::default());
    let counted = SolveControl::new().step_limit(50).time_limit(Duration::from_secs(10));
    assert_eq!(within(counted), Patience::default());
}

#[test]
fn small_models_are_searched_for_a_part_of_the_time_and_large_ones_for_all_of_it() {
    let plan = |ops| PlanOf {
        is_bounded: false,
        is_in_tiles: false,
        others: 0,
        round: 1,
        ops: Some(ops),
        file: Duration::from_millis(1),
        run: Duration::from_millis(1),
        completing: Duration::ZERO,
    };
    let clock = Clock::start(&SolveControl::new().time_limit(Duration::from_secs(100)));
    let [small, large] = [100, 10_000].map(|ops| clock.time_for(&plan(ops)).0.expect("there is a limit"));
    assert!(
        small <= Duration::from_secs(11) && large > Duration::from_secs(90),
        "{small:?}, {large:?}"
    );
    let counted = Clock::start(&SolveControl::new().step_limit(9).time_limit(Duration::from_secs(100)));
    assert!(counted.time_for(&plan(100)).0 > Some(Duration::from_secs(90)));
}
