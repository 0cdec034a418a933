//! What a sweep knows about each budget.

use remat_plan::{BoundCovers, BudgetSpec, Certificate, Evidence, OrderMode, Plan, Status};
use remat_solve::{SolveControl, least_peak};

use super::form_point::FormPoint;
use super::request::SweepError;
use crate::claims::Claims;
use crate::finding::NoPlans;
use crate::solution::accept;
use crate::{Error, Finding, Model, Solution, SolveError};

/// One budget of a front.
#[derive(Debug)]
pub struct FrontPoint {
    /// The budget as it was asked for.
    pub spec: BudgetSpec,
    /// The budget in bytes; for [`BudgetSpec::Min`] absent: the peak of its plan is the promise.
    pub budget: Option<u64>,
    /// The order of the model: what a bound has to cover.
    pub(super) order: OrderMode,
    /// What is known about it.
    pub finding: Finding,
    /// How often the solver worked on it: [`FrontPoint::VISITS`] times when it is finished.
    pub(super) visits: u8,
    /// A better plan with fused chains that run tile by tile, where one was looked for and found.
    pub in_tiles: Option<Box<FormPoint>>,
    /// A better plan with plans of subgraphs, where one was looked for and found.
    pub in_bodies: Option<Box<FormPoint>>,
    /// The best bound that the solver gave for this budget itself, and what it covers.
    pub(super) bound: Option<KnownBound>,
}

/// A bound on the plans of one budget, as in a [`Certificate`].
#[derive(Clone, PartialEq, Debug)]
pub(super) struct KnownBound {
    pub(super) bound: u64,
    pub(super) covers: BoundCovers,
    pub(super) evidence: Option<Evidence>,
}

impl KnownBound {
    fn of(certificate: &Certificate) -> Self {
        Self {
            bound: certificate.bound,
            covers: certificate.bound_covers,
            evidence: certificate.evidence.clone(),
        }
    }
}

impl FrontPoint {
    /// On the way from loose to tight, and on the way back.
    pub const VISITS: u8 = 2;

    pub(super) fn new(spec: BudgetSpec, model: &Model) -> Self {
        Self {
            spec,
            budget: spec.bytes(model.baseline_peak().bytes),
            order: model.problem().order,
            finding: Finding::Untried,
            visits: 0,
            in_tiles: None,
            in_bodies: None,
            bound: None,
        }
    }

    /// The plan, where there is one.
    #[must_use]
    pub fn solution(&self) -> Option<&Solution> {
        self.finding.solution()
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.visits >= Self::VISITS
    }

    /// Whether a plan of this peak and duration fits the budget and is better than what is known.
    fn gains_from(&self, peak: u64, duration: u64) -> bool {
        let known = self.solution().map(|known| (known.replay.peak, known.replay.duration));
        match self.budget {
            Some(budget) => peak <= budget && known.is_none_or(|(_, best)| duration < best),
            None => known.is_none_or(|known| (peak, duration) < known),
        }
    }
}

/// The trade of memory against time for one model.
#[derive(Debug)]
pub struct Front {
    /// The budgets, loose ones first; [`BudgetSpec::Min`] stands last.
    pub points: Vec<FrontPoint>,
    /// The peak that no plan undercuts, in bytes.
    pub floor: u64,
    /// Name of the solver.
    pub solver: String,
    /// What was claimed of each budget, and all plans.
    claims: Claims,
}

impl Front {
    /// A front of which nothing is known. Budgets that mean the same number of bytes become one point.
    pub(super) fn new(model: &Model, budgets: &[BudgetSpec], solver: &str) -> Self {
        let mut points: Vec<_> = budgets.iter().map(|&spec| FrontPoint::new(spec, model)).collect();
        points.sort_by_key(|point| std::cmp::Reverse(point.budget));
        points.dedup_by_key(|point| point.budget);
        let problem = model.problem();
        Self {
            points,
            floor: least_peak(problem, &SolveControl::new()).bytes,
            solver: solver.to_owned(),
            claims: Claims::new(problem),
        }
    }

