//! What a solver is, what it can do, and what it returns.

use remat_plan::{Certificate, Plan, Problem};

use crate::SolveControl;

/// An algorithm for the rematerialization problem.
///
/// Whatever a solver returns is a claim; only the checker (`remat-verify`) decides whether a plan is valid. What a solver can do is said
/// by its methods, so that a caller chooses by capability and never by name.
pub trait Solver: Send + Sync {
    /// Name, as given on a command line: `family` or `family:option`, in lower case.
    fn name(&self) -> &'static str;

    /// One line for people.
    fn describe(&self) -> &'static str;

    /// Searches for a plan of least duration within the problem's budget.
    ///
    /// The problem must be [valid](Problem::validate).
    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome;

    /// The problems it is made for.
    fn domain(&self) -> Domain {
        Domain::Time
    }

    /// Whether it takes all of the problem into account. The plans of a solver that does not may miss a deadline, and its claims say nothing.
    fn supports(&self, problem: &Problem) -> bool {
        problem.is_time_within_budget() || self.domain() != Domain::Time
    }

    /// What it works with from outside of the program.
    fn external(&self) -> Option<&'static dyn External> {
        None
    }

    /// What it needs from outside of the program and does not find; looked for when this is first asked. A solver that lacks something answers
    /// what is plain and refuses the rest.
    fn missing(&self) -> Option<String> {
        self.external()?.missing()
    }

    /// What its bounds cover.
    fn proves(&self) -> Proves {
        Proves::Trivial
    }

    /// Whether [`SolveControl::step_limit`] ends it, on one thread with the same plan in every run. Steps of others are not ours.
    fn counts_steps(&self) -> bool {
        self.external().is_none()
    }

    /// Whether its plans come from other solvers of the registry.
    fn calls_others(&self) -> bool {
        false
    }

    /// Whether the solver constructs its plans for this problem directly, in well below a second, so that a portfolio can afford to
    /// take its answer along. Searches and exact solvers keep the default: no.
    fn is_quick(&self, problem: &Problem) -> bool {
        let _ = problem;
        false
    }

    /// Whether its plans for [`Domain::Time`] are those of [`Search`](crate::Search) or no worse, so that what [`minimize_peak`](crate::minimize_peak)
    /// finds counts as its own.
    fn searches(&self) -> bool {
        false
    }

    /// Whether it makes the plan that it starts from better by other moves than [`Search`](crate::Search), and finds little without one.
    fn refines(&self) -> bool {
        false
    }
}

/// A library that is loaded at run time.
pub trait External: Sync {
    /// Why it cannot be used, if so; looked for when this is first asked.
    fn missing(&self) -> Option<String>;
}

/// The problems that a solver is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Least time within a budget. It ignores second memories, deadlines and energy.
    Time,
    /// Problems with a second memory, a deadline or another objective. It solves all others, too, but is not made for them.
    Goals,
    /// Both.
    Every,
}

/// The plans that a solver's bounds cover, the fewest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proves {
    /// Every plan, but the bound is no higher than what running each op once takes.
    Trivial,
    /// The plans that its model can express.
    OwnForm,
    /// Every plan that keeps to the order of the problem.
    EveryPlan,
}

/// What a solver found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The best plan within the budget; absent where none was found.
    pub plan: Option<Plan>,
    /// What is claimed about it.
    pub certificate: Certificate,
    /// Without a plan: the lowest peak in bytes that any sequence reached, so that the caller can name a budget that would do.
    /// With a plan: a peak that the plan does not exceed. Absent where nothing was tried.
    pub lowest_peak: Option<u64>,
    /// Without a plan: one of a low peak, from which a search may go on.
    pub lowest_plan: Option<Plan>,
    /// What each of its parts answered, where the solver calls others; their claims have to agree with all of their plans.
    pub parts: Vec<Self>,
}

impl Outcome {
    /// What one solver answers by itself.
    #[must_use]
    pub fn new(plan: Option<Plan>, certificate: Certificate, lowest_peak: Option<u64>) -> Self {
        Self {
            plan,
            certificate,
            lowest_peak,
            lowest_plan: None,
            parts: Vec::new(),
        }
    }
}
