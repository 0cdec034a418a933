//! Reports as pages for a browser (`--report`).

use std::path::Path;

use anyhow::Context;
use remat::ir::Graph;
use remat::plan::{Plan, Problem};
use remat::verify::Replay;
use remat::{Format, Model, Solution};
use remat_page::{Figure, Page, Run, Time};

use crate::files;
use crate::lines::Entry;

/// What a model takes as it came, kept while it is rewritten.
#[derive(Clone, Debug)]
pub(crate) struct AsItCame {
    problem: Problem,
    graph: Option<Graph>,
    plan: Plan,
    replay: Replay,
}

impl AsItCame {
    pub(crate) fn of(model: &Model) -> Self {
        Self {
            problem: model.problem().clone(),
            graph: model.graph().cloned(),
            plan: model.baseline_plan().clone(),
            replay: model.baseline().clone(),
        }
    }
}

/// What is said of a plan beside its charts.
#[derive(Default)]
pub(crate) struct Said {
    /// What the page is about.
    pub(crate) title: String,
    /// The large figures.
    pub(crate) figures: Vec<Figure>,
    /// What the report says.
    pub(crate) summary: Vec<Entry>,
    /// Text as a terminal shows it.
    pub(crate) text: String,
    /// The report as JSON.
    pub(crate) report: String,
}

/// What a page is called: as the file that was read, or as the model where that has no name.
pub(crate) fn title(input: &Path, model: &Model) -> String {
    let name = input.file_name().filter(|name| *name != "-");
    name.map_or_else(
        || model.problem().name.clone(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Writes the page of a plan.
pub(crate) fn write(
    path: &Path,
    before: &AsItCame,
    model: &Model,
    solution: &Solution,
    said: Said,
) -> anyhow::Result<()> {
    let is_model = model.format() != Format::NodeLink;
    let before = Run {
        name: "before",
        problem: &before.problem,
        graph: before.graph.as_ref(),
        plan: &before.plan,
        replay: &before.replay,
        placement: None,
    };
    let after = Run {
        name: "after",
        problem: &solution.problem,
        graph: model.graph(),
        plan: &solution.plan,
        replay: &solution.replay,
        placement: solution.placement.as_ref().map(|placed| &placed.placement),
    };
    let page = Page {
        title: said.title,
        figures: said.figures,
        summary: said
            .summary
            .into_iter()
            .map(|entry| (entry.name, entry.lines))
            .collect(),
        runs: vec![before, after],
        time: Some(if is_model { Time::Nanoseconds } else { Time::Units }),
        report: said.report,
        ..Page::default()
    };
    save(path, &page)
}

/// Writes the page of a front.
pub(crate) fn write_front(path: &Path, model: &Model, chart: String, said: Said) -> anyhow::Result<()> {
    let before = Run {
        name: "before",
        problem: model.problem(),
        graph: model.graph(),
        plan: model.baseline_plan(),
        replay: model.baseline(),
        placement: None,
    };
    let page = Page {
        title: said.title,
        text: said.text,
        runs: vec![before],
        time: Some(Time::Nanoseconds),
        charts: vec![("Memory against time".to_owned(), chart)],
        report: said.report,
        ..Page::default()
    };
    save(path, &page)
}

fn save(path: &Path, page: &Page<'_>) -> anyhow::Result<()> {
    files::write(path, page.render().context("the page cannot be made")?)
}
