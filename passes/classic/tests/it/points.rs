//! The plans of a strategy, checked.

use remat_classic::{Point, Strategy, curve};
use remat_plan::Problem;
use remat_verify::replay;

/// Peak as the paper counts it, and the ratio of times in ten thousandths, rounded.
fn figures(problem: &Problem, point: &Point) -> (u64, u64) {
    let once = u128::from(problem.total_duration());
    let ratio = (u128::from(point.duration) * 10_000 + once / 2) / once;
    (point.schedule_peak, u64::try_from(ratio).expect("ratios are small"))
}

/// The figures of all plans of a strategy; the checker accepts each plan and finds what is claimed, and no more than the paper's peak.
pub(crate) fn checked(problem: &Problem, strategy: Strategy) -> Vec<(u64, (u64, u64))> {
    let points = curve(problem, strategy).expect("it is a training step");
    let figures = points.iter().map(|point| {
        let replayed = replay(problem, &point.plan).expect("the plan is valid");
        assert_eq!((replayed.peak, replayed.duration), (point.peak, point.duration));
        assert!(point.peak <= point.schedule_peak);
        (point.parameter, figures(problem, point))
    });
    figures.collect()
}
