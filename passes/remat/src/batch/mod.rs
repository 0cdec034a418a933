//! The largest batch that fits into memory, with and without rematerialization.
//!
//! The experiment of the Checkmate paper (section 6.4): how much larger can a batch become for a limited price in time? Peaks grow with
//! the batch, so the largest size is sought by doubling and then halving the interval. A size for which no plan was found may have one
//! all the same; only [`BatchFinding::Impossible`] is a proof. So each is tried twice, first with a quarter of the limits from the best
//! plan so far, then with all of the limits from nothing. All sizes share the time: each gets a part of what is left.

mod confirm;
mod interval;
mod trial;

use web_time::{Duration, Instant};

use remat_files::shown;
use remat_plan::{BodyPlan, BudgetSpec, Plan, Tiling};
use remat_solve::{Activity, Doing, SolveControl};
use thiserror::Error;

pub use self::trial::BatchFinding;

use self::interval::largest;
use self::trial::{Attempt, Task};
use crate::solution::longest;
use crate::{BaselinePeak, Error, Model, Solution, SolveRequest};

/// Not even the smallest size fits.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("not even a size of {size} fits into {budget} bytes: {reason}", reason = shown(.reason))]
pub struct NoBatch {
    /// The size.
    pub size: u64,
    /// Bytes that the peak may reach.
    pub budget: u64,
    /// Why it does not fit.
    pub reason: String,
    /// Whether that is proved.
    pub proved: bool,
}

/// Part of the time that is left which a size may take.
const ONE_SIZE: f64 = 0.2;
/// The first attempt at a size has this share of the limits, as a divisor.
const FIRST_ATTEMPT: u32 = 4;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    /// Bytes there are.
    pub memory: u64,
    /// Bytes of it that are taken whatever the plan: weights and inputs, which no peak counts, or the state of an optimizer.
    pub fixed: u64,
    /// Largest overhead, in millionths of the time without rematerialization at the same size.
    pub max_overhead: u64,
    /// Name of the solver.
    pub solver: String,
    /// Sizes above are not tried.
    pub largest: u64,
}

/// Makes another form of a model, of this size, that a request can be met with more easily within the limits: with plans of subgraphs, in tiles. `None`
/// where nothing is gained.
pub type OtherForm<'a> = &'a dyn Fn(u64, &Model, &SolveRequest, &SolveControl<'_>) -> Result<Option<Model>, Error>;

/// One size that was tried.
#[derive(Clone, PartialEq, Debug)]
pub struct BatchTrial {
    /// The size.
    pub size: u64,
    /// What the model takes as it is; absent where it cannot be read.
    pub baseline: Option<BaselinePeak>,
    /// Time without rematerialization.
    pub baseline_duration: u64,
    /// What was found.
    pub finding: BatchFinding,
    /// The fused chains that run tile by tile in the plan that was found.
    pub tiling: Option<Tiling>,
    /// The plans of subgraphs in it, where it has any.
    pub bodies: Vec<BodyPlan>,
    /// Time of all attempts.
    pub elapsed: Duration,
}

/// The answer.
#[derive(Debug)]
pub struct MaxBatch {
    /// Bytes that peaks may reach: the memory less what is fixed.
    pub budget: u64,
    /// The largest size that fits without rematerialization.
    pub without: Option<u64>,
    /// The largest size for which a plan was found.
    pub with: Option<u64>,
    /// Its plan; absent where it needs none.
    pub plan: Option<Box<Solution>>,
    /// The model in the form that the plan is of, in tiles or with plans of subgraphs; absent where that is the model itself.
    pub form: Option<Box<Model>>,
    /// Every size that was tried with rematerialization, in ascending order.
    pub trials: Vec<BatchTrial>,
    /// Whether the time limit was reached before all was tried: larger sizes may fit.
    pub is_out_of_time: bool,
}

impl MaxBatch {
    /// The smallest size above the answer that does not fit as far as is known; absent where the largest size allowed fits.
    #[must_use]
    pub fn limit(&self) -> Option<&BatchTrial> {
        self.trials.iter().find(|trial| !trial.finding.fits())
    }

    /// Passes if some size fits.
    ///
    /// # Errors
    /// [`NoBatch`].
    pub fn require_size(&self) -> Result<(), Error> {
        if self.with.is_some() {
            return Ok(());
        }
        let budget = self.budget;
        let none = match self.limit() {
            Some(limit) => NoBatch {
                size: limit.size,
                budget,
                reason: limit.finding.reason().unwrap_or_default().to_owned(),
                proved: matches!(limit.finding, BatchFinding::Impossible { .. }),
            },
            None => NoBatch {
                size: 1,
                budget,
                reason: "the search ended before a size was tried".to_owned(),
                proved: false,
            },
        };
        Err(none.into())
    }
}

/// Seeks the largest size for which a plan exists. `open` makes the model of a size, 1 or more; what fits at a size is taken to fit at
/// all smaller ones. Where a size does not fit, what `other_form` makes of it is tried.
///
/// Of `control`, the deadline is that of all sizes, other limits are those of one; a warm start is ignored. After the deadline, or after it was
/// cancelled, no plan is sought any more: the answer is the largest size that was found before, or that fits without one.
///
/// # Errors
/// What `open` says of the size 1; [`enum@Error`] of kind `Input` for a solver that is none, of kind `Internal` if the checker rejects a plan.
/// That a size does not fit is no error.
pub fn max_batch(
    open: &dyn Fn(u64) -> Result<Model, Error>,
    other_form: Option<OtherForm<'_>>,
    request: &BatchRequest,
    control: &SolveControl<'_>,
) -> Result<MaxBatch, Error> {
    open(1)?;
    let budget = request.memory.saturating_sub(request.fixed);
    let without = largest(0, request.largest, |size| {
        Ok::<_, Error>(open(size).is_ok_and(|model| model.baseline_peak().bytes <= budget))
    })?;
    let mut search = Search {
        open,
        other_form,
        request,
        control,
        budget,
        plan: None,
        form: None,
        trials: Vec::new(),
        is_out_of_time: false,
    };
    let with = largest(without, request.largest, |size| search.fits(size))?;
    let Search {
        plan,
        form,
        mut trials,
        is_out_of_time,
        ..
    } = search;
    trials.sort_by_key(|trial| trial.size);
    let some = |size: u64| (size > 0).then_some(size);
    Ok(MaxBatch {
        budget,
        without: some(without),
        with: some(with),
        plan,
        form,
        trials,
        is_out_of_time,
    })
}

struct Search<'a> {
    open: &'a dyn Fn(u64) -> Result<Model, Error>,
    other_form: Option<OtherForm<'a>>,
    request: &'a BatchRequest,
    control: &'a SolveControl<'a>,
    budget: u64,
    /// Of the largest size that fits so far.
    plan: Option<Box<Solution>>,
    form: Option<Box<Model>>,
    trials: Vec<BatchTrial>,
    is_out_of_time: bool,
}

