//! Plans for the blocks of a function, and for the regions inside of them.
//!
//! A block of several has what the budget leaves beside what is live across it. An op with regions is planned as if these had the lowest
//! peaks that are found for them; then each region has what the plan around it leaves. A region that fits as it is stays so.

use std::time::Duration;

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::verify::replay;
use remat::{Goal, LoadOptions, Model, Solution, SolveRequest};
use remat_mlir::Body;

use crate::bodies::{Block, Nested, Placed, inside, workspace};
use crate::planned::Planned;
use crate::{PassError, PassOptions, tiles};

/// How plans are sought.
pub(crate) struct Planner<'o> {
    options: &'o PassOptions,
    /// Longest time for one plan.
    time: Duration,
}

/// How often each block is searched: for the lowest peak, and for a plan within the budget.
const TURNS: u32 = 2;

/// What was found for a block, before its regions are planned.
struct Solved {
    /// The problem, where it is another one than that of the block as it stands.
    model: Option<Model>,
    solution: Solution,
    /// The peaks that the regions of each op were taken to have.
    peaks: Vec<u64>,
}

impl<'o> Planner<'o> {
    /// Plans for these blocks share the time.
    pub(crate) fn new(options: &'o PassOptions, blocks: &[Placed<'_>]) -> Self {
        let count = blocks.iter().map(|placed| placed.block.count());
        let count = count.fold(0, u32::saturating_add);
        let parts = if count > 1 { count.saturating_mul(TURNS) } else { 1 };
        Self {
            options,
            time: options.time_limit / parts,
        }
    }

    /// A plan for a function of one block.
    pub(crate) fn only<'c>(&self, block: Block<'c>) -> Result<Planned<'c>, PassError<'c>> {
        let load = &self.options.model.load;
        let asked = self.options.request.budget;
        let budget = match asked {
            // Of the function as it is, whatever its regions are taken to have.
            BudgetSpec::Share(_) if !block.regions.is_empty() => asked.bytes(block.replay.peak),
            _ => None,
        };
        let solved = self.solve(&block, budget.map_or(asked, BudgetSpec::Bytes), self.options.goal, load)?;
        self.with_regions(block, solved, load)
    }

    /// A plan for each of the blocks of a function, and the budget that they keep together.
    pub(crate) fn several<'c>(
        &self,
        blocks: Vec<Placed<'c>>,
    ) -> Result<(Vec<Planned<'c>>, Option<u64>), PassError<'c>> {
        self.refuse_what_crosses_blocks()?;
        let load = inside(&self.options.model.load);
        let budget = self.budget(&blocks, &load)?;
        let mut planned = Vec::with_capacity(blocks.len());
        for placed in blocks {
            let body = placed.block.imported.body().clone();
            let (outside, end) = (placed.outside, placed.end);
            let needed = outside.saturating_add(end);
            if let Some(budget) = budget.filter(|&budget| needed > budget) {
                let why = format!("what is live at its end takes {needed} bytes, the budget is {budget} bytes");
                return Err(PassError::Inside { body, why });
            }
            let room = budget.map(|budget| budget.saturating_sub(outside));
            let found = self.in_room(placed.block, room, &load);
            let mut found = found.map_err(|error| within(&body, outside, error))?;
            found.claim_nothing();
            found.peak = outside.saturating_add(found.peak.max(end));
            found.baseline_peak = outside.saturating_add(found.baseline_peak.max(end));
            planned.push(found);
        }
        Ok((planned, budget))
    }

    /// The budget for all blocks in bytes.
    fn budget<'c>(&self, blocks: &[Placed<'c>], load: &LoadOptions) -> Result<Option<u64>, PassError<'c>> {
        let asked = self.options.request.budget;
        match asked {
            BudgetSpec::None => Ok(None),
            BudgetSpec::Share(_) | BudgetSpec::Bytes(_) => {
                let peaks = blocks.iter().map(|placed| placed.peak(placed.block.replay.peak));
                Ok(asked.bytes(peaks.max().unwrap_or(0)))
            }
            BudgetSpec::Min | BudgetSpec::Auto => {
                let mut highest = 0;
                for placed in blocks {
                    let lowest = self.lowest(&placed.block, load);
                    let lowest = lowest.map_err(|error| within(placed.block.imported.body(), placed.outside, error))?;
                    highest = highest.max(placed.peak(lowest));
                }
                Ok(Some(highest))
            }
        }
    }

    fn refuse_what_crosses_blocks<'c>(&self) -> Result<(), PassError<'c>> {
        let options = self.options;
        let across = [
            ("paging", tiles::moves(&options.model.load)),
            ("fission", options.fission.is_some()),
            ("deadline", options.goal.deadline.is_some()),
        ];
        match across.into_iter().find(|&(_, asked)| asked) {
            None => Ok(()),
            Some((option, _)) => Err(PassError::Schedule(format!(
                "each block of a function of several is planned on its own: leave out `{option}`"
            ))),
        }
    }

    /// A plan within these bytes for a block that is one of several, or that of a region.
    fn in_room<'c>(
        &self,
        block: Block<'c>,
        room: Option<u64>,
        load: &LoadOptions,
    ) -> Result<Planned<'c>, PassError<'c>> {
        let goal = Goal {
            deadline: None,
            ..self.options.goal
        };
        let budget = room.map_or(BudgetSpec::None, BudgetSpec::Bytes);
        let solved = self.solve(&block, budget, goal, load).or_else(|error| {
            // A plan is known to be there where the lowest peak was sought before.
            let is_known = block
                .lowest
                .get()
                .is_some_and(|&lowest| room.is_some_and(|room| lowest <= room));
            let lowest = is_known
                .then(|| self.solve(&block, BudgetSpec::Min, goal, load).ok())
                .flatten();
            let fits = |solved: &Solved| room.is_some_and(|room| solved.solution.replay.peak <= room);
            lowest.filter(fits).ok_or(error)
        })?;
        self.with_regions(block, solved, load)
    }

    /// A plan for a block, with its regions as they are where the budget allows that, else as low as they get.
    fn solve<'c>(
        &self,
        block: &Block<'c>,
        budget: BudgetSpec,
        goal: Goal,
        load: &LoadOptions,
    ) -> Result<Solved, PassError<'c>> {
        let fits = match budget {
            BudgetSpec::None => true,
            BudgetSpec::Share(_) | BudgetSpec::Bytes(_) => budget.bytes(block.replay.peak) >= Some(block.replay.peak),
            BudgetSpec::Min | BudgetSpec::Auto => false,
        };
        let as_they_stand = fits || self.options.fission.is_some();
        let peaks = block.regions.iter().map(|nested| match as_they_stand {
            true => Ok(nested.peak(|block| block.replay.peak)),
            false => self.lowest_of(nested, &inside(load)),
        });
        let peaks = peaks.collect::<Result<Vec<u64>, _>>()?;
        let control = self.control();
        let with_peaks = || block.model_with(peaks.iter().copied(), load);
        let model = match &self.options.fission {
            Some(fission) => Some(tiles::in_tiles(with_peaks()?, fission, self.options, &control)?),
            None if as_they_stand || peaks.is_empty() => None,
            None => Some(with_peaks()?),
        };
        let posed = model.as_ref().unwrap_or(&block.model);
        let solution = remat::solve_for(posed, &self.request(budget), goal, &control)?;
        Ok(Solved { model, solution, peaks })
    }

    /// Plans the regions of a block that has its plan: each has what that leaves.
    fn with_regions<'c>(
        &self,
        block: Block<'c>,
        solved: Solved,
        load: &LoadOptions,
    ) -> Result<Planned<'c>, PassError<'c>> {
        let (model, solution) = (solved.model.as_ref().unwrap_or(&block.model), solved.solution);
        let rewritten = remat::rewrite(model, &solution)?;
        let mut planned = Planned::of(block.imported, block.replay.peak, rewritten, model, &solution);
        if self.options.fission.is_some() || block.regions.is_empty() {
            return Ok(planned);
        }
        let mut problem = solution.problem.clone();
        for (nested, peak) in block.regions.into_iter().zip(solved.peaks) {
            let taken = nested.workspace(peak);
            let outside = nested.outside(&solution.problem, &solution.plan, &solution.replay, taken);
            let room = problem.budget.map(|budget| budget.saturating_sub(outside));
            let (op, kind, results) = (nested.op, nested.kind, nested.results);
            let mut highest = 0;
            for block in nested.blocks {
                let fits = room.is_none_or(|room| block.replay.peak <= room);
                if fits && block.is_apart() {
                    highest = highest.max(block.replay.peak);
                    continue;
                }
                let body = block.imported.body().clone();
                let found = self.in_room(block, room, &inside(load));
                let found = found.map_err(|error| within(&body, outside, error))?;
                highest = highest.max(found.peak);
                planned.add(found, kind.trips());
            }
            let own = &mut problem.ops[op].workspace;
            *own = own
                .saturating_sub(taken)
                .saturating_add(workspace(kind, results, highest));
        }
        planned.claim_nothing();
        let replayed = replay(&problem, &solution.plan);
        planned.peak = replayed
            .map_err(|rejection| PassError::Schedule(format!("a bug of remat-opt: with its regions, {rejection}")))?
            .peak;
        Ok(planned)
    }

    /// The lowest peak that is found for the regions of an op.
    fn lowest_of<'c>(&self, nested: &Nested<'c>, load: &LoadOptions) -> Result<u64, PassError<'c>> {
        let mut highest = 0;
        for block in &nested.blocks {
            highest = highest.max(self.lowest(block, load)?);
        }
        Ok(highest)
    }

    /// The lowest peak that is found for a block, which is sought once.
    fn lowest<'c>(&self, block: &Block<'c>, load: &LoadOptions) -> Result<u64, PassError<'c>> {
        if let Some(&lowest) = block.lowest.get() {
            return Ok(lowest);
        }
        let budget = match self.options.request.budget {
            BudgetSpec::Auto => BudgetSpec::Auto,
            _ => BudgetSpec::Min,
        };
        let goal = Goal {
            deadline: None,
            ..self.options.goal
        };
        let solved = self.solve(block, budget, goal, load)?;
        let lowest = solved.solution.replay.peak.min(block.replay.peak);
        Ok(*block.lowest.get_or_init(|| lowest))
    }

    fn request(&self, budget: BudgetSpec) -> SolveRequest {
        let asked = &self.options.request;
        SolveRequest {
            budget,
            max_overhead: if budget == asked.budget {
                asked.max_overhead
            } else {
                asked.most_overhead()
            },
            solver: asked.solver.clone(),
        }
    }

    fn control(&self) -> SolveControl<'static> {
        let options = self.options;
        let mut control = SolveControl::new()
            .time_limit(self.time)
            .threads(options.threads)
            .seed(options.seed);
        control.step_limit = options.step_limit;
        control
    }
}

/// An error at a block that has what others leave.
fn within<'c>(body: &Body<'c>, outside: u64, error: PassError<'c>) -> PassError<'c> {
    match error {
        PassError::Plan(error) => PassError::Inside {
            body: body.clone(),
            why: format!("beside {outside} bytes that are held outside of it, {error}"),
        },
        error => error,
    }
}
