//! The best known plan for one budget, and the strongest bound.

use std::path::Path;

use anyhow::Context;
use remat::plan::{BudgetSpec, PlanFile};
use remat::{Model, Solution};

/// A plan that the checker has replayed, and whether the file lacks anything of it.
#[derive(Default)]
pub(super) struct Known {
    best: Option<Solution>,
    is_news: bool,
}

impl Known {
    /// The plan in a file; none where there is no file.
    ///
    /// # Errors
    /// If it cannot be read, is for another graph, or breaks a rule.
    pub(super) fn read(model: &Model, path: &Path) -> anyhow::Result<Self> {
        let best = if path.exists() {
            Some(replayed(model, path)?)
        } else {
            None
        };
        Ok(Self { best, is_news: false })
    }

    /// Takes over what a plan for `budget` has better: less time (or a lower peak, where that is what is sought), a smaller block, or a
    /// stronger bound.
    pub(super) fn learn(&mut self, found: &Solution, budget: BudgetSpec) {
        let Some(best) = &mut self.best else {
            self.best = Some(found.clone());
            self.is_news = true;
            return;
        };
        let figures = |solution: &Solution| {
            let peak = if budget == BudgetSpec::Min {
                solution.replay.peak
            } else {
                0
            };
            let block = solution.placement.as_ref().map_or(u64::MAX, remat::PlacedPlan::block);
            (peak, solution.replay.duration, block)
        };
        let bound = |solution: &Solution| solution.bound_on_all_plans(solution.problem.order);
        // A bound is about one budget, and budgets of lowest peaks differ.
        let is_of_one = best.problem.budget == found.problem.budget;
        let has_stronger = is_of_one && bound(found) > bound(best);
        let is_better = figures(found) < figures(best);
        let weaker = if is_better {
            std::mem::replace(best, found.clone())
        } else {
            found.clone()
        };
        // Of both certificates the stronger bound stays.
        if is_of_one
            && is_better != has_stronger
            && let (Some(certificate), Some(stronger)) = (&mut best.certificate, &weaker.certificate)
        {
            certificate.take_bound(stronger);
            certificate.settle();
        }
        self.is_news |= is_better || has_stronger;
    }

    /// Time of the best plan, in nanoseconds.
    pub(super) fn duration(&self) -> Option<u64> {
        self.best.as_ref().map(|best| best.replay.duration)
    }

    /// A time that no plan within its budget undercuts, in nanoseconds.
    pub(super) fn bound(&self) -> Option<u64> {
        let best = self.best.as_ref()?;
        Some(best.bound_on_all_plans(best.problem.order)).filter(|&bound| bound > 0)
    }

    /// Whether it is better than what was read.
    pub(super) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Writes the plan with its offsets and the bound.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, model: &Model, path: &Path) -> anyhow::Result<()> {
        let Some(best) = &self.best else { return Ok(()) };
        let written = || format!("cannot write `{}`", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(written)?;
        }
        remat_files::write(path, best.plan_file(model).to_json()).with_context(written)
    }
}

/// A plan from a file, past the checker.
///
/// # Errors
/// If it cannot be read, is for another graph, or breaks a rule.
pub(super) fn replayed(model: &Model, path: &Path) -> anyhow::Result<Solution> {
    let here = || format!("`{}`", path.display());
    let text = std::fs::read_to_string(path).with_context(here)?;
    let file = PlanFile::from_json(&text).with_context(here)?;
    remat::check_plan(model, &file).with_context(here)
}
