//! Reports as pages for a browser (`--report`).

use std::path::Path;

use anyhow::Context;
use remat::plan::{Plan, Problem};
use remat::verify::Replay;
use remat::{Format, Model, Solution};
use remat_page::{Page, Run, Time};

use crate::files;
use crate::lines::Entry;

/// What a model takes as it came, kept while it is rewritten.
#[derive(Clone, Debug)]
pub(crate) struct AsItCame {
    problem: Problem,
    plan: Plan,
    replay: Replay,
}

impl AsItCame {
    pub(crate) fn of(model: &Model) -> Self {
        Self {
            problem: model.problem().clone(),
            plan: model.baseline_plan().clone(),
            replay: model.baseline().clone(),
        }
    }
}

/// Writes the page of a plan.
pub(crate) fn write(
    path: &Path,
    before: &AsItCame,
    model: &Model,
    solution: &Solution,
    said: impl IntoIterator<Item = Entry>,
) -> anyhow::Result<()> {
    let is_model = model.format() != Format::NodeLink;
    let before = Run {
        name: "as it came",
        problem: &before.problem,
        plan: &before.plan,
        replay: &before.replay,
        placement: None,
    };
    let planned = Run {
        name: "as planned",
        problem: &solution.problem,
        plan: &solution.plan,
        replay: &solution.replay,
        placement: solution.placement.as_ref().map(|placed| &placed.placement),
    };
    let page = Page {
        title: solution.problem.name.clone(),
        summary: said.into_iter().map(|entry| (entry.name, entry.lines)).collect(),
        runs: vec![before, planned],
        text: String::new(),
        time: Some(if is_model { Time::Nanoseconds } else { Time::Units }),
        charts: Vec::new(),
    };
    save(path, &page)
}

/// Writes the page of a front.
pub(crate) fn write_front(path: &Path, model: &Model, chart: String, said: &str) -> anyhow::Result<()> {
    let before = Run {
        name: "as it came",
        problem: model.problem(),
        plan: model.baseline_plan(),
        replay: model.baseline(),
        placement: None,
    };
    let page = Page {
        title: model.problem().name.clone(),
        summary: Vec::new(),
        text: said.to_owned(),
        runs: vec![before],
        time: Some(Time::Nanoseconds),
        charts: vec![("Memory against time".to_owned(), chart)],
    };
    save(path, &page)
}

fn save(path: &Path, page: &Page<'_>) -> anyhow::Result<()> {
    files::write(path, page.render().context("the page cannot be made")?)
}
