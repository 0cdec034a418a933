//! Reports as pages for a browser (`--report`).

use std::path::Path;

use anyhow::Context;
use remat::ir::Graph;
use remat::plan::{Plan, Problem};
use remat::verify::Replay;
use remat::{Format, Model, Solution};
use remat_page::{Figure, Page, Run, Time};

use crate::files;

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
    /// A word, and lines about it.
    pub(crate) summary: Vec<(String, Vec<String>)>,
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
        summary: said.summary,
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

/// Text for a terminal, each line after the word that it begins with; lines without a word go on with what is before them.
pub(crate) fn summary(said: &str) -> Vec<(String, Vec<String>)> {
    let mut summary: Vec<(String, Vec<String>)> = Vec::new();
    for line in said.lines() {
        let parts = line.split_once("  ").or_else(|| line.split_once(' '));
        let (word, rest) = parts.unwrap_or((line, ""));
        match summary.last_mut() {
            Some((_, about)) if word.is_empty() => about.push(rest.trim().to_owned()),
            _ => summary.push((word.to_owned(), vec![rest.trim().to_owned()])),
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_a_word_go_on_with_the_one_before() {
        let said = "peak      16.8 MiB -> 8.1 MiB\npredicted 8.0 MiB\n          14.5 MiB with the arena\n";
        let lines = |word: &str, about: &[&str]| (word.to_owned(), about.iter().map(|&line| line.to_owned()).collect());
        assert_eq!(
            summary(said),
            [
                lines("peak", &["16.8 MiB -> 8.1 MiB"]),
                lines("predicted", &["8.0 MiB", "14.5 MiB with the arena"])
            ]
        );
    }
}
