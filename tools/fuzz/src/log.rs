//! Logs of eager executions.

use remat::dtr::{Deallocation, Heuristic, SimulateOptions, Trace, base_peak, problem_of, read_log, simulate};

use crate::judge;

/// Operators of a log that is replayed.
const MOST_OPERATORS: usize = 300;

/// Reads a log, replays it with evictions, and plans it.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(trace) = read_log(data) else { return false };
    let problem = problem_of(&trace, "fuzzed");
    assert_eq!(problem.validate(), Ok(()));
    if trace.operators() <= MOST_OPERATORS {
        replays(&trace);
        judge::plans(&problem);
    }
    true
}

/// No replay takes more than its budget.
fn replays(trace: &Trace) {
    let peak = base_peak(trace);
    let ways = [
        (Heuristic::DtrEq, Deallocation::Eager),
        (Heuristic::Dtr, Deallocation::Banish),
        (Heuristic::Random, Deallocation::Keep),
    ];
    for (heuristic, deallocation) in ways {
        let budget = Some(peak / 2);
        let result = simulate(
            trace,
            &SimulateOptions {
                heuristic,
                deallocation,
                budget,
                ..SimulateOptions::default()
            },
        );
        assert!(result.peak <= peak / 2, "{} bytes of {}", result.peak, peak / 2);
        assert!(result.overhead.is_finite() && result.overhead >= 0.0);
    }
}
