//! The replay: every step in order, every rule at its step.

mod pages;
mod state;

use remat_plan::{OpId, OrderMode, Plan, Problem, Step, StorageId, StorageRole, TensorId};

use self::state::Replayer;
pub use self::state::{Replay, StepTrace};
use crate::clock::Span;
use crate::memory::{Location, Memory, Missing, roots};
use crate::rejection::Findings;
use crate::{Code, Rejection};

/// Replays a plan and judges it by every rule but [`Code::V014`], [`Code::V015`] and [`Code::V020`], which are about files.
///
/// `problem` must be valid, as [`Problem::validate`] says. Linear in the sizes of problem and plan; with DMA each run also looks at
/// the storages that are on their way.
///
/// # Errors
/// [`Rejection`] with all violations.
pub fn replay(problem: &Problem, plan: &Plan) -> Result<Replay, Rejection> {
    let (replay, findings) = judge(problem, plan, problem.budget);
    findings.judge(replay)
}

/// Replays a plan against a budget; the figures are those of the plan if [`Findings::keep_figures`] says so.
pub(crate) fn judge(problem: &Problem, plan: &Plan, budget: Option<u64>) -> (Replay, Findings) {
    let mut replayer = Replayer::new(problem, plan, budget);
    replayer.replay.trace.reserve_exact(plan.steps.len());
    replayer.replay.times.reserve_exact(plan.steps.len());
    for (position, &step) in plan.steps.iter().enumerate() {
        replayer.step(position, step);
    }
    replayer.end();
    (replayer.replay, replayer.findings)
}

