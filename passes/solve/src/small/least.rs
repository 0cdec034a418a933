//! The lowest peak of a small problem, by halving: for each budget a search for any plan within it, or within a duration.

use remat_plan::{Plan, Problem, Structure};

use super::rules::{Rules, is_small};
use super::search::{Effort, End, Search};
use super::{MOST_STATES, plan};
use crate::measure::measure;
use crate::{Figures, SolveControl};

/// How low the peak can be.
pub(crate) struct Lowest {
    /// No plan has a lower peak, among those no longer than asked for.
    pub(crate) at_least: u64,
    /// The plan of the lowest peak found, and what it comes to.
    pub(crate) best: Option<(Plan, Figures)>,
    /// Whether that peak is the lowest there is.
    pub(crate) is_proved: bool,
    /// States made.
    pub(crate) steps: u64,
}

/// The lowest peak of all plans that take `longest` at most, or any time; `None` where the problem is not [small](is_small). `longest` must not be
/// below the time of running every op once. The problem's budget plays no part.
pub(crate) fn lowest_peak(problem: &Problem, longest: Option<u64>, control: &SolveControl<'_>) -> Option<Lowest> {
    if !is_small(problem) || !problem.is_time_within_budget() {
        return None;
    }
    let structure = Structure::of(problem);
    let rules = Rules::of(problem);
    let (rules, most) = match longest {
        Some(longest) => (rules, longest),
        None => (rules.at_no_cost(), 0),
    };
    let interruption = |steps| control.interruption(steps);
    let mut effort = Effort {
        steps: 0,
        most: MOST_STATES,
        interruption: &interruption,
    };
    let mut lowest = Lowest {
        at_least: problem.bottleneck(&structure).map_or(0, |most| most.bytes),
        best: None,
        is_proved: false,
        steps: 0,
    };
    let mut budget = u64::MAX;
    loop {
        let mut search = Search::new(&rules, budget, most);
        match search.run(&mut effort) {
            End::Found(end) => {
                let plan = plan(problem, &rules, &search.way(end));
                let figures = measure(problem, &structure, &plan);
                lowest.best = Some((plan, figures));
            }
            // Without a budget there is a plan: every op once.
            End::None(blocked) => lowest.at_least = lowest.at_least.max(blocked),
            End::Stopped(..) => break,
        }
        let Some((_, found)) = &lowest.best else { break };
        if found.peak <= lowest.at_least {
            lowest.is_proved = true;
            break;
        }
        budget = lowest.at_least + (found.peak - lowest.at_least) / 2;
    }
    lowest.steps = effort.steps;
    Some(lowest)
}
