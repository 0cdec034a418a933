//! Runs as JSON for the script of the page.

use std::collections::HashMap;

use remat_chart::TakenBy;
use remat_plan::Step;
use serde::Serialize;

use crate::run::Run;

/// What the script draws.
#[derive(Serialize)]
pub(crate) struct Data {
    /// Names, each once.
    names: Vec<String>,
    /// Kinds of what takes bytes, with their colors.
    kinds: Vec<(&'static str, String)>,
    runs: Vec<RunData>,
}

#[derive(Serialize)]
struct RunData {
    /// Kind (0: first run, 1: recompute, 2: page out, 3: page in) and name of each op or transfer.
    steps: Vec<(u8, usize)>,
    /// Bytes that are taken during each.
    memory: Vec<u64>,
    /// Name, kind, first step, first one after the last, bytes, offset.
    taken: Vec<(usize, u8, usize, usize, u64, u64)>,
    /// Size of the block, where there is one.
    block: Option<u64>,
    budget: Option<u64>,
}

#[derive(Default)]
struct Names {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.all.len();
        self.all.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

impl Data {
    pub(crate) fn of(runs: &[&Run<'_>]) -> Self {
        let mut names = Names::default();
        let runs = runs.iter().map(|run| RunData::of(run, &mut names)).collect();
        Self {
            names: names.all,
            kinds: TakenBy::ALL.iter().map(|by| (by.name(), by.css_color())).collect(),
            runs,
        }
    }

    /// As text that may stand in an element of HTML.
    pub(crate) fn to_json(&self) -> String {
        // There are strings and numbers only, which are always JSON; `<` could end the element.
        serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c")
    }
}

impl RunData {
    fn of(run: &Run<'_>, names: &mut Names) -> Self {
        let (problem, steps) = (run.problem, &run.plan.steps);
        let steps = steps.iter().filter_map(|step| match *step {
            Step::Compute(op) => Some((0, problem.ops[op].name.as_str())),
            Step::Recompute(op) => Some((1, problem.ops[op].name.as_str())),
            Step::PageOut(storage) => Some((2, problem.storage_name(storage))),
            Step::PageIn(storage) => Some((3, problem.storage_name(storage))),
            Step::Free(_) => None,
        });
        let steps = steps.map(|(kind, name)| (kind, names.place(name))).collect();
        let number = |by: TakenBy| TakenBy::ALL.iter().position(|&other| other == by).unwrap_or_default();
        let taken = run.taken().into_iter().map(|taken| {
            let (from, to) = taken.steps;
            let (offset, bytes) = taken.bytes;
            let kind = u8::try_from(number(taken.by)).unwrap_or_default();
            (names.place(&taken.name), kind, from, to, bytes, offset)
        });
        Self {
            steps,
            taken: taken.collect(),
            memory: run.memory(),
            block: run.placement.map(|placement| placement.block.bytes),
            budget: problem.budget,
        }
    }
}
