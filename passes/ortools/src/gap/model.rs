//! The gap model: which values are resident between which events.
//!
//! *Events* are the runs a plan in stage form may have, in order: in stage `s` the candidates of that stage, ascending, then the
//! first compute of node `s`. The *touches* of a value are the events that make it or need it; between two consecutive
//! touches lies a *gap*. The variables are `A(e)`, whether candidate `e` runs, and `g(x, i)`, whether value `x` is resident over
//! its gap `i`, that is from right after one touch up to and including the next.
//!
//! For every event `e` of node `v`, with `pre(x, e)` the gap of `x` that ends at `e` or contains it:
//! 1. `A(e)` implies `g(x, pre(x, e))` for every value `x` that `v` needs;
//! 2. after a use, `g(x, i)` implies `g(x, i - 1)`; after a recompute `e` of its node, `g(x, i)` implies `g(x, i - 1)` or `A(e)`;
//! 3. `A(e) + g(x, pre(x, e)) <= 1` for a recompute `e` and the values `x` of its node: nothing is made twice;
//! 4. what is resident at `e` fits the budget, *whether or not `e` runs*. In a plan that holds nothing longer than needed, what
//!    is held over an event that does not run is still resident at the next one that does. So no large constant switches the
//!    row off, and the linear relaxation is tight;
//! 5. each node is recomputed as often as it may at most.
//!
//! First computes run for sure, and so do the recomputes of which the caller says so. A gap that ends at one of their uses, and the gaps
//! before it back to the last recompute, are constants; rows keep only what varies, and of rows with equal left sides the strictest stays.

use rustc_hash::FxHashMap;
use typed_index_collections::{TiVec, ti_vec};

use remat_plan::{NodeId, ValueId};

use super::candidates::{Stages, recomputes};
use crate::program::{Literal, Program, Row, Variable};
use crate::scaled::{Refusal, Scaled};

/// Programs with more terms are not built: CP-SAT takes some 300 bytes for each.
const MAX_TERMS: usize = 8_000_000;

/// Whether something holds, as far as it is known beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    No,
    Yes,
    If(Variable),
}

/// One possible run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) stage: NodeId,
    pub(super) node: NodeId,
    /// Whether it happens in every solution.
    pub(super) is_sure: bool,
}

impl Event {
    /// The first compute of a node, which ends its stage.
    pub(super) fn first(node: NodeId) -> Self {
        Self {
            stage: node,
            node,
            is_sure: true,
        }
    }

    fn is_first(self) -> bool {
        self.stage == self.node
    }
}

/// A touch of a value.
#[derive(Clone, Copy, Debug)]
struct Touch {
    event: usize,
    /// Whether the event makes the value rather than needs it.
    makes: bool,
}

/// A gap model and the way back from its solutions.
pub(super) struct GapModel {
    pub(super) program: Program,
    events: Vec<Event>,
    touches: TiVec<ValueId, Vec<Touch>>,
    /// For each event the variable that says whether it runs; absent for first computes.
    runs: Vec<Option<Variable>>,
    /// For each value the variables of its gaps, where they are not constant.
    gaps: TiVec<ValueId, Vec<(usize, Variable)>>,
    /// A value with a constant gap over an event that exceeds the budget: there is no solution.
    infeasible: bool,
    nodes: usize,
}

impl GapModel {
    /// The model with these events, in order, and so many terms at most.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] if it would have more, with an estimate of how many.
    pub(super) fn new(instance: &Scaled, events: Vec<Event>, budget: i64, most: Option<u64>) -> Result<Self, Refusal> {
        let limit = most.map_or(MAX_TERMS, |most| {
            usize::try_from(most).unwrap_or(MAX_TERMS).min(MAX_TERMS)
        });
        let touches = touches(instance, &events);
        let mut builder = Builder::new(instance, &events, &touches, budget);
        for event in 0..events.len() {
            builder.event(event);
            if builder.terms > limit {
                let terms = builder.terms as u64 * events.len() as u64 / (event as u64 + 1);
                return Err(Refusal::TooLarge {
                    terms,
                    limit: limit as u64,
                });
            }
        }
        builder.limit_repetitions();
        let (program, runs, gaps, infeasible) = builder.done();
        Ok(Self {
            program,
            events,
            touches,
            runs,
            gaps,
            infeasible,
            nodes: instance.len(),
        })
    }

    /// Whether no solution exists, as known without solving.
    pub(super) fn is_infeasible(&self) -> bool {
        self.infeasible
    }

    /// The time of the runs that happen in every solution.
    pub(super) fn sure_duration(&self, instance: &Scaled) -> i64 {
        let sure = self.events.iter().filter(|event| event.is_sure);
        sure.map(|event| instance.duration(event.node)).sum()
    }

    /// Number of recomputes that may happen.
    pub(super) fn candidates(&self) -> usize {
        self.runs.iter().flatten().count()
    }

    /// The runs of a solution, in order.
    pub(super) fn sequence(&self, solution: &[bool]) -> Vec<NodeId> {
        let runs = self.events.iter().zip(&self.runs);
        let on = runs.filter(|(_, variable)| variable.is_none_or(|v| solution.get(v as usize) == Some(&true)));
        on.map(|(event, _)| event.node).collect()
    }