    /// Whether every budget is finished.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.points.iter().all(FrontPoint::is_finished)
    }

    /// Passes if at least one budget has a plan.
    ///
    /// # Errors
    /// [`NoPlans`], as an error of the sweep.
    pub fn require_plan(&self) -> Result<(), Error> {
        let is_met =
            |point: &FrontPoint| point.solution().is_some() || point.in_tiles.is_some() || point.in_bodies.is_some();
        if self.points.iter().any(is_met) {
            return Ok(());
        }
        let impossible = |point: &FrontPoint| matches!(point.finding, Finding::Impossible { .. });
        let none = NoPlans {
            budgets: self.points.len(),
            impossible: self.points.iter().filter(|point| impossible(point)).count(),
        };
        Err(SweepError::from(none).into())
    }

    /// Records a plan for point `index`, and for all others that it serves better than what they had: so a larger budget never
    /// has a longer plan. The checker replays it for each of them.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it; [`SolveError::FalseClaim`] if it refutes what was claimed for one of them, or
    /// is above what is known there.
    pub(super) fn record(&mut self, model: &Model, index: usize, solution: Solution) -> Result<(), Error> {
        let (peak, duration) = (solution.replay.peak, solution.replay.duration);
        if let Some(certificate) = &solution.certificate {
            self.claims.claim(solution.problem.budget, certificate)?;
            self.points[index].raise_bound(certificate);
        }
        self.claims.of_solution(&solution)?;
        self.offer_except(model, &solution, Some(index))?;
        if self.points[index].gains_from(peak, duration) {
            self.points[index].finding = Finding::Plan(Box::new(solution));
        }
        Ok(())
    }

    /// Takes a plan for every point that it serves better than what it had.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it; [`SolveError::FalseClaim`] if it refutes what was claimed.
    pub(super) fn offer(&mut self, model: &Model, solution: &Solution) -> Result<(), Error> {
        self.claims.of_solution(solution)?;
        self.offer_except(model, solution, None)
    }

    fn offer_except(&mut self, model: &Model, solution: &Solution, own: Option<usize>) -> Result<(), Error> {
        let (peak, duration) = (solution.replay.peak, solution.replay.duration);
        for index in 0..self.points.len() {
            if own != Some(index)
                && self.points[index].gains_from(peak, duration)
                && let Some(adopted) = self.points[index].adopt(model, solution)?
            {
                self.points[index].finding = Finding::Plan(Box::new(adopted));
            }
        }
        Ok(())
    }

    /// Marks a point as impossible, and where a solver had to prove it, all tighter ones.
    ///
    /// # Errors
    /// [`SolveError::FalseClaim`] if a plan is known that the proof denies.
    pub(super) fn exclude(&mut self, index: usize, error: &Error) -> Result<(), Error> {
        let from = self.points[index].budget;
        let is_proof = if let Error::Solve(SolveError::ProvedInfeasible { claim, .. }) = error {
            self.claims.claim(from, claim)?;
            true
        } else {
            false
        };
        for (at, point) in self.points.iter_mut().enumerate() {
            // The lowest peak is a question of its own: it always has an answer.
            let tighter = is_proof && point.budget.is_some() && point.budget <= from;
            if (at == index || tighter) && point.solution().is_none() {
                let reason = error.to_string();
                point.finding = Finding::Impossible { reason };
                point.visits = FrontPoint::VISITS;
            }
        }
        Ok(())
    }
}

impl FrontPoint {
    /// The solution of another budget as one of this budget. A bound for another budget says nothing about this one.
    fn adopt(&self, model: &Model, other: &Solution) -> Result<Option<Solution>, Error> {
        let Some(certificate) = &other.certificate else {
            return Ok(None);
        };
        let mut problem = other.problem.clone();
        problem.budget = self.budget.or(Some(other.replay.peak));
        let certificate = self.certificate_for(model, certificate.clone());
        Ok(Some(accept(model, problem, other.plan.clone(), certificate)?))
    }

    fn certificate_for(&self, model: &Model, other: Certificate) -> Certificate {
        let known = self.bound.clone().unwrap_or(KnownBound {
            bound: model.problem().total_duration(),
            covers: BoundCovers::AllPlans,
            evidence: None,
        });
        Certificate {
            status: Status::Feasible,
            bound: known.bound,
            bound_covers: known.covers,
            evidence: known.evidence,
            ..other
        }
    }

    /// Takes over the higher bound, also into the certificate of the plan that is known.
    fn raise_bound(&mut self, new: &Certificate) {
        let strength = |known: &KnownBound| (known.covers.is_every_plan(self.order), known.bound);
        let claimed = KnownBound::of(new);
        if self
            .bound
            .as_ref()
            .is_some_and(|known| strength(known) >= strength(&claimed))
        {
            return;
        }
        self.bound = Some(claimed);
        if let Finding::Plan(solution) = &mut self.finding {
            let (duration, digest) = (solution.replay.duration, solution.problem.digest());
            if let Some(certificate) = &mut solution.certificate {
                certificate.take_bound(new);
                certificate.restate(duration, digest);
            }
        }
    }

    /// Whether the plan is the best there can be, so that another visit gains nothing.
    pub(super) fn is_optimal(&self) -> bool {
        let certificate = self.solution().and_then(|solution| solution.certificate.as_ref());
        self.budget.is_some() && certificate.is_some_and(|certificate| certificate.is_final(self.order))
    }

    /// The plan as a start for a search under the model's own order; plans that left it would be ignored.
    pub(super) fn start(&self, order: OrderMode) -> Option<&Plan> {
        let solution = self.solution()?;
        (order == OrderMode::Free || solution.problem.order == order).then_some(&solution.plan)
    }
}
