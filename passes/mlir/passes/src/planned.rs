//! The plans of a block and of its regions, ready to be written into the function.

use remat::ir::Graph;
use remat::plan::{Status, Step};
use remat::{Model, Solution};
use remat_mlir::{ApplyOptions, Imported};

use crate::PassError;

/// A block with its plan.
pub(crate) struct Planned<'c> {
    imported: Imported<'c>,
    rewritten: Option<Graph>,
    /// The regions that do not stay as they are.
    inside: Vec<Planned<'c>>,
    /// Bytes that the plan was made for; absent: no limit.
    pub(crate) budget: Option<u64>,
    /// Its peak as it was, and with the plan.
    pub(crate) baseline_peak: u64,
    pub(crate) peak: u64,
    /// Time of one run with all that its regions take as it was, and with the plans.
    pub(crate) baseline_duration: u64,
    pub(crate) duration: u64,
    /// Lower bound on the time of any plan for the block within its budget; 0 where none is known.
    pub(crate) bound: u64,
    /// Whether no plan for the block within its budget is shorter.
    pub(crate) optimal: bool,
    /// Operations that run again, tensors that are brought back, and fused chains in tiles, each counted where it stands.
    pub(crate) recomputes: usize,
    pub(crate) transfers: usize,
    pub(crate) fused_chains: usize,
}

impl<'c> Planned<'c> {
    /// A block without its regions.
    pub(crate) fn of(
        imported: Imported<'c>,
        baseline_peak: u64,
        rewritten: Option<Graph>,
        model: &Model,
        solution: &Solution,
    ) -> Self {
        let order = solution.problem.order;
        let certificate = solution.certificate.as_ref();
        let steps = solution.plan.steps.iter();
        Self {
            imported,
            rewritten,
            inside: Vec::new(),
            budget: solution.problem.budget,
            baseline_peak,
            peak: solution.replay.peak,
            baseline_duration: solution.overhead.baseline,
            duration: solution.overhead.duration,
            bound: solution.bound_on_all_plans(order),
            optimal: certificate
                .is_some_and(|certificate| certificate.status == Status::Optimal && certificate.is_final(order)),
            recomputes: solution.replay.recomputes,
            transfers: steps.filter(|step| matches!(step, Step::PageIn(_))).count(),
            fused_chains: model.tiling().map_or(0, |tiling| tiling.fused_chains.len()),
        }
    }

    /// Takes back what is claimed about a plan that adds time: how the budget is shared with other blocks or with regions is not proved to be best.
    pub(crate) fn claim_nothing(&mut self) {
        if self.duration > self.baseline_duration {
            self.bound = 0;
            self.optimal = false;
        }
    }

    /// Adds a region that runs so often each time that the block runs.
    pub(crate) fn add(&mut self, region: Self, runs: u64) {
        let added = region.duration.saturating_sub(region.baseline_duration);
        self.duration = self.duration.saturating_add(added.saturating_mul(runs));
        self.recomputes += region.recomputes;
        self.inside.push(region);
    }

    /// Writes the plans into the function, the inner ones first. Takes and returns the highest number of a copy so far.
    pub(crate) fn apply(self, options: ApplyOptions) -> Result<i64, PassError<'c>> {
        let mut numbered = options.numbered;
        for region in self.inside {
            numbered = region.apply(ApplyOptions { numbered, ..options })?;
        }
        match self.rewritten {
            Some(graph) => Ok(self.imported.apply(&graph, &ApplyOptions { numbered, ..options })?),
            None => Ok(numbered),
        }
    }
}