    /// The values of all variables for a sequence. It is a solution if the sequence is in stage form, recomputes what the
    /// candidates allow, and keeps the budget.
    pub(super) fn hint(&self, sequence: &[NodeId]) -> Vec<i64> {
        let mut again: Stages = ti_vec![Vec::new(); self.nodes];
        for (stage, node) in recomputes(sequence) {
            again[node].push(stage);
        }
        let active: Vec<bool> = self
            .events
            .iter()
            .map(|event| event.is_sure || again[event.node].contains(&event.stage))
            .collect();
        let mut hint = vec![0; self.program.cost.len()];
        for (variable, &active) in self.runs.iter().zip(&active) {
            if let Some(variable) = variable {
                hint[*variable as usize] = i64::from(active);
            }
        }
        for (touches, gaps) in self.touches.iter().zip(&self.gaps) {
            let mut needed = false;
            let mut held = vec![false; touches.len()];
            for index in (1..touches.len()).rev() {
                let touch = touches[index];
                if active[touch.event] {
                    needed = !touch.makes;
                }
                held[index - 1] = needed;
            }
            for &(gap, variable) in gaps {
                hint[variable as usize] = i64::from(held[gap]);
            }
        }
        hint
    }
}

/// The events of plans in stage form with these candidate stages for each node.
pub(super) fn events(instance: &Scaled, stages: &Stages) -> Vec<Event> {
    let mut of_stage: Stages = ti_vec![Vec::new(); instance.len()];
    for (node, stages) in stages.iter_enumerated() {
        for &stage in stages {
            of_stage[stage].push(node);
        }
    }
    let mut events = Vec::new();
    for (stage, nodes) in of_stage.iter_enumerated() {
        events.extend(nodes.iter().map(|&node| Event {
            stage,
            node,
            is_sure: false,
        }));
        events.push(Event::first(stage));
    }
    events
}

fn touches(instance: &Scaled, events: &[Event]) -> TiVec<ValueId, Vec<Touch>> {
    let mut touches: TiVec<ValueId, Vec<Touch>> = ti_vec![Vec::new(); instance.value_count()];
    for (index, event) in events.iter().enumerate() {
        for &value in instance.needs(event.node) {
            touches[value].push(Touch {
                event: index,
                makes: false,
            });
        }
        for value in instance.values(event.node) {
            touches[value].push(Touch {
                event: index,
                makes: true,
            });
        }
    }
    touches
}

/// What is known of the gap that ends at each touch but the first: held for sure, not at all, or open.
fn forced(touches: &[Touch], events: &[Event]) -> Vec<Option<Held>> {
    let mut forced = vec![None; touches.len().saturating_sub(1)];
    let (mut held, mut read) = (false, false);
    for index in (1..touches.len()).rev() {
        let touch = touches[index];
        let is_sure = events[touch.event].is_sure;
        if touch.makes {
            held = false;
            // What is read later is made here.
            read &= !is_sure;
        } else {
            held |= is_sure;
            read = true;
        }
        forced[index - 1] = match (held, read) {
            (true, _) => Some(Held::Yes),
            (false, true) => None,
            // Nobody reads the value any more.
            (false, false) => Some(Held::No),
        };
    }
    forced
}

/// Walks over the events and keeps what is resident.
struct Builder<'a> {
    instance: &'a Scaled,
    events: &'a [Event],
    budget: i64,
    forced: TiVec<ValueId, Vec<Option<Held>>>,
    program: Program,
    runs: Vec<Option<Variable>>,
    gaps: TiVec<ValueId, Vec<(usize, Variable)>>,
    /// For each value the number of its touches passed, and the gap that is open.
    passed: TiVec<ValueId, usize>,
    current: TiVec<ValueId, Held>,
    /// Values whose open gap is a variable, ascending.
    live: std::collections::BTreeSet<ValueId>,
    /// Bytes that are resident for sure: constant gaps, and graph outputs.
    resident: i64,
    recomputes: TiVec<NodeId, Vec<Variable>>,
    /// For each node how many recomputes of it happen in every solution.
    sure: TiVec<NodeId, usize>,
    rows: FxHashMap<Vec<(Variable, i64)>, usize>,
    terms: usize,
    infeasible: bool,
}

impl<'a> Builder<'a> {
    fn new(instance: &'a Scaled, events: &'a [Event], touches: &TiVec<ValueId, Vec<Touch>>, budget: i64) -> Self {
        Self {
            instance,
            events,
            budget,
            forced: touches.iter().map(|touches| forced(touches, events)).collect(),
            program: Program::default(),
            runs: Vec::with_capacity(events.len()),
            gaps: ti_vec![Vec::new(); touches.len()],
            passed: ti_vec![0; touches.len()],
            current: ti_vec![Held::No; touches.len()],
            live: std::collections::BTreeSet::new(),
            resident: 0,
            recomputes: ti_vec![Vec::new(); instance.len()],
            sure: ti_vec![0; instance.len()],
            rows: FxHashMap::default(),
            terms: 0,
            infeasible: false,
        }
    }