impl Search<'_> {
    fn fits(&mut self, size: u64) -> Result<bool, Error> {
        if self.control.is_cancelled() {
            return Ok(false);
        }
        let started = Instant::now();
        if self.control.is_late() {
            self.is_out_of_time = true;
            return Ok(false);
        }
        let (model, finding) = match (self.open)(size) {
            Ok(model) => {
                let finding = self.finding(size, &model)?;
                (Some(model), finding)
            }
            Err(error) => {
                let reason = error.to_string();
                (None, BatchFinding::Unreadable { reason })
            }
        };
        tracing::info!(size, ?finding, "tried a size");
        let fits = finding.fits();
        let form = self.form.as_ref().filter(|_| fits);
        self.trials.push(BatchTrial {
            size,
            baseline: model.as_ref().map(Model::baseline_peak),
            baseline_duration: model.as_ref().map_or(0, |model| model.baseline().duration),
            finding,
            tiling: form.and_then(|form| form.tiling().cloned()),
            bodies: form.map(|form| form.bodies().to_vec()).unwrap_or_default(),
            elapsed: started.elapsed(),
        });
        Ok(fits)
    }

    /// What is known of a size; where there is a plan, that and the form of the model in it are kept.
    fn finding(&mut self, size: u64, model: &Model) -> Result<BatchFinding, Error> {
        if model.baseline_peak().bytes <= self.budget {
            (self.plan, self.form) = (None, None);
            return Ok(BatchFinding::Baseline);
        }
        let task = Task {
            model,
            solver: &self.request.solver,
            budget: self.budget,
            longest: longest(model.baseline().duration, self.request.max_overhead),
        };
        if let Some(observer) = self.control.observer {
            observer.begins(&Doing::new(Activity::Plan, &format!("for size {size}")));
        }
        let first = task.attempt(&self.limits(FIRST_ATTEMPT), self.start(model))?;
        let last = match first {
            Attempt::Without(BatchFinding::NotFound { .. }) => task.attempt(&self.limits(1), None)?,
            Attempt::Found(_) | Attempt::Without(_) => first,
        };
        let (last, form) = match last {
            Attempt::Found(_) => (last, None),
            Attempt::Without(_) => match self.attempt_in_other_form(size, &task)? {
                Some((found, form)) => (found, Some(Box::new(form))),
                None => (last, None),
            },
        };
        Ok(match last {
            Attempt::Found(solution) => {
                let finding = BatchFinding::Plan {
                    peak: solution.replay.peak,
                    duration: solution.replay.duration,
                };
                (self.plan, self.form) = (Some(solution), form);
                finding
            }
            Attempt::Without(finding) => finding,
        })
    }

    /// A plan for the model in another form that takes no longer than allowed, where one is found.
    fn attempt_in_other_form(&self, size: u64, task: &Task<'_>) -> Result<Option<(Attempt, Model)>, Error> {
        let Some(other_form) = self.other_form else {
            return Ok(None);
        };
        let request = SolveRequest {
            budget: BudgetSpec::Bytes(task.budget),
            max_overhead: Some(self.request.max_overhead),
            solver: task.solver.to_owned(),
        };
        let Some(model) = other_form(size, task.model, &request, &self.limits(1))? else {
            return Ok(None);
        };
        let found = Task { model: &model, ..*task }.attempt(&self.limits(1), None)?;
        let found = Some(found).filter(|found| matches!(found, Attempt::Found(_)));
        Ok(found.map(|found| (found, model)))
    }

    /// A share of the limits, as a divisor; of the time, of the part that one size has.
    fn limits(&self, share: u32) -> SolveControl<'_> {
        let mut control = *self.control;
        control.step_limit = control.step_limit.map(|steps| steps.div_ceil(u64::from(share)));
        control.share_of_time(ONE_SIZE / f64::from(share))
    }

    /// The plan of a smaller size, where it speaks about the same ops.
    fn start(&self, model: &Model) -> Option<&Plan> {
        let known = self.plan.as_ref()?;
        let (ours, theirs) = (&model.problem().ops, &known.problem.ops);
        let same = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.name == b.name);
        (same && known.problem.order == model.problem().order).then_some(&known.plan)
    }
}
