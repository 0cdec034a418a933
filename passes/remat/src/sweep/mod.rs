//! The whole front of memory against time: one plan for each of several budgets.
//!
//! The budgets are visited from loose to tight, and back from tight to loose. Each visit starts from what its neighbour found, and a
//! plan that serves a larger budget better than its own is taken there too. Every plan has passed the checker under the budget
//! it is listed for.

mod file;
mod form_point;
mod forms;
mod front;
mod request;

use web_time::Instant;

use remat_plan::{BudgetSpec, Plan};
use remat_solve::{Activity, Doing, SolveControl};

pub use file::{Effort, FRONT_FORMAT, FrontFile, PointRecord};
pub use form_point::FormPoint;
pub use forms::{BodyPlanner, BodySweep, TiledSweep, sweep_in_bodies, sweep_in_tiles};
pub use front::{Front, FrontPoint};
pub use request::{FrontFileError, SweepError, SweepRequest};

use crate::{Error, ErrorKind, Finding, Model, SolveRequest, solve};

/// Finds a plan for each budget.
///
/// Of `control`, the deadline is that of the whole sweep: what is left of it is shared among the visits to come. The step limit
/// is that of one budget, both visits together. A warm start is ignored. `visited` is called after every visit, and its error
/// ends the sweep: the place to save the front from. A sweep that is cancelled or runs into its deadline returns what it has
/// ([`Front::is_finished`] says whether that is all).
///
/// With `resume`, points that were finished under the same request and control are taken as they are, after their plans were
/// replayed; plans of others are starts.
///
/// # Errors
/// [`Error`] of kind `Input` for a budget or solver that is none and for a front of another model; of kind `Internal` if the checker
/// rejects a plan. That a budget cannot be met is no error, but a [`Finding`].
pub fn sweep(
    model: &Model,
    request: &SweepRequest,
    control: &SolveControl<'_>,
    resume: Option<&FrontFile>,
    visited: &mut dyn FnMut(&Front) -> Result<(), Error>,
) -> Result<Front, Error> {
    if let Some(&budget) = request
        .budgets
        .iter()
        .find(|budget| matches!(budget, BudgetSpec::Auto | BudgetSpec::None))
    {
        return Err(SweepError::Budget { budget }.into());
    }
    let mut front = Front::new(model, &request.budgets, &request.solver);
    if let Some(file) = resume {
        file.restore(model, request, control, &mut front)?;
    }
    let mut run = Run {
        model,
        request,
        control,
        front,
    };
    let count = run.front.points.len();
    let ways = (0..count)
        .map(|index| (index, 1))
        .chain((0..count).rev().map(|index| (index, FrontPoint::VISITS)));
    for (index, visit) in ways {
        if run.front.points[index].visits >= visit {
            continue;
        }
        if run.is_over() {
            break;
        }
        run.visit(index, visit)?;
        visited(&run.front)?;
    }
    Ok(run.front)
}

struct Run<'a> {
    model: &'a Model,
    request: &'a SweepRequest,
    control: &'a SolveControl<'a>,
    front: Front,
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.control.is_cancelled() || self.control.is_late()
    }

    /// Solves for one budget. A visit that was cut short by the end of the whole sweep does not count.
    fn visit(&mut self, index: usize, visit: u8) -> Result<(), Error> {
        let request = SolveRequest {
            budget: self.front.points[index].spec,
            max_overhead: None,
            solver: self.request.solver.clone(),
        };
        tracing::info!(budget = %request.budget, visit, "solving for one budget of the sweep");
        let limits = self.limits(index, visit);
        if let Some(observer) = self.control.observer {
            let detail = format!("for {}, visit {visit} of {}", request.budget, FrontPoint::VISITS);
            observer.begins(&Doing {
                left: self
                    .control
                    .deadline
                    .map(|deadline| deadline.saturating_duration_since(Instant::now())),
                ..Doing::new(Activity::Plan, &detail)
            });
        }
        let result = solve(self.model, &request, &limits);
        match result {
            Ok(solution) => self.front.record(self.model, index, solution)?,
            Err(error) => match error.kind() {
                ErrorKind::Negative => self.front.exclude(index, &error)?,
                ErrorKind::Limit => {
                    let point = &mut self.front.points[index];
                    if point.solution().is_none() {
                        let reason = error.to_string();
                        point.finding = Finding::NotFound { reason };
                    }
                }
                ErrorKind::Input | ErrorKind::Internal => return Err(error),
            },
        }
        let over = self.is_over();
        let point = &mut self.front.points[index];
        if point.is_optimal() {
            point.visits = FrontPoint::VISITS;
        } else if !over {
            point.visits = point.visits.max(visit);
        }
        Ok(())
    }

    /// The limits of one visit and where it starts.
    fn limits(&self, index: usize, visit: u8) -> SolveControl<'_> {
        let mut control = *self.control;
        control.step_limit = control
            .step_limit
            .map(|steps| steps.div_ceil(u64::from(FrontPoint::VISITS)));
        control.warm_start = self.start(index, visit);
        let now = Instant::now();
        let share = self
            .request
            .time_per_budget
            .map(|time| time / u32::from(FrontPoint::VISITS));
        let left = self.control.deadline.map(|deadline| {
            let visits: u32 = self
                .front
                .points
                .iter()
                .map(|point| u32::from(FrontPoint::VISITS.saturating_sub(point.visits)))
                .sum();
            deadline.saturating_duration_since(now) / visits.max(1)
        });
        let time = [share, left].into_iter().flatten().min();
        control.deadline = time.and_then(|time| now.checked_add(time));
        control
    }

    /// On the way to tight budgets: the plan that is known, else that of the nearest looser budget. On the way back: the plan of
    /// the nearest tighter budget, which this one need not beat at once, since what is known is kept; else the plan that is known.
    fn start(&self, index: usize, visit: u8) -> Option<&Plan> {
        let points = &self.front.points;
        let order = self.model.problem().order;
        let looser = || points[..index].iter().rev().find_map(|point| point.start(order));
        let tighter = || points[index + 1..].iter().find_map(|point| point.start(order));
        let own = || points[index].start(order);
        if visit == FrontPoint::VISITS {
            tighter().or_else(own).or_else(looser)
        } else {
            own().or_else(looser)
        }
    }
}
