//! The page of a plan.

use bytesize::ByteSize;
use remat::{Model, Solution};
use remat_page::{Figure, Page, Run, Time};

use crate::failure::Failure;
use crate::planned::{Planned, block};

/// What stands on every page, since nothing runs here.
const PREDICTED: &str = "predicted: nothing was run; `remat-opt` on the command line measures in ONNX Runtime, and compares bits: the \
     runtime may fuse ops of the original that it does not fuse in a rewritten model, whose last digits differ then";

/// The page of a plan beside the model as it is, or of that alone.
pub(crate) fn page(
    name: &str,
    model: &Model,
    as_it_is: &Solution,
    planned: Option<&Planned>,
) -> Result<String, Failure> {
    let mut runs = vec![run("before", model, as_it_is)];
    let mut page = Page {
        title: name.to_owned(),
        summary: vec![("Note".to_owned(), vec![PREDICTED.to_owned()])],
        time: Some(Time::Nanoseconds),
        ..Page::default()
    };
    if let Some(planned) = planned {
        let solution = &planned.solution;
        page.figures = figures(model, as_it_is, solution);
        page.report = solution.plan_file(planned.tiled.as_ref().unwrap_or(model)).to_json();
        runs.push(run("after", planned.tiled.as_ref().unwrap_or(model), solution));
    }
    page.runs = runs;
    page.render().map_err(|error| Failure::Page(error.to_string()))
}

fn run<'a>(name: &'static str, model: &'a Model, solution: &'a Solution) -> Run<'a> {
    Run {
        name,
        problem: &solution.problem,
        graph: model.graph(),
        plan: &solution.plan,
        replay: &solution.replay,
        placement: solution.placement.as_ref().map(|placed| &placed.placement),
    }
}

fn figures(model: &Model, before: &Solution, after: &Solution) -> Vec<Figure> {
    let (from, to) = (block(before), block(after));
    let change = 100.0 * (to as f64 / from.max(1) as f64 - 1.0);
    let more = 100.0 * (after.replay.duration as f64 / model.baseline_duration().max(1) as f64 - 1.0);
    let figure = |name: &str, value: String, about: &str| Figure {
        name: name.to_owned(),
        value,
        about: about.to_owned(),
        ..Figure::default()
    };
    vec![
        Figure {
            change: Some((format!("{change:+.0} %").replace('-', "\u{2212}"), to < from)),
            bars: Some((from, to)),
            ..figure(
                "Memory",
                format!("{} → {}", ByteSize::b(from), ByteSize::b(to)),
                "one block, without weights",
            )
        },
        figure("Time", format!("{more:+.1} %").replace('-', "\u{2212}"), "estimated"),
        figure("Runs again", after.plan.recomputes().to_string(), "ops"),
    ]
}