    fn event(&mut self, index: usize) {
        let event = self.events[index];
        let instance = self.instance;
        let run = if event.is_sure {
            None
        } else {
            let variable = self.program.variable(instance.duration(event.node));
            self.recomputes[event.node].push(variable);
            Some(variable)
        };
        self.runs.push(run);
        for &value in instance.needs(event.node) {
            self.require(run, self.current[value]);
        }
        self.fit(event.node, run);
        if let Some(run) = run {
            for value in instance.values(event.node) {
                if let Held::If(gap) = self.current[value] {
                    self.program.exclusions.push((run, gap));
                    self.terms += 2;
                }
            }
        }
        for &value in instance.needs(event.node) {
            self.pass(value, false, run);
        }
        for value in instance.values(event.node) {
            self.pass(value, true, run);
        }
        if event.is_first() {
            self.resident += instance.kept(event.node);
        } else if event.is_sure {
            self.sure[event.node] += 1;
        }
    }

    /// Constraint 1.
    fn require(&mut self, run: Option<Variable>, held: Held) {
        match (run, held) {
            (_, Held::Yes) => {}
            (Some(run), Held::If(gap)) => self.clause(vec![Literal::not(run), Literal::is(gap)]),
            (Some(run), Held::No) => self.clause(vec![Literal::not(run)]),
            // A gap that ends at a use by a first compute is held for sure.
            (None, Held::If(_) | Held::No) => self.infeasible = true,
        }
    }

    /// Constraint 4.
    fn fit(&mut self, node: NodeId, run: Option<Variable>) {
        let instance = self.instance;
        let own = instance.bytes_of_run(node);
        let mut most = self.budget - self.resident;
        let mut terms: Vec<(Variable, i64)> = Vec::with_capacity(self.live.len() + 1);
        for &value in &self.live {
            if let Held::If(gap) = self.current[value] {
                terms.push((gap, instance.bytes(value)));
            }
        }
        match run {
            None => most -= own,
            Some(run) => terms.push((run, own)),
        }
        if most < 0 {
            self.infeasible = true;
        }
        if terms.iter().map(|&(_, bytes)| bytes).sum::<i64>() <= most {
            return;
        }
        terms.sort_unstable();
        let rows = &mut self.program.rows;
        let count = terms.len();
        match self.rows.entry(terms) {
            std::collections::hash_map::Entry::Occupied(entry) => {
                let row = &mut rows[*entry.get()];
                row.most = row.most.min(most);
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                rows.push(Row {
                    terms: entry.key().clone(),
                    most,
                });
                entry.insert(rows.len() - 1);
                self.terms += count;
            }
        }
    }

    /// Constraint 2: closes the open gap of a value at an event that touches it, and opens the next.
    fn pass(&mut self, value: ValueId, makes: bool, run: Option<Variable>) {
        let before = self.current[value];
        match before {
            Held::Yes => self.resident -= self.instance.bytes(value),
            Held::If(_) => {
                self.live.remove(&value);
            }
            Held::No => {}
        }
        let gap = self.passed[value];
        self.passed[value] += 1;
        let after = match self.forced[value].get(gap) {
            None | Some(Some(Held::No)) => Held::No,
            Some(Some(_)) => Held::Yes,
            Some(None) => {
                let variable = self.program.variable(0);
                self.gaps[value].push((gap, variable));
                Held::If(variable)
            }
        };
        match after {
            Held::Yes => self.resident += self.instance.bytes(value),
            Held::If(_) => {
                self.live.insert(value);
            }
            Held::No => {}
        }
        self.current[value] = after;
        let made_for_sure = makes && run.is_none();
        if after == Held::No || before == Held::Yes || made_for_sure {
            return;
        }
        let mut clause = Vec::with_capacity(3);
        if let Held::If(after) = after {
            clause.push(Literal::not(after));
        }
        if let Held::If(before) = before {
            clause.push(Literal::is(before));
        }
        if let (true, Some(run)) = (makes, run) {
            clause.push(Literal::is(run));
        }
        self.clause(clause);
    }

    fn clause(&mut self, clause: Vec<Literal>) {
        self.infeasible |= clause.is_empty();
        self.terms += clause.len();
        self.program.clauses.push(clause);
    }

    /// Constraint 5.
    fn limit_repetitions(&mut self) {
        for (node, recomputes) in self.recomputes.iter_enumerated() {
            let most = (self.instance.max_computes(node) as usize - 1).saturating_sub(self.sure[node]);
            if recomputes.len() > most {
                let terms = recomputes.iter().map(|&variable| (variable, 1)).collect();
                self.program.rows.push(Row {
                    terms,
                    most: i64::try_from(most).unwrap_or(i64::MAX),
                });
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "taken apart at once by the only caller")]
    fn done(
        self,
    ) -> (
        Program,
        Vec<Option<Variable>>,
        TiVec<ValueId, Vec<(usize, Variable)>>,
        bool,
    ) {
        (self.program, self.runs, self.gaps, self.infeasible)
    }
}