impl Replayer<'_> {
    fn step(&mut self, position: usize, step: Step) {
        let now = self.clock.now;
        let at_once = Span { start: now, end: now };
        let (during, span) = match step {
            Step::Compute(op) | Step::Recompute(op) if op.index() >= self.problem.ops.len() => {
                self.unknown(position, "op", op.index(), self.problem.ops.len());
                (self.memory_now(), at_once)
            }
            Step::Free(storage) | Step::PageOut(storage) | Step::PageIn(storage)
                if storage.index() >= self.problem.storages.len() =>
            {
                self.unknown(position, "storage", storage.index(), self.problem.storages.len());
                (self.memory_now(), at_once)
            }
            Step::Compute(op) => self.run(position, op, false),
            Step::Recompute(op) => self.run(position, op, true),
            Step::Free(storage) => self.free(position, storage),
            Step::PageOut(storage) => self.page_out(position, storage),
            Step::PageIn(storage) => self.page_in(position, storage),
        };
        self.replay.trace.push(StepTrace {
            step: position,
            during,
            after: self.memory_now(),
        });
        self.replay.times.push(span);
        self.note_peak(position, during);
    }

    /// Runs an op; returns the bytes that count during the run, and when it happens.
    fn run(&mut self, position: usize, op: OpId, labelled_again: bool) -> (u64, Span) {
        self.check_label(position, op, labelled_again);
        if self.runs[op] > 0 {
            self.check_repetition(position, op);
        } else {
            self.check_order(position, op);
        }
        self.check_anti_dependences(position, op);
        self.check_operands(position, op);

        let entry = &self.problem.ops[op];
        let demand = self.memory.demand(op);
        let demanded = demand.and_then(|demand| demand.total()?.checked_add(entry.workspace));
        let with_run = demanded.and_then(|bytes| self.resident.checked_add(bytes));
        let with_run = self.fits(position, &entry.name, "memory", with_run);
        let span = self.span_of_run(position, op, with_run);
        let during = self.clock.most_memory_in(span, with_run);
        let during = self.fits(position, &entry.name, "memory", during);
        self.check_budget(position, &entry.name, during);
        self.arrive(span.start.saturating_sub(1), self.resident, true);
        self.arrive(span.end, with_run, false);
        self.clock.advance(span.end);

        let again = self.runs[op] > 0;
        let energy = self.replay.energy.checked_add(entry.energy_pj);
        self.replay.energy = self.fits(position, &entry.name, "energy", energy);
        if again {
            self.replay.recomputes += 1;
            self.replay.recompute_duration = self.replay.recompute_duration.saturating_add(entry.duration);
            self.replay.recompute_energy = self.replay.recompute_energy.saturating_add(entry.energy_pj);
        }
        self.runs[op] = self.runs[op].saturating_add(1);
        for storage in Memory::creates(self.problem, op) {
            if self.memory.location(storage) != Location::Resident {
                self.changes[storage] += 1;
                self.come_back(position, storage);
            }
        }
        self.memory.run(op);
        let created = demand.map_or(u64::MAX, |demand| demand.created);
        self.resident = self.resident.saturating_add(created);
        (during, span)
    }

    /// When an op runs that has so much in memory together with all storages that are there or have been let in.
    fn span_of_run(&mut self, position: usize, op: OpId, with_run: u64) -> Span {
        let entry = &self.problem.ops[op];
        let arrived = entry
            .reads
            .iter()
            .map(|&tensor| self.pages.arrived(self.problem.tensors[tensor].storage));
        let earliest = arrived.fold(self.clock.now, u64::max);
        let budget = self.budget.unwrap_or(u64::MAX);
        let fit = self.clock.first_fit(earliest, with_run, budget);
        let start = fit.unwrap_or(earliest);
        let end = self.fits(position, &entry.name, "duration", start.checked_add(entry.duration));
        Span { start, end }
    }

    fn check_label(&mut self, position: usize, op: OpId, labelled_again: bool) {
        let name = &self.problem.ops[op].name;
        match (self.runs[op] > 0, labelled_again) {
            (true, false) => self.findings.add(Code::V001, Some(position), || {
                format!("step {position} computes `{name}`, which ran before: it should recompute it")
            }),
            (false, true) => self.findings.add(Code::V002, Some(position), || {
                format!("step {position} recomputes `{name}`, which did not run before: it should compute it")
            }),
            (true, true) | (false, false) => {}
        }
    }

    fn check_repetition(&mut self, position: usize, op: OpId) {
        let entry = &self.problem.ops[op];
        let name = &entry.name;
        if !entry.recomputable {
            self.findings.add(Code::V007, Some(position), || {
                format!("step {position} runs `{name}` again, which is not recomputable")
            });
        }
        let Some(most) = self.problem.max_computes else { return };
        let count = u64::from(self.runs[op]) + 1;
        if count > u64::from(most) && roots(self.problem, op).next().is_some() {
            self.findings.add(Code::V008, Some(position), || {
                format!("step {position} brings the runs of `{name}` to {count}, at most {most} are allowed")
            });
        }
    }

    fn check_order(&mut self, position: usize, op: OpId) {
        if roots(self.problem, op).next().is_none() {
            return;
        }
        match self.latest {
            Some(latest) if latest > op => {
                if self.problem.order == OrderMode::Fixed {
                    let (name, other) = (&self.problem.ops[op].name, &self.problem.ops[latest].name);
                    let (place, later) = (op.index(), latest.index());
                    self.findings.add(Code::V010, Some(position), || {
                        format!(
                            "step {position} first computes `{name}` after `{other}`, but the order is fixed and has them \
                             at places {place} and {later}"
                        )
                    });
                }
            }
            _ => self.latest = Some(op),
        }
    }

    fn check_anti_dependences(&mut self, position: usize, op: OpId) {
        for &after in &self.never_after[op] {
            if self.runs[after] > 0 {
                let (name, other) = (&self.problem.ops[op].name, &self.problem.ops[after].name);
                self.findings.add(Code::V021, Some(position), || {
                    format!("step {position} runs `{name}`, which must never run after `{other}`, and that ran before")
                });
            }
        }
    }

    /// Checks that all operands are there. Views of a storage that was found missing count as missing with it.
    fn check_operands(&mut self, position: usize, op: OpId) {
        let entry = &self.problem.ops[op];
        let mut any_missing = false;
        for &tensor in &entry.reads {
            let Some(missing) = self.memory.missing(tensor) else {
                continue;
            };
            any_missing = true;
            let changes = self.changes[self.problem.tensors[tensor].storage];
            if self.reported[tensor].replace(changes) != Some(changes) {
                self.findings.add(Code::V003, Some(position), || {
                    missing_message(self.problem, position, &entry.name, tensor, missing)
                });
            }
        }
        if !any_missing {
            return;
        }
        for &result in &entry.defines {
            let storage = self.problem.tensors[result].storage;
            let lost = |&&tensor: &&TensorId| {
                self.problem.tensors[tensor].storage == storage && self.memory.missing(tensor).is_some()
            };
            if entry.reads.iter().any(|tensor| lost(&tensor)) {
                self.reported[result] = Some(self.changes[storage]);
            }
        }
    }

    fn free(&mut self, position: usize, storage: StorageId) -> (u64, Span) {
        let now = self.clock.now;
        let left_out = (self.memory_now(), Span { start: now, end: now });
        if !self.may_give_up(position, storage, "frees") {
            return left_out;
        }
        let name = self.problem.storage_name(storage);
        let why = match self.memory.location(storage) {
            Location::Resident => {
                let span = self.wait_for(storage);
                let before = self.memory_now();
                self.leave(storage, Location::Absent);
                return (before, span);
            }
            Location::PagedOut => "paged out",
            Location::Absent if self.changes[storage] == 0 => "not computed",
            Location::Absent => "freed already",
        };
        self.findings.add(Code::V005, Some(position), || {
            format!("step {position} frees `{name}`, which is {why}")
        });
        left_out
    }

    fn check_deadline(&mut self) {
        let duration = self.replay.duration;
        if let Some(deadline) = self.problem.deadline.filter(|&deadline| duration > deadline) {
            self.findings.add(Code::V019, None, || {
                format!("deadline missed: the plan takes {duration}, the deadline is {deadline}")
            });
        }
    }

    fn unknown(&mut self, position: usize, what: &str, id: usize, count: usize) {
        self.findings.add(Code::V017, Some(position), || {
            format!("step {position} names {what} {id}, but there are only {count}")
        });
    }

    /// The rules about the plan as a whole.
    fn end(&mut self) {
        self.replay.duration = self.clock.end();
        self.arrive(self.replay.duration, self.resident, true);
        self.check_deadline();
        for (id, op) in self.problem.ops.iter_enumerated() {
            if self.runs[id] == 0 {
                self.findings
                    .add(Code::V004, None, || format!("`{}` is never computed", op.name));
            }
        }
        for (id, storage) in self.problem.storages.iter_enumerated() {
            let created = self.problem.tensors[storage.root].producer.is_some();
            let kept = storage.role == StorageRole::LiveOut;
            if kept && created && self.memory.location(id) != Location::Resident {
                let name = self.problem.storage_name(id);
                self.findings.add(Code::V011, None, || {
                    format!("`{name}` holds a graph output, but is not resident at the end")
                });
            }
        }
    }
}

fn missing_message(problem: &Problem, position: usize, reader: &str, tensor: TensorId, missing: Missing) -> String {
    let entry = &problem.tensors[tensor];
    let storage = problem.storage_name(entry.storage);
    let name = &entry.name;
    let producer = entry.producer.map_or("", |op| problem.ops[op].name.as_str());
    let head = format!("step {position} runs `{reader}`, which reads `{name}`");
    let of_storage = if problem.storages[entry.storage].root == tensor {
        "it".to_owned()
    } else {
        format!("its storage `{storage}`")
    };
    match missing {
        Missing::NotComputed => format!("{head}, but `{producer}` did not compute it yet"),
        Missing::Freed => format!("{head}, but {of_storage} was freed"),
        Missing::PagedOut => format!("{head}, but {of_storage} is paged out"),
        Missing::Stale => {
            format!("{head}, but `{storage}` was computed anew and the view `{producer}` was not run again")
        }
    }
}
